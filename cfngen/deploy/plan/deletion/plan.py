"""The data of a deletion: the request, the plan that is printed as text or JSON, and what it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Message
from cfngen.deploy.plan.deletion.remaining_buckets_keys_and_logs import RECOVERY_WINDOW_DAYS
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource
from cfngen.deploy.preflight.blockers import Blocker
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag

CopyMethod = Literal["file", "recovery-window", "destroy"]


@dataclass(frozen=True)
class AuthorityCopy:
    """The user's choice whether and where a copy of the certificate authorities is kept.

    Attributes:
        how: `file`, `recovery-window` (a second secret), or `destroy` (no copy).
        path: the file of the copy; only used with `file`.
    """

    how: CopyMethod = "recovery-window"
    path: Path = Path("authorities.json")

    @property
    def consequence(self) -> str:
        """What happens to the certificate authorities, in a sentence of the confirmation prompt."""
        if self.how == "file":
            return (
                "the secret with the certificate authorities is deleted; a copy is written to "
                f"{self.path}, readable only by you"
            )
        if self.how == "recovery-window":
            return (
                "the secret with the certificate authorities is deleted; a copy of it can be restored for "
                f"{RECOVERY_WINDOW_DAYS} days"
            )
        return (
            "the secret with the certificate authorities is deleted and no copy is kept: no snapshot, of a volume "
            "or of etcd, can ever be restored as this cluster"
        )


@dataclass(frozen=True)
class DeletionRequest:
    """Which cluster to delete, and what else to delete with it.

    Attributes:
        vpc_id: the existing VPC that the cluster file names; empty if the stack creates one, and if the cluster file
            has a reference to it: then the stack has recorded its id, or it is not known.
        role_names: names of the roles of service accounts that the cluster file makes.
        delete_volumes: whether to delete the volumes of PersistentVolumeClaims too, with their data.
        delete_snapshots: whether to delete the snapshots of these volumes too.
        empty_bucket: whether to delete the cluster's templates too.
        delete_bucket: whether to delete their bucket too, if it is empty then.
        even_if_occupied: whether to continue although foreign resources use the cluster's network.
        leave_behind: whether to retain, without asking, the resources that cannot be deleted.
        detach: whether to return without waiting for CloudFormation.
        authorities: whether and where to keep a copy of the certificate authorities; None asks the user.
    """

    stack_name: str
    cluster: str
    vpc_id: str = ""
    pod_cidr: str = ""
    role_names: tuple[str, ...] = ()
    bucket: str = ""
    delete_volumes: bool = False
    delete_snapshots: bool = False
    empty_bucket: bool = False
    delete_bucket: bool = False
    even_if_occupied: bool = False
    leave_behind: bool = False
    detach: bool = False
    authorities: AuthorityCopy | None = None


@dataclass(frozen=True)
class DeletedResources:
    """Resources of one kind that are deleted with the stack.

    Attributes:
        kind: plural noun for the resources, such as `master volumes`.
        ids: physical ids of the resources.
    """

    kind: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class DeletionPlan(Message):
    """What deleting a cluster would do.

    Attributes:
        cluster: name of the cluster.
        stack: name of the root stack.
        stack_id: its ARN; empty if there is no stack.
        status: its status; empty if there is no stack.
        account: AWS account id.
        region: the region.
        by_console: whether the stack was created in the console, from cfngen's templates.
        protected: whether its termination protection would be disabled.
        deleted_parts: what is deleted with the stack.
        removed: resources that Kubernetes created and that the deletion would remove.
        volumes: volumes of PersistentVolumeClaims.
        snapshots: snapshots of these volumes.
        delete_volumes: whether the volumes are deleted too.
        delete_snapshots: whether the snapshots are deleted too.
        retained: resources that remain after the deletion.
        subnet_tags: tags that `cfngen deploy` has added to existing subnets and that the deletion would remove.
        blockers: foreign resources that block the deletion.
        unattributed_volumes: volumes whose tags do not name their cluster.
        name_conflict: a sentence about another cluster of this name in the region; empty if there is none.
        foreign_resources: resources with the cluster's name that may belong to that cluster; they are not deleted.
        authorities: ARNs of the secrets that hold the certificate authorities and are deleted.
        objects: how many object versions of templates are in the bucket.
    """

    kind: ClassVar[str] = "survey"
    cluster: str
    stack: str
    stack_id: str
    status: str
    account: str
    region: str
    by_console: bool = False
    protected: bool = False
    deleted_parts: tuple[DeletedResources, ...] = ()
    removed: tuple[OrphanedResource, ...] = ()
    volumes: tuple[OrphanedResource, ...] = ()
    snapshots: tuple[OrphanedResource, ...] = ()
    delete_volumes: bool = False
    delete_snapshots: bool = False
    retained: tuple[RetainedResource, ...] = ()
    subnet_tags: tuple[SubnetTag, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    unattributed_volumes: tuple[OrphanedResource, ...] = ()
    name_conflict: str = ""
    foreign_resources: tuple[RetainedResource, ...] = ()
    authorities: tuple[str, ...] = ()
    objects: int = 0

    @property
    def data_to_delete(self) -> tuple[OrphanedResource, ...]:
        """The volumes and snapshots of PersistentVolumeClaims that are deleted on request."""
        return (*(self.volumes if self.delete_volumes else ()), *(self.snapshots if self.delete_snapshots else ()))


@dataclass(frozen=True)
class PreparedDeletion:
    """A plan, and the data from which it was made.

    Attributes:
        remaining_tags: tags that `cfngen deploy` has added to existing subnets and that the deletion does not remove.
        contested: resources the request asks to remove, but which may belong to another cluster of the same name.
    """

    stack: StackView | None
    inventory: Inventory
    plan: DeletionPlan
    remaining_tags: tuple[RetainedResource, ...] = ()
    contested: tuple[OrphanedResource, ...] = ()

"""Refuses a root stack that is not this cluster's or is busy, and a name that another cluster in the region has.

Resources that Kubernetes creates are found only by their tags, and the folder in the bucket is named after the cluster.
Two clusters of one name in a region would share the tags and the folder, so cfngen does not create the second one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cfngen.deploy.aws import operation_origin
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.change_sets import read_change_set_clusters
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.kubernetes_made import find_instances_of_same_name
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.stacks import CLUSTER_TAG, StackView, require_stack, stack_name
from cfngen.deploy.aws.templates import find_live_stacks, read_template_cluster
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, Hint, suggest


class NameConflictError(CfngenError):
    """Another stack in the region contains a cluster of this name.

    Attributes:
        stacks: names of those stacks.
    """

    code = "cluster-name-conflict"

    def __init__(self, cluster: str, stack: str, stacks: tuple[str, ...]) -> None:
        super().__init__(
            f"the cluster {cluster} already exists in the stack {', '.join(stacks)}: a second cluster of this name "
            f"in the stack {stack} would share its tags, by which Kubernetes finds its load balancers and volumes, "
            "and its folder in the bucket",
            hint="choose another `name` in the cluster file, or with --set name=…; or name the existing stack with "
            "--stack-name.",
        )
        self.stacks = stacks


def require_unique_name(account: Account, cluster: str, stack: str) -> None:
    """Raise an error if another stack contains a cluster of the same name.

    Args:
        stack: name of the root stack that is to be created.

    Raises:
        NameConflictError: another stack contains a cluster of this name.
    """
    if conflicting_stacks := find_live_stacks(account, cluster, besides=stack):
        raise NameConflictError(cluster, stack, conflicting_stacks)


def check_ownership(account: Account, stack: StackView, cluster: str, *, updates: bool = False) -> bool:
    """Check that the stack belongs to the cluster; return whether it was made elsewhere from cfngen's templates.

    | made by                             | tag | metadata of the template | may be                                  |
    |-------------------------------------|-----|--------------------------|-----------------------------------------|
    | `cfngen deploy`                     | yes | yes                      | anything                                |
    | the console, the AWS CLI or the CDK | no  | yes                      | looked at, repaired, rolled back,       |
    |                                     |     |                          | resumed, deleted; not updated or paused |
    | anything else, or another cluster   | no  | no                       | nothing                                 |

    Args:
        updates: whether the stack gets the templates of the cluster file, or must not get others for some time.

    Raises:
        ForeignStackError: the stack belongs to another cluster, or was not made from cfngen's templates.
        MadeElsewhereError: it is updated by what made it.
    """
    if stack.parent_id:
        raise ForeignStackError(
            f"the stack {stack.name} is a nested stack",
            hint=f"name its root stack with --stack-name: {stack_name(stack.root_id or stack.parent_id)}.",
        )
    if stack.status.health is StackHealth.EMPTY:
        if not stack.cluster and cluster not in read_change_set_clusters(account, stack):
            raise ForeignStackError(
                f"the stack {stack.name} is in {stack.status}: it is empty, and none of its change sets is "
                f"for the cluster {cluster}",
                hint=CommandText(
                    suggest("deploy", stack=stack.name),
                    " creates the cluster in it; if it is not needed, delete it: "
                    f"`aws cloudformation delete-stack --region {account.region} --stack-name {stack.name}`.",
                ),
            )
        return False
    if stack.cluster == cluster:
        return False
    owner = stack.cluster or read_template_cluster(account, stack)
    if owner != cluster:
        reason = (
            f"belongs to the cluster {owner}, not to {cluster}" if owner else "was not made from cfngen's templates"
        )
        raise ForeignStackError(
            f"the stack {stack.name} {reason}", hint="choose the cluster's stack with --stack-name, or another name."
        )
    if updates:
        raise MadeElsewhereError(stack, cluster)
    return True


class BusyError(CfngenError):
    """Another operation is in progress in the stack.

    Attributes:
        since: when and by whom it was started, e.g. `since 12:03 UTC (4 minutes ago), started by arn:…`; may be empty.
    """

    code = "operation-in-progress"

    def __init__(self, stack: StackView, since: str = "") -> None:
        suffix = f" {since}" if since else ""
        super().__init__(
            f"another operation is in progress: the stack {stack.name} is in {stack.status}{suffix}",
            hint=CommandText(suggest("watch", stack=stack.name), " shows it; run the command again when it has ended."),
        )
        self.stack = stack
        self.since = since


def busy_error(account: Account, stack: StackView) -> BusyError:
    """Return the error for a stack with an operation in progress; it says who started it and when, if that is known."""
    try:
        origin = operation_origin.read_origin(account, stack)
    except AwsError:
        return BusyError(stack)
    if origin is None:
        return BusyError(stack)
    author = f"started by {origin.caller}" if origin.caller else "not started by a deployment of cfngen"
    return BusyError(stack, f"since {operation_origin.describe_time(account, origin.time)}, {author}")


def require_idle_stack(account: Account, stack_name: str, cluster: str, *, updates: bool = False) -> StackView:
    """Return the root stack of a cluster, in which no operation is in progress.

    Args:
        cluster: name of the cluster that it belongs to.
        updates: as in `check_ownership`.

    Raises:
        NoStackError: there is no stack of this name.
        ForeignStackError: the stack belongs to another cluster.
        BusyError: a CloudFormation operation is in progress.
    """
    stack = require_stack(account, stack_name)
    check_ownership(account, stack, cluster, updates=updates)
    if stack.status.in_progress:
        raise busy_error(account, stack)
    return stack


class ForeignStackError(CfngenError):
    """The stack of that name does not belong to this cluster."""

    code = "foreign-stack"


class MadeElsewhereError(ForeignStackError):
    """The console, the AWS CLI or the CDK made the stack, and updates it."""

    code = "made-elsewhere"

    def __init__(self, stack: StackView, cluster: str) -> None:
        super().__init__(made_elsewhere_text(stack), hint=update_elsewhere_hint(cluster))


def made_elsewhere_text(stack: StackView) -> str:
    """Return a sentence that another tool made and updates a stack."""
    return f"the stack {stack.name} was made by the console, the AWS CLI or the CDK, not by `{suggest('deploy')}`"


def update_elsewhere_hint(cluster: str) -> Hint:
    """Return how a stack that was made elsewhere is updated, and how it is handed over to cfngen."""
    return CommandText(
        "update it the way it was made, with what ",
        suggest("templates"),
        f" writes; to hand it over to cfngen, give it the tag {CLUSTER_TAG}={cluster} in such an update "
        "(docs/deploy/pipelines.md).",
    )


def root_stack_tags(cluster: str, chosen: Mapping[str, str], stack: StackView | None) -> dict[str, str]:
    """Return the tags of a root stack; CloudFormation propagates them to every resource.

    An update removes every tag that it does not list, so the stack's current tags are included. The plan of a stack
    that was made elsewhere adds none.

    Args:
        stack: the existing stack; None if it does not exist yet.
    """
    own_tag = {} if stack and stack.made_elsewhere else {CLUSTER_TAG: cluster}
    return {**(stack.tags if stack else {}), **chosen, **own_tag}


class SameNameClusterError(CfngenError):
    """Another cluster of the same name exists, and tags do not tell which of the two a resource belongs to."""

    code = "ambiguous-cluster-name"

    def __init__(self, cluster: str, conflict: str) -> None:
        super().__init__(
            f"{conflict}; resources tagged with the name {cluster} may belong to that cluster, so none of them is "
            "deleted",
            hint="to delete that stack, name it with --stack-name; otherwise delete that cluster first, or delete "
            "your resources by hand.",
        )


def check_name_conflict(account: Account, inventory: Inventory, orphans: Sequence[OrphanedResource]) -> None:
    """Refuse to remove resources that may belong to another, existing cluster of the same name.

    Resources in the cluster's VPC belong to the cluster. If the VPC is not known, or the stack has neither a network
    nor instances, only the tags could tell, and the resources of both clusters have the same tags.

    Raises:
        SameNameClusterError: another cluster of this name exists, and the resources may belong to it.
    """
    if not orphans:
        return
    other_instances = find_instances_of_same_name(account, inventory)
    # The VPC was found only by its tag, so it may be the other cluster's.
    is_vpc_ambiguous = not inventory.has_infrastructure and (
        bool(inventory.same_name_stacks) or inventory.vpc_id in other_instances.values()
    )
    is_ambiguous = is_vpc_ambiguous or not inventory.vpc_id or any(not orphan.vpc_id for orphan in orphans)
    if is_ambiguous and (conflict := _describe_conflict(inventory, other_instances)):
        raise SameNameClusterError(inventory.cluster, conflict)


def describe_name_conflict(account: Account, inventory: Inventory) -> str:
    """Return a sentence about another cluster of this name in the region; empty if there is none."""
    # The sentence names either stacks or instances, so instances are read only if there are no stacks.
    other_instances = {} if inventory.same_name_stacks else find_instances_of_same_name(account, inventory)
    return _describe_conflict(inventory, other_instances)


def _describe_conflict(inventory: Inventory, other_instances: Mapping[str, str]) -> str:
    """Return a sentence about the other cluster of this name; empty if there is none."""
    if inventory.same_name_stacks:
        return f"the cluster {inventory.cluster} already exists in the stack {', '.join(inventory.same_name_stacks)}"
    if other_instances:
        return (
            f"instances of a cluster named {inventory.cluster} run outside of this stack: {', '.join(other_instances)}"
        )
    return ""

"""The AWS names that are made from the cluster's and a group's name, and how long each may be.

Names that CloudFormation makes up itself, of IAM roles (64 characters), launch templates and Auto Scaling groups, are
not here: it shortens them to fit. That is why the templates name none of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.cluster.model import Cluster
from cfngen.text_limits import KEY_PAIR_NAME, LOAD_BALANCER_NAME, STACK_NAME, TAG_KEY, TAG_VALUE, TextLimit

DRAIN_HOOK = "cfngen-drain"
"""Lifecycle hook of a node group whose instances move their pods before they are terminated."""

# CloudFormation names nested stacks after the root stack and their logical id and appends up to 13 characters.
_GENERATED_SUFFIX = "-" + "X" * 13


@dataclass(frozen=True)
class DerivedName:
    """A name that is made from the cluster's name, or from it and a node group's.

    Attributes:
        what: what bears the name.
        pattern: how it is made; `{cluster}`, `{group}` and `{id}` (the group's logical id) are filled in.
        text: what the name may be.
    """

    what: str
    pattern: str
    text: TextLimit

    @property
    def limit(self) -> int:
        """Most characters that AWS accepts."""
        return self.text.longest

    def of(self, cluster: str, group: str = "") -> str:
        """Return the name for a cluster and a group."""
        return self.pattern.format(cluster=cluster, group=group, id=logical_id(group))


OF_CLUSTER = (
    DerivedName("load balancer of the API that a cluster of several masters has", "{cluster}-api", LOAD_BALANCER_NAME),
    DerivedName("nested stack", "{cluster}-SecurityGroupsStack" + _GENERATED_SUFFIX, STACK_NAME),
    DerivedName("tag key of the cluster", "kubernetes.io/cluster/{cluster}", TAG_KEY),
    DerivedName("Name tag of the VPC", "{cluster}-vpc", TAG_VALUE),
    DerivedName("key pair", "{cluster}-ssh-XXXXXXXX", KEY_PAIR_NAME),
)
OF_GROUP = (
    DerivedName("nested stack", "{cluster}-NodeGroup{id}Stack" + _GENERATED_SUFFIX, STACK_NAME),
    DerivedName("Name tag of nodes", "{cluster}-nodes-{group}", TAG_VALUE),
)


def logical_id(name: str) -> str:
    """Return a group's name as CloudFormation's logical ids hold it, e.g. `GpuA` for `gpu-a`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("-") if part)


def group_id(group: str) -> str:
    """Return the prefix of a node group's logical ids, e.g. `NodeGroupGpu`."""
    return f"NodeGroup{logical_id(group)}"


def slot_id(letter: str) -> str:
    """Return the prefix of a master slot's logical ids, e.g. `MasterA`."""
    return f"Master{letter.upper()}"


def auto_scaling_group(prefix: str) -> str:
    """Return the logical id of a slot's or group's Auto Scaling group; instances signal it by this name."""
    return f"{prefix}AutoScalingGroup"


def wait_condition(prefix: str) -> str:
    """Return the logical id of what a slot's first instance signals when a stack of several masters is created."""
    return f"{prefix}WaitCondition"


def load_balancer(cluster: Cluster) -> str:
    """Return the name of the load balancer before several masters.

    Another one for another scheme: a load balancer with a name of its own cannot be replaced under that name.
    """
    return f"{cluster.name}-api" if cluster.api.public else f"{cluster.name}-int"


def api_host(cluster: Cluster) -> str:
    """Return the name under which instances reach the Kubernetes API; each has it in its /etc/hosts.

    No address in its place: masters may be added, and an instance tries all addresses of a name.
    """
    return f"api.{cluster.name}.internal"


def too_long(cluster: str) -> tuple[DerivedName, str] | None:
    """Return the first derived name that a cluster's name makes too long, and the name itself."""
    return next(
        ((derived, derived.of(cluster)) for derived in OF_CLUSTER if len(derived.of(cluster)) > derived.limit), None
    )


def group_too_long(cluster: Cluster, group: str) -> tuple[DerivedName, str] | None:
    """Return the first derived name that a group's name makes too long, and the name itself."""
    return next(
        (
            (derived, derived.of(cluster.name, group))
            for derived in OF_GROUP
            if len(derived.of(cluster.name, group)) > derived.limit
        ),
        None,
    )

"""AWS names that are derived from the cluster's and a group's name, and their length limits.

IAM roles (64 characters), launch templates and Auto Scaling groups are not among them: the templates leave their names
to CloudFormation, which shortens them to fit.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.cluster.logical_ids import pascal
from cfngen.cluster.model import Cluster
from cfngen.text_limits import KEY_PAIR_NAME, LOAD_BALANCER_NAME, STACK_NAME, TAG_KEY, TAG_VALUE, TextLimit

DRAIN_HOOK = "cfngen-drain"
"""Name of the lifecycle hook that delays the termination of nodes until they are drained."""
CHANGE_SET_PREFIX = "cfngen-plan-"
"""Prefix of the names of cfngen's change sets."""

# CloudFormation names a nested stack ROOT-STACK-LOGICAL-ID and appends a hyphen and up to 13 characters.
_GENERATED_SUFFIX = "-" + "X" * 13

_PARTITIONS = {
    "cn-": "aws-cn",
    "us-gov-": "aws-us-gov",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "us-isof-": "aws-iso-f",
    "eu-isoe-": "aws-iso-e",
    "eusc-": "aws-eusc",
}
"""Partitions by the beginning of their regions' names; other regions are in `aws` (botocore, partitions.json)."""


@dataclass(frozen=True)
class DerivedName:
    """A name that is derived from the cluster's name, or from the cluster's and a node group's.

    Attributes:
        subject: the kind of resource or tag that has the name.
        pattern: the name with the placeholders `{cluster}`, `{group}` and `{id}` (the group's name in PascalCase).
        text: the length and the characters that AWS accepts in the name.
    """

    subject: str
    pattern: str
    text: TextLimit

    @property
    def limit(self) -> int:
        """Maximum number of characters that AWS accepts."""
        return self.text.longest

    def of(self, cluster: str, group: str = "") -> str:
        """Return the name for a cluster and a group."""
        return self.pattern.format(cluster=cluster, group=group, id=pascal(group))


CLUSTER_NAMES = (
    DerivedName("load balancer of the API that a cluster of several masters has", "{cluster}-api", LOAD_BALANCER_NAME),
    DerivedName("nested stack", "{cluster}-SecurityGroupsStack" + _GENERATED_SUFFIX, STACK_NAME),
    DerivedName("tag key of the cluster", "kubernetes.io/cluster/{cluster}", TAG_KEY),
    DerivedName("Name tag of the VPC", "{cluster}-vpc", TAG_VALUE),
    DerivedName("key pair", "{cluster}-ssh-XXXXXXXX", KEY_PAIR_NAME),
)
GROUP_NAMES = (
    DerivedName("nested stack", "{cluster}-NodeGroup{id}Stack" + _GENERATED_SUFFIX, STACK_NAME),
    DerivedName("Name tag of nodes", "{cluster}-nodes-{group}", TAG_VALUE),
)


def load_balancer_name(cluster: Cluster) -> str:
    """Return the name of the API's load balancer.

    The name depends on the scheme (public or internal): a change of the scheme replaces the load balancer, and the new
    one cannot have the name of the old one while both exist.
    """
    return f"{cluster.name}-api" if cluster.api.public else f"{cluster.name}-int"


def api_host(cluster: Cluster) -> str:
    """Return the host name by which instances reach the Kubernetes API; each has it in /etc/hosts.

    A name, and not an address, because masters may be added and clients try all addresses of a name.
    """
    return f"api.{cluster.name}.internal"


def authority_copy_prefix(cluster: str) -> str:
    """Return the prefix of the names, in Secrets Manager, of copies of a cluster's certificate authorities."""
    return f"cfngen/{cluster}/authorities-"


def template_bucket(account: str, region: str) -> str:
    """Return the name of the bucket that cfngen creates for templates in an account and region."""
    return f"cfngen-{account}-{region}"


def aws_partition(region: str) -> str:
    """Return the partition of a region, as in ARNs."""
    return next((partition for prefix, partition in _PARTITIONS.items() if region.startswith(prefix)), "aws")


def cluster_name_too_long(cluster: str) -> tuple[DerivedName, str] | None:
    """Return the first derived name that a cluster's name makes too long, and the name itself."""
    return next(
        ((derived, derived.of(cluster)) for derived in CLUSTER_NAMES if len(derived.of(cluster)) > derived.limit), None
    )


def group_name_too_long(cluster: Cluster, group: str) -> tuple[DerivedName, str] | None:
    """Return the first derived name that a group's name makes too long, and the name itself."""
    return next(
        (
            (derived, derived.of(cluster.name, group))
            for derived in GROUP_NAMES
            if len(derived.of(cluster.name, group)) > derived.limit
        ),
        None,
    )

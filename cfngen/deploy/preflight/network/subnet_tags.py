"""The tags by which controllers find existing subnets for load balancers of services, and how a deployment adds them.

A subnet that cfngen creates has them. One that existed before gets those that it lacks only with
`network.tagExisting`. Which tags `cfngen deploy` has added is noted in a further tag of the subnet, in the same call:
by it a deletion knows what it may remove, whatever happened in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import INTERNAL_SUBNET_ROLE, PUBLIC_SUBNET_ROLE, SUBNET_ROLES, added_tags_note
from cfngen.cluster.network.topology import is_private
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.network import list_route_tables, list_subnets, route_table_of
from cfngen.deploy.aws.tags import CLUSTER_TAG_PREFIX, cluster_tag, tag_map
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.preflight.findings import Finding, FindingsError, Severity, problem, refusal, warning
from cfngen.deploy.preflight.network.situation import (
    NamedSubnet,
    Situation,
    default_route,
    named_subnets,
    with_named_parts,
)
from cfngen.text import join_and, pluralize, verb_form

SHARED = "shared"
MAX_TAGS = 50
"""Tags of one resource, without those of AWS ("Tag restrictions", Amazon EC2 User Guide)."""
# "Subnet Auto Discovery" in the documentation of the AWS load balancer controller: a role is 1 or empty.
_ROLE_VALUES = ("1", "")


@dataclass(frozen=True)
class SubnetTag:
    """A tag of an existing subnet.

    Attributes:
        subnet: id of the subnet.
        key: key of the tag.
        value: its value.
    """

    subnet: str
    key: str
    value: str


class SubnetTagsError(FindingsError):
    """Existing subnets cannot get the tags that they lack."""

    code = "subnet-tags"
    advice = "nothing was changed; correct the tags, or remove network.tagExisting and tag the subnets yourself."


def needed_tags(
    cluster: Cluster, subnet: NamedSubnet, tags: Mapping[str, str], table: AwsObject | None
) -> dict[str, str]:
    """Return the tags that a subnet must have for controllers to use it, whether or not it has them.

    The cloud controller manager leaves out subnets with another cluster's tag and without this cluster's, and prefers
    those with a role (`findSubnets` and `findELBSubnets` in pkg/providers/v1/aws.go of cloud-provider-aws). The AWS
    load balancer controller finds subnets by their role ("Subnet Auto Discovery" in its documentation).

    Args:
        table: its route table; None if it is not known.
    """
    needed = {INTERNAL_SUBNET_ROLE if _is_internal(cluster, subnet, table) else PUBLIC_SUBNET_ROLE: "1"}
    if other_clusters(cluster, tags):
        needed[cluster_tag(cluster.name)] = SHARED
    return needed


def other_clusters(cluster: Cluster, tags: Mapping[str, str]) -> list[str]:
    """Return the names of the other clusters whose tags a subnet has."""
    names = (key.removeprefix(CLUSTER_TAG_PREFIX) for key in tags if key.startswith(CLUSTER_TAG_PREFIX))
    return sorted(name for name in names if name != cluster.name)


def find_faults(cluster: Cluster, subnet: NamedSubnet, tags: Mapping[str, str], needed: Mapping[str, str]) -> list[str]:
    """Return why a subnet cannot get the tags that it needs, as sentences without the subnet's key."""
    faults = []
    for key, value in needed.items():
        allowed_values = _ROLE_VALUES if key in SUBNET_ROLES else (value,)
        if key in tags and tags[key] not in allowed_values:
            faults.append(
                f"{subnet.id} has the tag {key} with the value {tags[key]} and not {value}, and cfngen overwrites no "
                "tag of a subnet"
            )
    note = added_tags_note(cluster.name)
    missing_keys = [key for key in needed if key not in tags]
    new_keys = missing_keys if note in tags else [*missing_keys, note]
    room = MAX_TAGS - sum(not key.startswith("aws:") for key in tags)
    if missing_keys and len(new_keys) > room:
        faults.append(
            f"{subnet.id} has room for {pluralize(max(room, 0), 'tag')} (EC2 allows {MAX_TAGS}), and cfngen would add "
            f"{join_and(new_keys)}; remove tags that nobody needs"
        )
    return faults


def find_missing(account: Account, cluster: Cluster, values: Mapping[str, str]) -> tuple[SubnetTag, ...]:
    """Return the tags that a deployment will add to existing subnets; none without `network.tagExisting`.

    Raises:
        SubnetTagsError: a subnet has a tag with another value, or too many tags.
    """
    return tuple(tag for _, _, missing in read_missing(account, cluster, values) for tag in missing)


def read_missing(
    account: Account, cluster: Cluster, values: Mapping[str, str]
) -> list[tuple[str, dict[str, str], Sequence[SubnetTag]]]:
    """Return each existing subnet's id, its tags, and those that it lacks.

    Raises:
        SubnetTagsError: a subnet has a tag with another value, or too many tags.
    """
    values = with_named_parts(cluster, values)
    vpc_id = values.get("VpcId", "")
    subnets = {subnet.id: subnet for subnet in named_subnets(cluster, values) if subnet.id}
    if not cluster.network.tag_existing or not vpc_id or not subnets:
        return []
    tables = list_route_tables(account, vpc_id)
    rows: list[tuple[str, dict[str, str], Sequence[SubnetTag]]] = []
    problems: list[Finding] = []
    for described in list_subnets(account, vpc_id):
        subnet = subnets.get(described.id)
        if subnet is None:
            continue
        tags = dict(described.tags)
        table_id = route_table_of(tables, subnet.id)
        table = next((table for table in tables if table["RouteTableId"] == table_id), None)
        needed = needed_tags(cluster, subnet, tags, table)
        problems += [refusal(subnet.id_key, fault) for fault in find_faults(cluster, subnet, tags, needed)]
        missing = [SubnetTag(subnet.id, key, value) for key, value in needed.items() if key not in tags]
        rows.append((subnet.id, tags, missing))
    if problems:
        raise SubnetTagsError(tuple(problems))
    return rows


def _is_internal(cluster: Cluster, subnet: NamedSubnet, table: AwsObject | None) -> bool:
    """Return whether a subnet is private: its instances are not reached from the internet.

    The subnets of a public cluster are private if their route table leads elsewhere than to an internet gateway, for
    example to a NAT gateway.
    """
    if is_private(cluster):
        return not subnet.is_public
    route = default_route(table) if table else None
    return route is not None and not str(route.get("GatewayId", "")).startswith("igw-")


_TAGGING_KEY = "network.tagExisting"


def find_tag_problems(situation: Situation) -> Iterator[Finding]:
    """Yield a finding for each tag without which controllers would not create load balancers in existing subnets.

    With `network.tagExisting`, `cfngen deploy` adds what is missing, so only what keeps it from that is a problem.
    """
    cluster = situation.cluster
    # Subnets by the tag that they lack, its value, and the clusters whose tags they have.
    lacking: dict[tuple[str, str, tuple[str, ...]], list[NamedSubnet]] = {}
    for subnet, described in situation.existing_subnets:
        tags = tag_map(described.get("Tags"))
        needed = needed_tags(cluster, subnet, tags, situation.route_table(subnet))
        faults = list(find_faults(cluster, subnet, tags, needed)) if cluster.network.tag_existing else []
        for fault in faults:
            remedy = f"correct its tags, or remove {_TAGGING_KEY} and tag the subnets yourself"
            yield problem(subnet.id_key, fault, remedy)
        for key, value in {} if faults else needed.items():
            if key not in tags:
                owners = () if key in SUBNET_ROLES else tuple(other_clusters(cluster, tags))
                lacking.setdefault((key, value, owners), []).append(subnet)
    for (key, value, owners), subnets in lacking.items():
        names = " ".join(subnet.id for subnet in subnets)
        command = f"aws ec2 create-tags --region {situation.region} --resources {names} --tags Key={key},Value={value}"
        yield _judge_missing_tag(cluster, subnets, f"{key} = {value}", owners, command)


def _judge_missing_tag(
    cluster: Cluster, subnets: Sequence[NamedSubnet], tag: str, owners: Sequence[str], command: str
) -> Finding:
    """Return what it means that existing subnets lack a tag, which a command adds to all of them.

    Args:
        owners: the other clusters whose tags the subnets have, if it is the cluster's own tag that they lack.
    """
    finding_key = subnets[0].id_key if len(subnets) == 1 else "network.subnets"
    names, has = join_and([subnet.id for subnet in subnets]), verb_form(len(subnets), "have")
    key = tag.partition(" = ")[0]
    if cluster.network.tag_existing:
        remedy = "who creates the stack in the console adds it with"
        text = f"the deployment will give {names} the missing {tag}"
        return Finding(Severity.OK, text, finding_key, remedy, (command,))
    if key in SUBNET_ROLES:
        kind = "internal" if key == INTERNAL_SUBNET_ROLE else "internet-facing"
        text = f"{names} {has} no tag {key}, by which controllers find subnets for {kind} load balancers"
        remedy = f"add it, set {_TAGGING_KEY}, or name the subnets in each service's annotations"
    else:
        others = f"tag of the cluster {owners[0]}" if len(owners) == 1 else f"tags of the clusters {join_and(owners)}"
        gets = verb_form(len(subnets), "get")
        pronoun = "it" if len(subnets) == 1 else "they"
        text = f"{names} {has} the {others} and not that of {cluster.name}, so {pronoun} {gets} no load balancers of "
        text, remedy = f"{text}services", f"share it with this cluster, or set {_TAGGING_KEY}"
    return warning(finding_key, text, remedy, command)

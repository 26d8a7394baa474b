"""Rules of security groups, as EC2 tells them apart: those of the templates, and those that are in no template."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.tags import is_owned_by, tag_map
from cfngen.deploy.aws.types import AwsObject

# Types of rules that are resources of their own: whether they are for outgoing traffic.
RULE_TYPES: Mapping[str, bool] = {"AWS::EC2::SecurityGroupIngress": False, "AWS::EC2::SecurityGroupEgress": True}
# Properties of SecurityGroup with rules: whether these are for outgoing traffic.
_INLINE_RULES: Mapping[str, bool] = {"SecurityGroupIngress": False, "SecurityGroupEgress": True}
# Where a rule in a template has its peer, and where IpPermission of the EC2 API has it.
_PEERS: Mapping[str, tuple[str, str]] = {
    "CidrIp": ("IpRanges", "CidrIp"),
    "CidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "SourcePrefixListId": ("PrefixListIds", "PrefixListId"),
    "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
}
# Descriptions with which controllers mark their rules: the cloud controller manager those of network load balancers
# (`NLBClientRuleDescription` and others, cloud-provider-aws v1.36.1, pkg/providers/v1/aws_loadbalancer.go), and the
# AWS load balancer controller those to its targets (pkg/targetgroupbinding/networking_manager.go).
_CONTROLLERS_DESCRIPTIONS = ("kubernetes.io/rule/", "elbv2.k8s.aws/")


@dataclass(frozen=True)
class GroupRule:
    """A rule of a security group; EC2 refuses a second equal one.

    Attributes:
        is_egress: whether it is for outgoing traffic.
        protocol: `tcp`, `udp`, `icmp` or a number; `-1` for all protocols.
        ports: first and last port, or type and code of `icmp`; empty for all.
        peer: the source or destination: an address range, or the id of a group or of a prefix list.
        peer_kind: where IpPermission of the EC2 API has the peer, e.g. `IpRanges` and `CidrIp`.
    """

    group: str
    is_egress: bool
    protocol: str
    ports: tuple[int, ...]
    peer: str
    peer_kind: tuple[str, str]

    def __str__(self) -> str:
        traffic = "all traffic" if self.protocol == "-1" else self.protocol
        first, last = self.ports or ("", "")
        ports = f" {first}" if first == last else f" {first}-{last}"
        return f"{traffic}{ports if self.ports else ''} {'to' if self.is_egress else 'from'} {self.peer}"

    def authorize_command(self, region: str, description: str) -> str:
        """Return the command of the AWS CLI that adds the rule."""
        return self._command("authorize", region, {"Description": description} if description else {})

    def revoke_command(self, region: str) -> str:
        """Return the command of the AWS CLI that takes the rule away."""
        return self._command("revoke", region, {})

    def _command(self, verb: str, region: str, more: Mapping[str, str]) -> str:
        list_name, item_name = self.peer_kind
        permission: dict[str, object] = {"IpProtocol": self.protocol}
        if self.ports:
            permission["FromPort"], permission["ToPort"] = self.ports
        permission[list_name] = [{item_name: self.peer, **more}]
        direction = "egress" if self.is_egress else "ingress"
        return (
            f"aws ec2 {verb}-security-group-{direction} --region {region} --group-id {self.group} "
            f"--ip-permissions {shlex.quote(json.dumps([permission]))}"
        )


def rule_of_resource(kind: str, properties: Mapping[str, Any]) -> GroupRule | None:
    """Return the rule that a resource is; None if it is no rule, or one of which not all values are known."""
    if kind not in RULE_TYPES or not isinstance(properties.get("GroupId"), str):
        return None
    return _parse_rule(properties["GroupId"], properties, is_egress=RULE_TYPES[kind])


def inline_rules(group: str, properties: Mapping[str, Any]) -> dict[GroupRule, str]:
    """Return the rules in the properties of a SecurityGroup, with their descriptions."""
    return {
        rule: described.get("Description", "")
        for name, is_egress in _INLINE_RULES.items()
        for described in properties.get(name) or ()
        if (rule := _parse_rule(group, described, is_egress=is_egress))
    }


def _parse_rule(group: str, properties: Mapping[str, Any], *, is_egress: bool) -> GroupRule | None:
    peers = [(properties[key], kind) for key, kind in _PEERS.items() if properties.get(key)]
    if len(peers) != 1 or not isinstance(peers[0][0], str):
        return None
    [(peer, peer_kind)] = peers
    protocol = str(properties["IpProtocol"])
    ports = tuple(int(properties[key]) for key in ("FromPort", "ToPort") if properties.get(key) is not None)
    # EC2 describes rules without ports with -1.
    return GroupRule(
        group, is_egress, protocol, () if protocol == "-1" or set(ports) == {-1} else ports, peer, peer_kind
    )


def read_ingress_rules(account: Account, groups: Collection[str], cluster: str) -> Iterator[GroupRule]:
    """Yield the rules of groups for incoming traffic, but those that controllers have made for load balancers."""
    rules = account.items("ec2.describe_security_group_rules", "SecurityGroupRules", filters={"group-id": groups})
    described = [rule for rule in rules if not rule["IsEgress"]]
    peers = {rule["ReferencedGroupInfo"]["GroupId"] for rule in described if "ReferencedGroupInfo" in rule}
    of_controllers = _groups_of_controllers(account, peers - set(groups), cluster)
    for rule in described:
        if rule.get("Description", "").startswith(_CONTROLLERS_DESCRIPTIONS):
            continue
        parsed = _parse_rule(rule["GroupId"], _as_in_template(rule), is_egress=False)
        if parsed and parsed.peer not in of_controllers:
            yield parsed


def _groups_of_controllers(account: Account, groups: Collection[str], cluster: str) -> frozenset[str]:
    """Return those of the groups that were made for the load balancers of this cluster, by their tags."""
    described = account.items("ec2.describe_security_groups", "SecurityGroups", filters={"group-id": groups})
    return frozenset(group["GroupId"] for group in described if is_owned_by(tag_map(group.get("Tags")), cluster))


def _as_in_template(rule: AwsObject) -> dict[str, object]:
    return {
        **{key: rule.get(key) for key in ("IpProtocol", "FromPort", "ToPort", "CidrIpv6")},
        "CidrIp": rule.get("CidrIpv4"),
        "SourceSecurityGroupId": rule.get("ReferencedGroupInfo", {}).get("GroupId"),
        "SourcePrefixListId": rule.get("PrefixListId"),
    }

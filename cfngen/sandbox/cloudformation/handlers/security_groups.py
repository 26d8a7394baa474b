"""Handlers of security groups and their rules."""

from __future__ import annotations

from typing import NamedTuple

from cfngen.sandbox.cloudformation.errors import NotModelledError
from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall, delete_on_failure
from cfngen.sandbox.untyped import JsonDict, Properties

# The egress rule that EC2 adds to a new security group.
DEFAULT_EGRESS: list[JsonDict] = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]


class SecurityGroup(Handler):
    """A security group; as in CloudFormation, egress rules in the template replace its default egress rule."""

    supported_properties = frozenset(
        {"GroupDescription", "VpcId", "SecurityGroupEgress", "SecurityGroupIngress", "Tags"}
    )
    deletion = ("ec2", "delete_security_group", "GroupId")

    def create(self, call: HandlerCall) -> CreatedResource:
        group_id = call.ec2.create_security_group(
            GroupName=call.generate_name(), Description=call["GroupDescription"], VpcId=call["VpcId"],
            **call.tag_specifications("security-group"),
        )["GroupId"]  # fmt: skip
        with delete_on_failure(lambda: call.ec2.delete_security_group(GroupId=group_id)):
            if call.properties.get("SecurityGroupEgress"):
                call.ec2.revoke_security_group_egress(GroupId=group_id, IpPermissions=DEFAULT_EGRESS)
                call.ec2.authorize_security_group_egress(
                    GroupId=group_id, IpPermissions=_egress_permissions(call.properties)
                )
            if ingress := _ingress_permissions(call.properties):
                call.ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=ingress)
        return CreatedResource(group_id, {"GroupId": group_id, "Id": group_id, "VpcId": call["VpcId"]})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        ec2 = call.ec2
        for name, permissions_of, revoke, authorize in (
            ("SecurityGroupEgress", _egress_permissions, ec2.revoke_security_group_egress,
             ec2.authorize_security_group_egress),
            ("SecurityGroupIngress", _ingress_permissions, ec2.revoke_security_group_ingress,
             ec2.authorize_security_group_ingress),
        ):  # fmt: skip
            if name in changed:
                old, new = permissions_of(old_properties), permissions_of(call.properties)
                if removed := [permission for permission in old if permission not in new]:
                    revoke(GroupId=call.physical_id, IpPermissions=removed)
                if added := [permission for permission in new if permission not in old]:
                    authorize(GroupId=call.physical_id, IpPermissions=added)

    def read_actual(self, call: HandlerCall) -> Properties | None:
        actual_values: JsonDict = {}
        for name, egress in (("SecurityGroupEgress", True), ("SecurityGroupIngress", False)):
            described_rules = _read_rules(call, call.physical_id, egress=egress)
            if described_rules is None:
                return None
            if name not in call.properties:
                continue  # rules of other resources of the template, and EC2's default rule, are no drift
            expected_rules = [_without_description(rule) for rule in call.properties.get(name, [])]
            actual_rules = [_without_description(rule) for rule in described_rules]
            is_same = sorted(map(str, expected_rules)) == sorted(map(str, actual_rules))
            actual_values.update(call.pick(name) if is_same else {name: actual_rules})
        return actual_values


class SecurityGroupIngress(Handler):
    supported_properties = frozenset({
        "GroupId", "SourceSecurityGroupId", "SourcePrefixListId", "CidrIp", "IpProtocol", "FromPort", "ToPort",
        "Description",
    })  # fmt: skip

    def create(self, call: HandlerCall) -> CreatedResource:
        rule_id = call.ec2.authorize_security_group_ingress(
            GroupId=call["GroupId"], IpPermissions=[_to_ip_permission(call.properties)]
        )["SecurityGroupRules"][0]["SecurityGroupRuleId"]  # fmt: skip
        return CreatedResource(rule_id, {"Id": rule_id})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        rule = {"Description": "", **call.properties}  # an empty description removes the old one
        call.ec2.update_security_group_rule_descriptions_ingress(
            GroupId=call["GroupId"], IpPermissions=[_to_ip_permission(rule)]
        )

    def read_actual(self, call: HandlerCall) -> Properties | None:
        """A rule that was added again has another id, the primary identifier of the type (its schema)."""
        filters = [{"Name": "security-group-rule-id", "Values": [call.physical_id]}]
        return (
            call.properties if call.ec2.describe_security_group_rules(Filters=filters)["SecurityGroupRules"] else None
        )

    def delete(self, call: HandlerCall) -> None:
        call.ec2.revoke_security_group_ingress(
            GroupId=call["GroupId"], IpPermissions=[_to_ip_permission(call.properties)]
        )


PROTOCOL_AND_PORT_KEYS = ("IpProtocol", "FromPort", "ToPort")


class IpPermissionPeer(NamedTuple):
    """Where an IpPermission of EC2 has the source or destination of a rule: a list, and the key in its items."""

    list_key: str
    item_key: str


# By the key for the source or destination of a rule in templates: its place in an IpPermission.
PEERS_BY_TEMPLATE_KEY = {
    "CidrIp": IpPermissionPeer("IpRanges", "CidrIp"),
    "SourceSecurityGroupId": IpPermissionPeer("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": IpPermissionPeer("UserIdGroupPairs", "GroupId"),
    "SourcePrefixListId": IpPermissionPeer("PrefixListIds", "PrefixListId"),
    "DestinationPrefixListId": IpPermissionPeer("PrefixListIds", "PrefixListId"),
}


def _to_ip_permission(rule: Properties) -> JsonDict:
    supported_keys = {*PROTOCOL_AND_PORT_KEYS, "GroupId", "Description", *PEERS_BY_TEMPLATE_KEY}
    if unsupported := sorted(set(rule) - supported_keys):
        raise NotModelledError(f"{unsupported} in rules of security groups")
    [peer_key] = set(rule) & set(PEERS_BY_TEMPLATE_KEY)
    peer = PEERS_BY_TEMPLATE_KEY[peer_key]
    item = {peer.item_key: rule[peer_key]}
    if "Description" in rule:
        item["Description"] = rule["Description"]
    protocol_and_ports = {key: rule[key] for key in PROTOCOL_AND_PORT_KEYS if key in rule}
    return {**protocol_and_ports, peer.list_key: [item]}


def _egress_permissions(properties: Properties) -> list[JsonDict]:
    return [_to_ip_permission(rule) for rule in properties.get("SecurityGroupEgress", [])] or DEFAULT_EGRESS


def _ingress_permissions(properties: Properties) -> list[JsonDict]:
    return [_to_ip_permission(rule) for rule in properties.get("SecurityGroupIngress", [])]


def _read_rules(call: HandlerCall, group_id: str, *, egress: bool) -> list[JsonDict] | None:
    """Read a security group's actual rules, and return them in the format of a template; None without such a group."""
    groups = call.ec2.describe_security_groups(Filters=[{"Name": "group-id", "Values": [group_id]}])["SecurityGroups"]
    if not groups:
        return None
    rules = []
    for permission in groups[0]["IpPermissionsEgress" if egress else "IpPermissions"]:
        protocol_and_ports = {key: permission[key] for key in PROTOCOL_AND_PORT_KEYS if key in permission}
        group_key = "DestinationSecurityGroupId" if egress else "SourceSecurityGroupId"
        peers = [{"CidrIp": ip_range["CidrIp"]} for ip_range in permission["IpRanges"]]
        peers += [{"SourcePrefixListId": item["PrefixListId"]} for item in permission.get("PrefixListIds", [])]
        peers += [{group_key: group_pair["GroupId"]} for group_pair in permission["UserIdGroupPairs"]]
        rules += [{**protocol_and_ports, **peer} for peer in peers]
    return rules


def _without_description(rule: Properties) -> JsonDict:
    """A rule as texts and without its description, for comparison; a rule for all protocols (-1) has no ports."""
    keys = ["IpProtocol", "CidrIp", "SourcePrefixListId", "SourceSecurityGroupId", "DestinationSecurityGroupId"]
    if str(rule["IpProtocol"]) != "-1":
        keys += ["FromPort", "ToPort"]
    return {key: str(rule[key]) for key in keys if rule.get(key) is not None}

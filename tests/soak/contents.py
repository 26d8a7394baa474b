"""What an account holds, in a form in which it can be compared with another account, or with itself before.

What services name by chance (ids, ARNs, physical names) has the name of what it is: the logical id of a resource with
the stacks around it, or the landlord's word. What is left out, since two clusters of one file differ in it:

- times, and numbers that count changes: versions of launch templates (the one that a group uses is compared);
- how many instances a group has between its least and its greatest: an autoscaler changes that, and so does a failure;
- IOPS and throughput of a volume where its template says none: EBS keeps those it had;
- ids of instances, of their first interfaces and volumes: what they are launched from is compared;
- contents of secrets, which are made by chance, and templates of earlier deployments in the operator's bucket.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from cloud import Cloud
from clusters import resources, running_instances

from cfngen.cluster.naming.logical_ids import BASTION_NETWORK_INTERFACE
from cfngen.sandbox.cloudformation import Stack
from cfngen.sandbox.cloudformation.stack import masked_parameters

Contents = dict[str, list[str]]
NESTED = "AWS::CloudFormation::Stack"
VOLATILE = re.compile(
    r".*(Time|Date|Timestamp|VersionNumber|VersionId)|Version|CreatedBy|ResponseMetadata|RoleId|PolicyId"
    r"|InstanceProfileId|AvailableIpAddressCount|AttachmentCount|SecurityGroupRuleId|.*AssociationId|AttachmentId"
    r"|DNSName|PublicDnsName|MacAddress|Instances|DesiredCapacity|KeyFingerprint|KeyPairId|VersionIdsToStages"
    r"|SecretVersionsToStages"
)
# What a service has numbered by chance and nobody has a name for; and the end of a name that CloudFormation makes up.
_BY_CHANCE = re.compile(
    r"\b[a-z]+-[0-9a-f]{8,17}\b|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=-)[0-9A-F]{12}\b|(?<=-)[0-9a-f]{12}\b"
    r"|/[0-9a-f]{16}\b"
)
_KEPT = ("Iops", "Throughput")
_IDENTITY = re.compile(r"arn:.+|[a-z]+-[0-9a-f]{8,17}|[0-9]+(\.[0-9]+){3}")


def contents(cloud: Cloud, root: str, names: Mapping[str, str], retained: Collection[str]) -> Contents:
    """What the account holds.

    Args:
        cloud: the account.
        root: name of the cluster's stack.
        names: what the landlord calls things, by their ids.
        retained: buckets that have left the stacks, and that a new cluster of the same file does not have.
    """
    live = [each for each in cloud.engine.stacks() if each.name == root and each.status != "DELETE_COMPLETE"]
    known = dict(names)
    for stack in live:
        # What an attribute says is another resource's id as often as not; and the same in several resources.
        for real, name in sorted(_names(stack, ()), key=lambda pair: ("." in pair[1], pair[1])):
            known.setdefault(real, name)
    known.update(_instances(cloud, known))
    plain = _Plain(known)
    found = {kind: sorted(plain(item) for item in items) for kind, items in _held(cloud, known, live, retained)}
    return {**found, "stacks": sorted(plain(item) for stack in live for item in _stacks(stack, ()))}


def differences(before: Contents, after: Contents) -> list[str]:
    """What two accounts differ in: of things of a kind only the values that differ, one line for each."""
    found: list[str] = []
    for kind in sorted(before.keys() | after.keys()):
        one, other = list(before.get(kind, ())), list(after.get(kind, ()))
        for item in list(one):
            if item in other:
                one.remove(item)
                other.remove(item)
        old, new = ([line for item in items for line in _lines(json.loads(item))] for items in (one, other))
        found += [f"{kind}: only before: {line}" for line in old if line not in new]
        found += [f"{kind}: only after: {line}" for line in new if line not in old]
        if (one or other) and old == new:
            found.append(f"{kind}: {one} became {other}")
    return found


def _lines(item: Any, path: str = "") -> Iterator[str]:
    if isinstance(item, dict):
        for key, value in item.items():
            yield from _lines(value, f"{path}.{key}")
    elif isinstance(item, list):
        for value in item:
            yield from (
                _lines(value, f"{path}[]") if len(json.dumps(value)) > 200 else (f"{path}[] = {json.dumps(value)}",)
            )
    else:
        yield f"{path} = {item}"


def _names(stack: Stack, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Names of everything that a stack and its nested stacks have."""
    here = "/".join(path) or "root"
    yield stack.id, f"<stack {here}>"
    if path:
        yield stack.name, f"<stack {here}>"
    for key, each in stack.resources.items():
        if each.child is not None:
            yield from _names(each.child, (*path, key))
        elif each.exists:
            yield each.physical_id, f"<{key}>"
            for name, value in each.attributes.items():
                # Masters' addresses are fixed; that of the bastion is any free one of its subnet.
                is_fixed = name == "PrimaryPrivateIpAddress" and key != BASTION_NETWORK_INTERFACE
                if isinstance(value, str) and _IDENTITY.fullmatch(value) and not is_fixed:
                    yield value, f"<{key}.{name}>"
                    yield f"ip-{value.replace('.', '-')}.", f"<name of {key}>."


def _instances(cloud: Cloud, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for identifier, each in running_instances(cloud.cluster.region).items():
        tags = {tag["Key"]: tag["Value"] for tag in each.get("Tags", ())}
        group = tags.get("aws:autoscaling:groupName", "")
        yield identifier, f"<instance of {known.get(group, group)}>"


class _Plain:
    """Makes one text of a thing, with names in place of ids, without what is compared nowhere."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        longest_first = sorted((name for name in names if name), key=len, reverse=True)
        self._ids = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def __call__(self, item: Any) -> str:
        return json.dumps(self._plain(item), sort_keys=True, default=str)

    def _plain(self, item: Any) -> Any:
        if isinstance(item, Mapping):
            return {
                self._text(key): _decoded(self._plain, value)
                if key == "UserData" and isinstance(value, str)
                else self._plain(value)
                for key, value in item.items()
                if not VOLATILE.fullmatch(key)
            }
        if isinstance(item, (list, tuple)):
            return sorted(
                (self._plain(each) for each in item), key=lambda each: json.dumps(each, sort_keys=True, default=str)
            )
        return self._text(item) if isinstance(item, str) else item

    def _text(self, text: str) -> str:
        return _BY_CHANCE.sub("#", self._ids.sub(lambda match: self._names[match[0]], text))


def _decoded(plain: Callable[[Any], Any], value: str) -> Any:
    return plain(base64.b64decode(value).decode())


def _stacks(stack: Stack, path: tuple[str, ...]) -> Iterator[Any]:
    yield {
        "path": "/".join(path),
        "parameters": dict(masked_parameters(stack.revision)),
        "outputs": stack.outputs,
        "exports": stack.exports,
        "tags": dict(stack.tags),
        "resources": sorted(f"{key} {each.type}" for key, each in stack.resources.items() if each.exists),
        "policy": stack.policy,
        "protected": stack.protected,
        "metadata": stack.template.body.get("Metadata"),
    }
    for key, child in stack.children.items():
        yield from _stacks(child, (*path, key))


def _held(
    cloud: Cloud, known: Mapping[str, str], live: list[Stack], retained: Collection[str]
) -> Iterator[tuple[str, list[Any]]]:
    """Everything that services describe."""
    ec2 = cloud.client("ec2")
    for kind, method, items in (
        ("VPCs", ec2.describe_vpcs, "Vpcs"),
        ("DHCP options", ec2.describe_dhcp_options, "DhcpOptions"),
        ("gateways", ec2.describe_internet_gateways, "InternetGateways"),
        ("subnets", ec2.describe_subnets, "Subnets"),
        ("route tables", ec2.describe_route_tables, "RouteTables"),
        ("security groups", ec2.describe_security_groups, "SecurityGroups"),
        ("addresses", ec2.describe_addresses, "Addresses"),
        ("key pairs", ec2.describe_key_pairs, "KeyPairs"),
    ):
        yield kind, method()[items]
    lists = ec2.describe_managed_prefix_lists()["PrefixLists"]
    yield "prefix lists", [each for each in lists if each["OwnerId"] != "AWS"]
    # The first interface and volume of an instance come and go with it.
    nat_gateways = ec2.describe_nat_gateways()["NatGateways"]
    yield "NAT gateways", [each for each in nat_gateways if each["State"] != "deleted"]
    yield "endpoints", [_with_private_names(each) for each in ec2.describe_vpc_endpoints()["VpcEndpoints"]]
    interfaces = ec2.describe_network_interfaces()["NetworkInterfaces"]
    yield "interfaces", [each for each in interfaces if each["NetworkInterfaceId"] in known]
    said = {each.physical_id: each.properties for stack in live for each in resources(stack).values()}
    yield (
        "volumes",
        [
            {
                key: value
                for key, value in each.items()
                if key not in ("Iops", "Throughput") or key in said[each["VolumeId"]]
            }
            for each in ec2.describe_volumes()["Volumes"]
            if each["VolumeId"] in said
        ],
    )
    yield from _groups(cloud)
    yield from _identities(cloud)
    yield from _stored(cloud, retained)
    yield from _balancers(cloud)
    yield "hosted zones", list(_zones(cloud, retained))


def _with_private_names(endpoint: dict[str, Any]) -> dict[str, Any]:
    """An endpoint without the names that have its id."""
    names = [each["DnsName"] for each in endpoint.get("DnsEntries", ())]
    return {**endpoint, "DnsEntries": [each for each in names if not each.startswith(endpoint["VpcEndpointId"])]}


def _groups(cloud: Cloud) -> Iterator[tuple[str, list[Any]]]:
    """Groups, each with the contents of the launch template's version that it uses."""
    ec2, autoscaling = cloud.client("ec2"), cloud.client("autoscaling")
    templates = ec2.describe_launch_templates()["LaunchTemplates"]
    yield "launch templates", templates
    found = autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    used = []
    for each in found:
        mixed = each.get("MixedInstancesPolicy")
        launch = mixed["LaunchTemplate"]["LaunchTemplateSpecification"] if mixed else each["LaunchTemplate"]
        [version] = ec2.describe_launch_template_versions(
            LaunchTemplateId=launch["LaunchTemplateId"], Versions=[launch["Version"]]
        )["LaunchTemplateVersions"]
        hooks = autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=each["AutoScalingGroupName"])
        used.append({"group": each, "launches": version["LaunchTemplateData"], "hooks": hooks["LifecycleHooks"]})
    yield "groups", used


def _identities(cloud: Cloud) -> Iterator[tuple[str, list[Any]]]:
    iam = cloud.client("iam")
    roles = []
    for each in iam.list_roles()["Roles"]:
        name = each["RoleName"]
        inline = {
            policy: iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
            for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]
        }
        attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        roles.append({**iam.get_role(RoleName=name)["Role"], "inline": inline, "attached": attached})
    yield "roles", roles
    policies = iam.list_policies(Scope="Local")["Policies"]
    yield (
        "policies",
        [
            {
                "arn": each["Arn"],
                "document": iam.get_policy_version(PolicyArn=each["Arn"], VersionId=each["DefaultVersionId"])[
                    "PolicyVersion"
                ]["Document"],
            }
            for each in policies
        ],
    )
    yield "instance profiles", iam.list_instance_profiles()["InstanceProfiles"]


def _stored(cloud: Cloud, retained: Collection[str]) -> Iterator[tuple[str, list[Any]]]:
    kms, s3 = cloud.client("kms"), cloud.client("s3")
    keys = [kms.describe_key(KeyId=each["KeyId"])["KeyMetadata"] for each in kms.list_keys()["Keys"]]
    yield (
        "keys",
        [
            {
                **each,
                "policy": json.loads(kms.get_key_policy(KeyId=each["KeyId"], PolicyName="default")["Policy"]),
                "rotation": kms.get_key_rotation_status(KeyId=each["KeyId"])["KeyRotationEnabled"],
                "tags": kms.list_resource_tags(KeyId=each["KeyId"])["Tags"],
            }
            for each in keys
            if each["KeyState"] == "Enabled" and not each["Description"].startswith("Default ")
        ],
    )
    yield "secrets", cloud.client("secretsmanager").list_secrets()["SecretList"]
    yield (
        "buckets",
        [
            {
                "name": each["Name"],
                **{
                    what: _or_nothing(getattr(s3, f"get_bucket_{what}"), Bucket=each["Name"])
                    for what in ("encryption", "versioning", "policy", "tagging", "ownership_controls")
                },
                "lifecycle": _or_nothing(s3.get_bucket_lifecycle_configuration, Bucket=each["Name"]),
                "access": _or_nothing(s3.get_public_access_block, Bucket=each["Name"]),
            }
            for each in s3.list_buckets()["Buckets"]
            if each["Name"] not in retained
        ],
    )


def _or_nothing(call: Callable[..., dict[str, Any]], **arguments: Any) -> Any:
    """What a bucket's setting is; nothing where it has none."""
    from botocore.exceptions import ClientError

    try:
        return call(**arguments)
    except ClientError:
        return None


def _balancers(cloud: Cloud) -> Iterator[tuple[str, list[Any]]]:
    elb = cloud.client("elbv2")
    balancers = elb.describe_load_balancers()["LoadBalancers"]
    yield (
        "load balancers",
        [
            {
                **each,
                "attributes": elb.describe_load_balancer_attributes(LoadBalancerArn=each["LoadBalancerArn"])[
                    "Attributes"
                ],
            }
            for each in balancers
        ],
    )
    yield (
        "listeners",
        [
            listener
            for each in balancers
            for listener in elb.describe_listeners(LoadBalancerArn=each["LoadBalancerArn"])["Listeners"]
        ],
    )
    yield (
        "target groups",
        [
            {
                **each,
                "attributes": elb.describe_target_group_attributes(TargetGroupArn=each["TargetGroupArn"])["Attributes"],
                "targets": [
                    target["Target"]
                    for target in elb.describe_target_health(TargetGroupArn=each["TargetGroupArn"])[
                        "TargetHealthDescriptions"
                    ]
                ],
            }
            for each in elb.describe_target_groups()["TargetGroups"]
        ],
    )


def _zones(cloud: Cloud, retained: Collection[str]) -> Iterator[Any]:
    """Hosted zones with their records, but for those that every zone has."""
    route53 = cloud.client("route53")
    balancers = cloud.client("elbv2").describe_load_balancers()["LoadBalancers"]
    arns = {each["DNSName"]: each["LoadBalancerArn"] for each in balancers}
    for each in route53.list_hosted_zones()["HostedZones"]:
        identifier = each["Id"].removeprefix("/hostedzone/")
        if identifier in retained:
            continue
        records = [
            {**record, "balancer": arns.get(record.get("AliasTarget", {}).get("DNSName", "").rstrip("."))}
            for record in route53.list_resource_record_sets(HostedZoneId=identifier)["ResourceRecordSets"]
            if record["Type"] not in ("NS", "SOA")
        ]
        tags = route53.list_tags_for_resource(ResourceType="hostedzone", ResourceId=identifier)
        yield {
            "id": identifier,
            "name": each["Name"],
            "VPCs": route53.get_hosted_zone(Id=identifier).get("VPCs", []),
            "tags": tags["ResourceTagSet"]["Tags"],
            "records": records,
        }

"""Clusters created from their templates in the account of a test, as an operator would from the console."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import pickle
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.kms.models import kms_backends
from moto.route53.models import route53_backends
from moto.s3.models import s3_backends

from cfngen.cluster.checks.sections import source_prefix_lists
from cfngen.cluster.iam.existing_roles import existing_roles, last_name
from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.cluster.network import topology
from cfngen.permissions.grants import grants, scope_of
from cfngen.permissions.trust import trust_policy
from cfngen.sandbox.cloudformation import ApiError, CloudFormation, LaunchedInstance, Resource, Stack, client
from cfngen.sandbox.cloudformation.simulation import DEFAULT_SEED
from cfngen.sandbox.existing_parts import make_log_bucket, make_prefix_list, make_topic
from cfngen.sandbox.moto_patches import instances, registry, speedups
from cfngen.sandbox.moto_patches.dependencies import refuse_dependency_violations
from cfngen.sandbox.moto_patches.instances import DEFAULT_ROOT_DISK_GIB
from cfngen.sandbox.services import checking_rules
from cfngen.templates import Document, generate

CASES = Path(__file__).parents[1] / "golden" / "cases"
BUCKET = "templates-of-the-operator"
PREFIX = "clusters/one/"
ALLOWED = "203.0.113.7/32"
BOOT_SECONDS = 90
REFERENCES = re.compile(r"^REFERENCES = (\{.*\})$", re.MULTILINE)

# Public parameters of the image publishers: Ubuntu (documentation.ubuntu.com/aws), Debian (wiki.debian.org/Cloud/
# AmazonEC2Image), Amazon Linux 2023 (user guide, "Launch the latest AL2023 AMI"), AWS Deep Learning AMIs (developer
# guide, release notes of the base images); and one of the operator's own.
IMAGES = (
    "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id",
    "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
    "/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id",
    "/aws/service/debian/release/12/latest/amd64",
    "/aws/service/debian/release/13/latest/amd64",
    "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-6.1-x86_64",
    "/aws/service/canonical/ubuntu/server/22.04/stable/current/arm64/hvm/ebs-gp2/ami-id",
    "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id",
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
    "/platform/images/node",
)


@contextlib.contextmanager
def in_memory(config: Mapping[str, Any] | None = None) -> Iterator[None]:
    """An AWS account of moto, empty unless one is open already; no call leaves the process."""
    registry.apply()  # as the engine does, which an account may be prepared before
    instances.offer_instance_types_everywhere()
    speedups.apply()
    with mock_aws(config=config), refuse_dependency_violations(), checking_rules():
        yield


_GENERATED: dict[str, bytes] = {}


def templates_of(cluster: Cluster) -> tuple[Document, ...]:
    """The templates of a cluster: generated once, and a copy of its own for everybody who asks."""
    key = cluster.model_dump_json()
    if key not in _GENERATED:
        _GENERATED[key] = pickle.dumps(generate(cluster))
    return cast("tuple[Document, ...]", pickle.loads(_GENERATED[key]))


@functools.cache
def golden(case: str) -> Cluster:
    """The cluster of a golden case."""
    environment = CASES / case / "environment.yaml"
    environ = yaml.safe_load(environment.read_text()) if environment.exists() else {}
    return load(CASES / case / "cluster.yaml", environ=environ).cluster


@dataclass
class Machines:
    """What instances do: read their user data as the boot program does, boot, and signal what it tells them to.

    Attributes:
        outcomes: by the logical id of a group: SUCCESS, FAILURE or nothing at all; SUCCESS where it is not named.
        references: what each instance was told, in the order of launch.
    """

    region: str
    outcomes: Mapping[str, str | None] = field(default_factory=dict)
    references: list[dict[str, str]] = field(default_factory=list)
    cloud: CloudFormation | None = None

    def __call__(self, launched: LaunchedInstance) -> None:
        ec2 = client("ec2", self.region)
        answer = ec2.describe_instance_attribute(InstanceId=launched.instance_id, Attribute="userData")
        if "Value" not in answer["UserData"]:
            return  # a bastion, which has no boot program
        told = json.loads(REFERENCES.search(base64.b64decode(answer["UserData"]["Value"]).decode()).group(1))
        self.references.append(told)
        self.cloud.clock.schedule(BOOT_SECONDS, lambda: self._booted(launched.instance_id, told))

    def _booted(self, instance_id: str, told: Mapping[str, str]) -> None:
        outcome = self.outcomes.get(told["resource"], "SUCCESS")
        if outcome and running_instances(self.region, instance_id):
            with contextlib.suppress(ApiError):
                self.cloud.signal_resource(told["stack"], told["resource"], instance_id, outcome)
            if "condition" in told:
                self._signal_condition(instance_id, told, outcome)

    def _signal_condition(self, instance_id: str, told: Mapping[str, str], outcome: str, attempts: int = 100) -> None:
        """Signal a master's wait condition as soon as there is one; usually that is when its group does not wait."""
        if not running_instances(self.region, instance_id):
            return
        try:
            stack = told.get("conditionStack", told["stack"])
            self.cloud.signal_resource(stack, told["condition"], instance_id, outcome)
        except ApiError as error:
            if "does not exist for stack" in str(error) and attempts:
                again = functools.partial(self._signal_condition, instance_id, told, outcome, attempts - 1)
                self.cloud.clock.schedule(30, again)


@dataclass(frozen=True)
class Account:
    """An account ready for a cluster: its templates uploaded, images published."""

    cluster: Cluster
    templates: Mapping[str, dict[str, Any]]
    cloud: CloudFormation
    machines: Machines
    images: Mapping[str, str]

    def create(self, form: str = "standalone", *, name: str = "k8s", **parameters: str) -> Stack:
        """Create a cluster and wait for the end.

        Args:
            form: `standalone`, or `cluster` for the root with nested stacks
            name: name of the stack
            parameters: what the operator fills in; those that have no default and are left out get a usual value
        """
        wanted = self.templates[form]["Parameters"]
        usual = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
        given = {key: value for key, value in usual.items() if key in wanted} | parameters
        stack = self.cloud.create_stack(
            name,
            url=self.url(form),
            parameters=given,
            # Roles of service accounts have names.
            capabilities=["CAPABILITY_NAMED_IAM" if self.cluster.service_account_issuer else "CAPABILITY_IAM"],
            tags={"owner": "operator"},
        )
        return self.cloud.wait(stack)

    def url(self, form: str) -> str:
        return f"https://{BUCKET}.s3.{self.cluster.region}.amazonaws.com/{PREFIX}{form}.json"

    def delete(self, stack: Stack) -> Stack:
        return self.cloud.wait(self.cloud.delete_stack(stack.name))


def prepared(
    cluster: Cluster,
    *,
    seed: int = DEFAULT_SEED,
    durations: Mapping[str, float] | None = None,
    draws_durations: bool = False,
    **outcomes: str | None,
) -> Account:
    """An account ready for a cluster, whose groups' instances end booting as told (see `Machines`).

    Args:
        cluster: whose templates are uploaded.
        seed: draws the order of resources; see `CloudFormation`.
        durations: that resources take; see `CloudFormation`.
        draws_durations: see `CloudFormation`.
        outcomes: what instances signal, by group.
    """
    region = cluster.region
    s3 = client("s3", region)
    elsewhere = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=BUCKET, **elsewhere)
    templates = {each.name: each.body for each in templates_of(cluster)}
    upload(templates)
    images = {name: _publish(name, region) for name in IMAGES}
    _bring_keys(cluster)
    bring_roles(cluster)
    _bring_hosted_zones(cluster)
    _bring_records(cluster)
    _bring_prefix_lists(cluster)
    machines = Machines(region, outcomes)
    machines.cloud = CloudFormation(
        region,
        parameter_store=images,
        on_launch=machines,
        durations=durations,
        seed=seed,
        draws_durations=draws_durations,
    )
    return Account(cluster, templates, machines.cloud, machines, images)


def upload(templates: Mapping[str, dict[str, Any]]) -> None:
    """Let the bucket have templates; a call of S3 for each would be most of what an account costs."""
    objects = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for name, body in templates.items():
        objects.put_object(BUCKET, f"{PREFIX}{name}.json", json.dumps(body).encode())


def _bring_keys(cluster: Cluster) -> None:
    """Let the account have the keys that the cluster file names for the masters' volumes and the secrets."""
    for arn in filter(None, (cluster.control_plane.volume.kms_key, cluster.secrets.kms_key)):
        identifier = arn.rpartition("/")[2]
        keys = kms_backends[DEFAULT_ACCOUNT_ID][cluster.region]
        made = keys.create_key("", "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT", "the operator's", None)
        keys.keys[identifier] = keys.keys.pop(made.id)
        made.id = identifier


def _bring_records(cluster: Cluster) -> None:
    """Let the account have the bucket of access logs and the topic that the cluster file names."""
    if cluster.logging.bucket:
        make_log_bucket(cluster.region, cluster.logging.bucket)
    if cluster.notifications.topic:
        make_topic(cluster.region, cluster.notifications.topic)


def _bring_prefix_lists(cluster: Cluster) -> None:
    """Let the account have the prefix lists that the cluster file names."""
    for _, prefix_list in source_prefix_lists(cluster):
        make_prefix_list(cluster.region, prefix_list.id, prefix_list.max_entries)


def _bring_hosted_zones(cluster: Cluster) -> None:
    """Let the account have the hosted zones that the cluster file names by their ids."""
    zones = route53_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for zone in (topology.public_zone(cluster), topology.private_zone(cluster)):
        if zone and zone.id and cluster.api.dns:
            domain = cluster.api.dns.name.partition(".")[2]
            is_private = zone is topology.private_zone(cluster)
            made = zones.create_hosted_zone(domain, is_private, vpcid="vpc-0123456789abcdef0" if is_private else None)
            zones.zones[zone.id] = zones.zones.pop(made.resource_id)
            made.resource_id = zone.id


def bring_roles(cluster: Cluster) -> None:
    """Let the account have the roles that the cluster file names, with their policies, and the instance profiles."""
    iam = client("iam", cluster.region)
    everybody = {grant.name: grant for grant in grants(cluster, scope_of(cluster, account=DEFAULT_ACCOUNT_ID))}
    for path, existing in existing_roles(cluster):
        role = last_name(existing.role)
        role_path = existing.role.partition(":role")[2].removesuffix(role)
        trust = json.dumps(trust_policy(cluster.region))
        iam.create_role(RoleName=role, Path=role_path, AssumeRolePolicyDocument=trust)
        group = cluster.node_groups[0].name if cluster.node_groups else ""
        grantee = everybody.get("master" if path == ("iam", "masters") else f"nodes-{group}")
        for policy in grantee.policies if grantee else ():
            made = iam.create_policy(PolicyName=f"{role}-{policy.name}", PolicyDocument=json.dumps(policy.document))
            iam.attach_role_policy(RoleName=role, PolicyArn=made["Policy"]["Arn"])
        if existing.instance_profile:
            profile = last_name(existing.instance_profile)
            iam.create_instance_profile(InstanceProfileName=profile)
            iam.add_role_to_instance_profile(InstanceProfileName=profile, RoleName=role)


def _publish(parameter: str, region: str) -> str:
    """Register the image of a parameter, as RegisterImage does: of an architecture, unless it is the operator's own."""
    image = ec2_backends[DEFAULT_ACCOUNT_ID][region].register_image(parameter.strip("/").replace("/", "-"), "")
    published = parameter.startswith("/aws/service/")
    image.architecture = ("arm64" if "arm64" in parameter else "x86_64") if published else None
    image.ebs_snapshot.volume.size = DEFAULT_ROOT_DISK_GIB
    return str(image.id)


def landlord(where: Account) -> dict[str, str]:
    """What someone else has made in the account before: values for the parameters that ask for such a thing."""
    ec2 = client("ec2", where.cluster.region)
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    zones = {letter: f"{where.cluster.region}{letter}" for letter in "ab"}
    subnet_a = ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.0.0/20", AvailabilityZone=zones["a"])["Subnet"]
    if any("NatGatewayBId" in body.get("Parameters", {}) for body in where.templates.values()):
        beside = _nat_gateway_and_public_subnets(ec2, vpc, zones)
    else:
        subnet_b = ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.16.0/20", AvailabilityZone=zones["b"])["Subnet"]
        beside = {"SubnetBId": subnet_b["SubnetId"]}
    address = ec2.allocate_address(Domain="vpc")
    if any("BastionElasticIpAddress" in body.get("Parameters", {}) for body in where.templates.values()):
        of_bastion = ec2.allocate_address(Domain="vpc")
        beside["BastionElasticIpAllocationId"] = of_bastion["AllocationId"]
        beside["BastionElasticIpAddress"] = of_bastion["PublicIp"]
    for name in ("laptop", "operator key"):
        ec2.create_key_pair(KeyName=name)
    if where.cluster.network.flow_logs and where.cluster.network.flow_logs.bucket:
        location = {"LocationConstraint": where.cluster.region}
        bucket = where.cluster.network.flow_logs.bucket
        client("s3", where.cluster.region).create_bucket(Bucket=bucket, CreateBucketConfiguration=location)
    [image, *_] = where.images.values()
    group_parameters = {
        name
        for body in where.templates.values()
        for name, parameter in body.get("Parameters", {}).items()
        if parameter["Type"] == "AWS::EC2::SecurityGroup::Id"
    }
    groups = {
        name: ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"]
        for name in sorted(group_parameters)
    }
    return {
        **groups,
        "VpcId": vpc,
        "RouteTableId": table,
        "InternetGatewayId": gateway,
        "SubnetAId": subnet_a["SubnetId"],
        **beside,
        "RouteTableCId": table,
        "ApiElasticIpAllocationId": address["AllocationId"],
        "ApiElasticIp": address["PublicIp"],
        "MasterImageAmi0123456789abcdef0": image,
        "NodeImageAmi0123456789abcdef0": image,
        "NodeImageAmi0123456789abcdef1": image,
    }


def _nat_gateway_and_public_subnets(ec2: Any, vpc: str, zones: Mapping[str, str]) -> dict[str, str]:
    """What someone else has made in a VPC in which a cluster makes the private subnet of zone B."""
    public = {
        letter: ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=zones[letter])["Subnet"]["SubnetId"]
        for letter, block in (("a", "10.20.64.0/26"), ("b", "10.20.64.64/26"))
    }
    allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat_gateway = ec2.create_nat_gateway(SubnetId=public["b"], AllocationId=allocation)["NatGateway"]
    return {
        "PublicSubnetAId": public["a"],
        "PublicSubnetBId": public["b"],
        "NatGatewayBId": nat_gateway["NatGatewayId"],
    }


def resources(stack: Stack) -> dict[str, Resource]:
    """Every resource of a stack and its nested stacks; logical ids are unique over all of them."""
    found = {key: each for key, each in stack.resources.items() if each.child is None}
    for child in stack.children.values():
        for key, each in resources(child).items():
            assert key not in found
            found[key] = each
    return found


def running_instances(region: str, *ids: str) -> dict[str, dict[str, Any]]:
    """Instances of the account, or those of the given ids, that are not terminated."""
    answer = client("ec2", region).describe_instances(InstanceIds=list(ids))
    instances = (instance for reservation in answer["Reservations"] for instance in reservation["Instances"])
    return {instance["InstanceId"]: instance for instance in instances if instance["State"]["Name"] == "running"}


def describe(where: Account, kind: str, **arguments: Any) -> dict[str, Any]:
    """The only thing of a kind that EC2 describes."""
    answer = getattr(client("ec2", where.cluster.region), f"describe_{kind}")(**arguments)
    [item] = next(value for value in answer.values() if isinstance(value, list))
    return item


def tags(item: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in item.get("Tags") or item["TagSet"]}


def texts(value: Any) -> Iterator[str]:
    """Every text within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def inventory(region: str) -> dict[str, set[str]]:
    """What exists in the account, by kind.

    Not counted: keys that wait for their deletion, keys that AWS keeps, and the first interface and volume of
    terminated instances, which go with them in EC2 and stay in moto.
    """
    ec2, iam, kms = (client(name, region) for name in ("ec2", "iam", "kms"))
    instances = set(running_instances(region))
    interfaces = ec2.describe_network_interfaces()["NetworkInterfaces"]
    volumes = ec2.describe_volumes()["Volumes"]
    keys = (kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"] for key in kms.list_keys()["Keys"])
    groups = client("autoscaling", region).describe_auto_scaling_groups()["AutoScalingGroups"]
    profiles = iam.list_instance_profiles()["InstanceProfiles"]
    return {
        "VPCs": {vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"]},
        "subnets": {subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]},
        "route tables": {route_table["RouteTableId"] for route_table in ec2.describe_route_tables()["RouteTables"]},
        "DHCP options": {dhcp_option["DhcpOptionsId"] for dhcp_option in ec2.describe_dhcp_options()["DhcpOptions"]},
        "gateways": {
            internet_gateway["InternetGatewayId"]
            for internet_gateway in ec2.describe_internet_gateways()["InternetGateways"]
        },
        "security groups": {
            security_group["GroupId"] for security_group in ec2.describe_security_groups()["SecurityGroups"]
        },
        "interfaces": {
            interface["NetworkInterfaceId"]
            for interface in interfaces
            if "Attachment" not in interface or interface["Attachment"]["InstanceId"] in instances
        },
        "volumes": {
            volume["VolumeId"]
            for volume in volumes
            if all(attachment["InstanceId"] in instances for attachment in volume["Attachments"])
        },
        "NAT gateways": {
            nat_gateway["NatGatewayId"]
            for nat_gateway in ec2.describe_nat_gateways()["NatGateways"]
            if nat_gateway["State"] not in ("deleted", "failed")
        },
        "flow logs": {flow_log["FlowLogId"] for flow_log in ec2.describe_flow_logs()["FlowLogs"]},
        "log groups": {
            log_group["logGroupName"] for log_group in client("logs", region).describe_log_groups()["logGroups"]
        },
        "endpoints": {endpoint["VpcEndpointId"] for endpoint in ec2.describe_vpc_endpoints()["VpcEndpoints"]},
        "addresses": {address["AllocationId"] for address in ec2.describe_addresses()["Addresses"]},
        "snapshots": {snapshot["SnapshotId"] for snapshot in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]},
        "load balancers": {
            load_balancer["LoadBalancerArn"]
            for load_balancer in client("elbv2", region).describe_load_balancers()["LoadBalancers"]
        },
        "target groups": {
            target_group["TargetGroupArn"]
            for target_group in client("elbv2", region).describe_target_groups()["TargetGroups"]
        },
        "key pairs": {key_pair["KeyName"] for key_pair in ec2.describe_key_pairs()["KeyPairs"]},
        "launch templates": {
            launch_template["LaunchTemplateId"]
            for launch_template in ec2.describe_launch_templates()["LaunchTemplates"]
        },
        "instances": instances,
        "Auto Scaling groups": {group["AutoScalingGroupName"] for group in groups},
        "roles": {role["RoleName"] for role in iam.list_roles()["Roles"]},
        "instance profiles": {profile["InstanceProfileName"] for profile in profiles},
        "keys": {
            key["KeyId"]
            for key in keys
            if key["KeyState"] != "PendingDeletion" and not key["Description"].startswith("Default master key")
        },
        "secrets": {each["ARN"] for each in client("secretsmanager", region).list_secrets()["SecretList"]},
        "hosted zones": {
            each["Id"].removeprefix("/hostedzone/")
            for each in client("route53", region).list_hosted_zones()["HostedZones"]
        },
    }


def leftovers(where: Account, before: dict[str, set[str]]) -> dict[str, set[str]]:
    """What exists in the account now and did not before."""
    after = inventory(where.cluster.region)
    return {kind: after[kind] - before[kind] for kind in after if after[kind] - before[kind]}

"""What the cluster file names in AWS: where it must belong, and who says so where it does not."""

from __future__ import annotations

import copy
import json
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from answers import Answers, filtered
from existing_network import is_key
from moto.ec2.models import ec2_backends
from moto.ec2.models.vpcs import VPCBackend
from pydantic import BaseModel

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import ClusterFileError
from cfngen.cluster.sections import field_types, field_validation
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.stacks import StackTree, StackView
from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.preflight.existing import objects
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError
from cfngen.sandbox.services.vpc_endpoints import services_of_aws

REGION, ZONE = "us-west-2", "us-west-2a"
NAMES_IN_AWS = (
    field_types.AllocationId,
    field_types.BucketName,
    field_types.CapacityReservationId,
    field_types.DhcpOptionsId,
    field_types.EndpointService,
    field_types.HostedZoneId,
    field_types.ImageId,
    field_types.InstanceProfileArn,
    field_types.InternetGatewayId,
    field_types.KeyArn,
    field_types.KeyName,
    field_types.NatGatewayId,
    field_types.NetworkInterfaceId,
    field_types.PeeringConnectionId,
    field_types.PolicyArn,
    field_types.PrefixListId,
    field_types.RepositoryName,
    field_types.ResourceGroupArn,
    field_types.RouteDestination,  # a prefix list, or a range
    field_types.RoleArn,
    field_types.RouteTableId,
    field_types.SecretArn,
    field_types.SecurityGroupId,
    field_types.SourceGroupId,
    field_types.SsmParameterName,
    field_types.SubnetId,
    field_types.TargetGroupArn,
    field_types.TransitGatewayId,
    field_types.TopicArn,
    field_types.VpcId,
    field_types.VpnGatewayId,
)
NOTHING_IN_AWS = (
    field_types.AbsolutePath,
    field_types.AccountNumber,  # of others, who may pull
    field_types.ClusterName,
    field_types.Command,
    field_types.DeviceName,
    field_types.DirectHost,
    field_types.Duration,
    field_types.ExtraDeviceName,
    field_types.FileMode,
    field_types.Fraction,
    field_types.GitRef,
    field_types.GroupName,
    field_types.IamAction,
    field_types.IamPath,  # made with the roles below it
    field_types.IamResource,  # of the operator's choice; it may not exist yet
    field_types.HostName,
    field_types.HttpUrl,
    field_types.ImageReference,
    field_types.InstanceType,
    field_types.InstanceTypePattern,
    field_types.IssuerUrl,  # a web server; whether IAM has a provider for it is looked at with the roles
    field_types.KubernetesVersion,
    field_types.LabelKey,
    field_types.LabelValue,
    field_types.MountPath,
    field_types.NamespaceName,
    field_types.PortRange,
    field_types.Price,
    field_types.Priority,
    field_types.ProjectName,
    field_types.ProxyUrl,
    field_types.PublicKey,
    field_types.Quantity,
    field_types.Region,
    field_types.ReleaseName,
    field_types.RuleDescription,
    field_types.ServiceAccountName,
    field_types.Sha256,
    field_types.UnitName,
    field_types.Zone,
)


@dataclass(frozen=True)
class Named:
    """Where the object that a key names must belong.

    Attributes:
        belongs: to what.
        elsewhere: cluster files, or a name of `SCENARIOS`, in which it does not, with what is said then.
        silence: why nothing of cfngen's says so, where nothing does.
    """

    belongs: str
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    silence: str = ""


KEY = "arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555"
FOREIGN_POLICY = "arn:aws:iam::210987654321:policy/x"
TARGETS = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/web/0123456789abcdef"
SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:ca-AbCdEf"
TOPIC = "arn:aws:sns:eu-central-1:123456789012:scaling"
GROUP_ARN = "arn:aws:resource-groups:eu-central-1:123456789012:group/nodes"
TYPED = "a parameter of an AWS-specific type: CloudFormation looks for it in the region before it begins"
CHINA = "arn:aws-cn:iam::123456789012:policy/x"
LISTED = Named("region", {"list of a rule that is not there": "there is no prefix list pl-"})
SOURCE_GROUP = Named(
    "VPC, or one that is peered with it",
    {
        "group of a rule that is not there": "there is no security group sg-",
        "group of a rule older than the VPC": "belongs to another VPC than the one that the stack will create",
    },
)
IMAGE = Named("region", silence=TYPED)
SUBNET = "subnets: [{id: subnet-00000001, cidr: 172.20.0.0/24}]"
VPC = "vpc: {id: vpc-00000001, cidr: 172.20.0.0/16}"
IN_NO_VPC = "topology: private, plugin: cilium, subnets: [{zone: us-west-2a"
CIDR = "subnets: [{cidr: 172.20.0.0/24}]"


def instances(section: str, **keys: Named) -> dict[str, Named]:
    """The keys that masters and node groups have in common."""
    opened, closed = ("{", "}") if section == "controlPlane" else ("[{", "}]")
    name = section.removesuffix("[]")

    def file(inside: str) -> str:
        return f"{name}: {opened}{inside}{closed}"

    return {
        f"{section}.additionalSecurityGroups[]": Named(
            "VPC",
            {
                "group older than the VPC": "the one that the stack will create",
                "group of another VPC": "and the cluster is in vpc-",
                "group of another VPC than the stack's": "and the cluster is in vpc-",
                "group that is not there": "there is no security group sg-",
                "group that bears the cluster's tag": "only one security group of an instance may have",
            },
        ),
        f"{section}.ingress[].prefixLists[].id": LISTED,
        f"{section}.ingress[].securityGroups[]": SOURCE_GROUP,
        f"{section}.additionalPolicies[]": Named(
            "account",
            {
                file(f"additionalPolicies: ['{CHINA}']"): "the ARN is in the partition aws-cn",
                "policy of another account": (
                    "belongs to the account 210987654321; use a policy of account 123456789012"
                ),
            },
        ),
        f"{section}.rootVolume.kmsKey": Named(
            "region", {file(f"rootVolume: {{kmsKey: '{KEY}'}}"): "use a key in us-w"}
        ),
        f"{section}.image.id": IMAGE,
        f"{section}.image.ssmParameter": IMAGE,
        **keys,
    }


def roles(section: str) -> dict[str, Named]:
    """The keys of a section that names an existing role."""
    return {
        f"{section}.role": Named(
            "account",
            {
                "role of another account": "belongs to the account 210987654321; use a role of 123456789012",
                "role that is not there": "there is no role gone in account 123456789012",
                "role with another path": "has the ARN arn:aws:iam::123456789012:role/team/own; correct the path",
                "role that EC2 may not assume": "does not trust ec2.amazonaws.com",
                "role of another partition's EC2": "does not trust ec2.amazonaws.com,",
            },
        ),
        f"{section}.instanceProfile": Named(
            "account",
            {
                "profile that is not there": "there is no instance profile gone in account 123456789012",
                "profile with another path": "has the ARN arn:aws:iam::123456789012:instance-profile/team/own; correct",
                "profile of another role": "holds the role arn:aws:iam::123456789012:role/other and not",
                "profile without a role": "holds no role; add the role arn:aws:iam::123456789012:role/own to it",
            },
        ),
    }


TABLE: Mapping[str, Named] = {
    "network.vpc.id": Named("region", silence=TYPED),
    "network.subnets[].id": Named(
        "VPC, and its zone and range",
        {
            f"network: {{{SUBNET}}}": "is in an existing VPC; set network.vpc.id",
            "subnet of another VPC": "and the cluster is in vpc-",
            "subnet in another zone": "is in us-west-2b and not in us-west-2a",
            "subnet with another range": "has the range 10.20.0.0/20 and not 10.20.0.0/24",
        },
    ),
    "network.routeTable": Named(
        "VPC",
        {
            "network: {routeTable: rtb-00000001}": "subnets that cfngen creates get a new route table",
            "table of another VPC": "and the cluster is in vpc-",
            "table that is not there": "network.routeTable: there is no rtb-00000001 in us-west-2",
        },
    ),
    # What only the account shows of these is in test_existing_private_network.py.
    "network.subnets[].natGateway": Named(
        "VPC and zone", {f"network: {{{IN_NO_VPC}, natGateway: nat-00000001}}]}}": "nat-00000001 is in an existing VPC"}
    ),
    "network.subnets[].routeTable": Named(
        "VPC", {f"network: {{{IN_NO_VPC}, routeTable: rtb-00000001}}]}}": "rtb-00000001 is in an existing VPC"}
    ),
    "network.subnets[].public.id": Named(
        "VPC, and its zone and range",
        {f"network: {{{IN_NO_VPC}, public: {{id: subnet-00000001}}}}]}}": "subnet-00000001 is in an existing VPC"},
    ),
    "network.internetGateway": Named(
        "VPC",
        {
            "network: {internetGateway: igw-00000001}": "a VPC that cfngen creates gets a new gateway",
            "gateway of another VPC": "and the cluster is in vpc-",
            "gateway that is attached to none": "belongs to no VPC",
        },
    ),
    "network.dhcpOptions": Named(
        "region; any VPC takes them",
        {f"network: {{{VPC}, {CIDR}, dhcpOptions: dopt-00000001}}": "keeps its DHCP options"},
    ),
    "network.endpoints.additional[]": Named(
        "region, and open to the account",
        {
            "service that is not there": "there is no service com.amazonaws.us-west-2.kmss in us-west-2",
            "service of another region": "there is no service com.amazonaws.vpce.eu-central-1.vpce-svc-",
        },
    ),
    "network.endpoints.services[].service": Named(
        "region, and as the entry says",
        {
            "network: {topology: private, nat: none, endpoints: {services: [{service: kms}]}}": "no interface endpoint "
            "is created for kms",
        },
    ),
    "network.routes[].destination": Named("region", {"list that is not there": "there is no prefix list pl-"}),
    "network.routes[].transitGateway": Named(
        "region, and attached to the VPC",
        {
            "gateway before the VPC": "is not connected with the VPC that the stack will create",
            "transit gateway that is not there": "there is no transit gateway tgw-",
            "transit gateway without the VPC": "is not attached to tgw-",
            "transit gateway that has not accepted": "is pendingAcceptance and not available",
        },
    ),
    "network.routes[].peeringConnection": Named(
        "VPC, on either side",
        {
            "connection that is not there": "there is no peering connection pcx-",
            "connection of other VPCs": "and the cluster is in vpc-",
            "connection that nobody has accepted": "is pending-acceptance and not active; have it accepted",
        },
    ),
    "network.routes[].vpnGateway": Named(
        "VPC",
        {
            "private gateway that is not there": "there is no virtual private gateway vgw-",
            "private gateway of another VPC": "and the cluster is in vpc-",
            "private gateway that is attached to none": "is attached to no VPC",
        },
    ),
    "network.routes[].networkInterface": Named(
        "VPC",
        {
            "interface that is not there": "there is no network interface eni-",
            "interface of another VPC": "and the cluster is in vpc-",
        },
    ),
    **{
        f"network.securityGroups.{name}": Named(
            "VPC",
            {
                "first group of another VPC": "and the cluster is in vpc-",
                "first group that is not there": "there is no security group sg-",
            },
        )
        for name in ("masters", "nodes", "apiLoadBalancer", "internalApiLoadBalancer", "endpoints")
    },
    "api.allowedPrefixLists[].id": LISTED,
    "ssh.allowedPrefixLists[].id": LISTED,
    "api.elasticIp.allocationId": Named(
        "region, and its address",
        {
            "Elastic IP of another address": "is 127.",
            "Elastic IP that is not there": "there is no Elastic IP eipalloc-",
        },
    ),
    "bastion.allowedPrefixLists[].id": LISTED,
    "bastion.ingress[].prefixLists[].id": LISTED,
    "bastion.ingress[].securityGroups[]": SOURCE_GROUP,
    "bastion.elasticIp.allocationId": Named(
        "region, and its address",
        {
            "bastion's Elastic IP of another address": "is 127.",
            "bastion's Elastic IP that is not there": "there is no Elastic IP eipalloc-",
        },
    ),
    "bastion.image.id": IMAGE,
    "bastion.image.ssmParameter": IMAGE,
    "bastion.rootVolume.kmsKey": Named(
        "region",
        {
            f"{{ssh: {{keyName: k}}, bastion: {{allowedCidrs: [10.0.0.0/8], rootVolume: {{kmsKey: '{KEY}'}}}}}}": (
                "use a key in us-w"
            )
        },
    ),
    "api.dns.publicZone.id": Named("account; Route 53 has no regions", {"zone that is not there": "no hosted zone Z1"}),
    "api.dns.privateZone.id": Named(
        "account; Route 53 has no regions", {"private zone that is not there": "no hosted zone Z2"}
    ),
    "ssh.keyName": Named("region", silence="EC2 refuses the launch"),
    "image.id": IMAGE,
    "image.ssmParameter": IMAGE,
    **instances("controlPlane"),
    "controlPlane.volume.kmsKey": Named(
        "region", {f"controlPlane: {{volume: {{kmsKey: '{KEY}'}}}}": "use a key in us-west-2"}
    ),
    **instances("nodeGroups[]"),
    "nodeGroups[].volumes[].kmsKey": Named(
        "region", {f"nodeGroups: [{{volumes: [{{size: 9, kmsKey: '{KEY}'}}]}}]": "use a key in us-west-2"}
    ),
    "nodeGroups[].targetGroups[]": Named(
        "VPC and region",
        {
            f"nodeGroups: [{{targetGroups: ['{TARGETS}']}}]": "the target group is in eu-central-1",
            "target group older than the VPC": "belongs to another VPC than the one that the stack will create",
            "target group of another VPC": "and the cluster is in vpc-",
            "target group that is not there": "there is no target group arn:aws:elasticloadbalancing:",
            "target group of addresses": "takes targets of the type ip; Auto Scaling registers instances only",
        },
    ),
    "nodeGroups[].capacityReservation.id": Named("zone", silence="EC2 refuses the launch"),
    "nodeGroups[].capacityReservation.resourceGroup": Named(
        "region", {f"nodeGroups: [{{capacityReservation: {{resourceGroup: '{GROUP_ARN}'}}}}]": "is in eu-central-1"}
    ),
    "network.flowLogs.bucket": Named(
        "any region; its policy lets AWS deliver logs", {"bucket that is not there": "there is no bucket example-flow"}
    ),
    "etcd.backups.kmsKey": Named(
        "region",
        {
            f"etcd: {{backups: {{kmsKey: '{KEY}'}}}}": "the snapshots are in us-west-2; use a key in us-west-2",
            "snapshots' key that signs": "is no symmetric key for encryption (RSA_2048, SIGN_VERIFY), which S3 needs",
        },
    ),
    "logging.bucket": Named("region", {"log bucket that is not there": "there is no bucket example-logs; create it"}),
    "notifications.topic": Named(
        "region",
        {
            f"notifications: {{topic: '{TOPIC}'}}": "the topic is in eu-central-1, but the instances are in us-west-2",
            "topic that is not there": "there is no topic arn:aws:sns:us-west-2:123456789012:scaling; create it",
        },
    ),
    "etcd.backups.bucket": Named(
        "region; clients are told where it is, and boto3 follows",
        {"snapshots' bucket without a lock": "the bucket example-snapshots has no S3 Object Lock, so S3 would refuse"},
    ),
    "certificateAuthority.secret": Named(
        "region", {f"certificateAuthority: {{secret: '{SECRET}'}}": "the secret is in eu-central-1"}
    ),
    "secrets.kmsKey": Named(
        "region",
        {
            f"secrets: {{kmsKey: '{KEY}'}}": "use a key in us-west-2",
            "key that is not there": "there is no key arn:aws:kms:us-west-2:123456789012:key/1234abcd",
            "key that is disabled": "is in the state Disabled; enable it",
            "key that will be deleted": "is going to be deleted; cancel that",
            "key that signs": "is no symmetric key for encryption (RSA_2048, SIGN_VERIFY)",
        },
    ),
    **roles("iam.masters"),
    **roles("iam.nodes"),
    **roles("nodeGroups[].iam"),
    "addons.externalDns.zones[]": Named(
        "account; Route 53 has no regions", silence="a zone of another account is refused to the role, and to it alone"
    ),
    "addons.certManager.zones[]": Named(
        "account; Route 53 has no regions", silence="a zone of another account is refused to the role, and to it alone"
    ),
    "serviceAccountIssuer.bucket": Named(
        "any region; a web server reads it", {"issuer's bucket that is not there": "there is no bucket example-tokens"}
    ),
    "iam.serviceAccounts[].additionalPolicies[]": Named(
        "account", {"pods' policy of another account": "belongs to the account 210987654321; use a policy of account"}
    ),
    "iam.serviceAccounts[].permissionsBoundary": Named(
        "account", {"pods' boundary of another account": "belongs to the account 210987654321; use a policy of account"}
    ),
    "iam.serviceAccounts[].role": Named(
        "any account", {"pods' role that is not there": "there is no role own in account 123456789012"}
    ),
    "registry.repositories[].name": Named(
        "region", {"repository that is not there": "there is no repository web in account 123456789012 and us-west-2"}
    ),
    "registry.push[].repositories[]": Named(
        "region",
        {
            "registry: {repositories: [{name: web}], push: [{name: a, role: 'arn:aws:iam::123456789012:role/a', "
            "repositories: [api]}]}": "api is none of registry.repositories; add it there, with existing: true"
        },
    ),
    "registry.push[].role": Named(
        "any account", {"role of who pushes that is not there": "there is no role own in account 123456789012"}
    ),
    "iam.permissionsBoundary": Named(
        "account",
        {
            f"iam: {{permissionsBoundary: '{CHINA}'}}": "the ARN is in the partition aws-cn",
            "boundary of another account": "iam.permissionsBoundary: arn:aws:iam::210987654321:policy/x belongs to",
        },
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _services_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have EC2 name the services of endpoints, which moto alone cannot without packages for services of its own."""
    services = staticmethod(lambda account_id, region: list(services_of_aws(region)))
    monkeypatch.setattr(VPCBackend, "_collect_default_endpoint_services", services)


def texts(annotation: Any) -> Iterator[field_validation.TextPattern]:
    """Every kind of text within a type."""
    for part in (*getattr(annotation, "__metadata__", ()), *typing.get_args(annotation)):
        if isinstance(part, field_validation.TextPattern):
            yield part
        else:
            yield from texts(part)


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, field_validation.TextPattern]]:
    """Every key of a section whose value is a text of some kind; `[]` stands for an item of a list."""
    for name, info in model.model_fields.items():
        key = f"{prefix}{info.alias or name}"
        annotated = typing.Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
        listed = "[]" if "Tuple" in str(info.annotation) or "tuple" in str(info.annotation) else ""
        yield from ((f"{key}{listed}", text) for text in texts(annotated))
        for section in sections(info.annotation):
            yield from keys(section, f"{key}{listed}.")


def sections(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from sections(part)


def test_every_kind_of_text_is_known_to_name_something_in_aws_or_nothing() -> None:
    kinds = [field_type for field_type in vars(field_types).values() if any(texts(field_type))]
    known = [*NAMES_IN_AWS, *NOTHING_IN_AWS]
    assert [kind for kind in kinds if kind not in known] == []


def test_every_key_that_names_an_object_of_aws_is_in_the_table() -> None:
    kinds = {text for kind in NAMES_IN_AWS for text in texts(kind)}
    assert {key for key, text in keys(Cluster) if text in kinds} == set(TABLE)


def test_every_key_is_looked_at_or_has_a_reason() -> None:
    assert [key for key, row in TABLE.items() if bool(row.elsewhere) == bool(row.silence)] == []


FILES = [(key, file, says) for key, row in TABLE.items() for file, says in row.elsewhere.items() if ": " in file]


@pytest.mark.parametrize(("key", "file", "says"), FILES)
def test_what_the_cluster_file_alone_shows_is_refused_by_it(key: str, file: str, says: str) -> None:
    import yaml

    with pytest.raises(ClusterFileError) as raised:
        parse(yaml.safe_load(file))
    assert says in str(raised.value)


@dataclass
class Landlord:
    """A VPC with a subnet, a route table and a gateway, as a cluster file and the root's parameters name them."""

    account: Account
    key: str
    file: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    stack: StackView | None = None
    told: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        vpc = self.vpc()
        subnet, table, gateway = self.subnet(vpc), self.table(vpc), self.gateway(vpc)
        self.file = {
            "network": {
                "vpc": {"id": vpc, "cidr": "10.20.0.0/16"},
                "subnets": [{"zone": ZONE, "id": subnet, "cidr": "10.20.0.0/20"}],
                "serviceCidr": "10.250.0.0/16",
            }
        }
        self.parameters = {
            "VpcId": vpc, "SubnetAId": subnet, "ZoneA": ZONE, "RouteTableId": table, "InternetGatewayId": gateway,
        }  # fmt: skip

    @property
    def ec2(self) -> Any:
        return self.account.client("ec2")

    def vpc(self) -> str:
        return str(self.ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"])

    def subnet(self, vpc: str, zone: str = ZONE) -> str:
        made = self.ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.0.0/20", AvailabilityZone=zone)
        return str(made["Subnet"]["SubnetId"])

    def table(self, vpc: str) -> str:
        return str(self.ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"])

    def gateway(self, vpc: str = "") -> str:
        made = str(self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"])
        if vpc:
            self.ec2.attach_internet_gateway(InternetGatewayId=made, VpcId=vpc)
        return made

    def group(self, vpc: str) -> str:
        return str(self.ec2.create_security_group(GroupName="own", Description="own", VpcId=vpc)["GroupId"])

    def target_group(self, vpc: str, target_type: str = "instance") -> str:
        made = self.account.client("elbv2").create_target_group(
            Name="web", Protocol="TCP", Port=80, VpcId=vpc, TargetType=target_type
        )
        return str(made["TargetGroups"][0]["TargetGroupArn"])

    def names(self, value: Any) -> None:
        """Write a value where the key of the row is."""
        where: Any = self.file
        *above, last = self.key.replace("[]", "").split(".")
        for name in above:
            where = where.setdefault(name, {})
        where[last] = [value] if self.key.endswith("[]") else value
        if self.key.startswith("nodeGroups"):
            self.file["nodeGroups"] = [self.file["nodeGroups"]]

    def made_by_the_stack(self, vpc: str) -> None:
        """Have the VPC be the stack's own."""
        del self.file["network"]
        self.parameters.clear()
        self.stack = StackView("one", "arn", StackStatus("CREATE_COMPLETE"), outputs={"VpcId": vpc})

    def check(self) -> None:
        deployed = StackTree(self.account, self.stack) if self.stack else None
        objects.check(self.account, parse(copy.deepcopy(self.file)), self.parameters, deployed, self.told.append)


def target_group_older(here: Landlord) -> None:
    here.names(here.target_group(here.vpc()))
    here.made_by_the_stack("")
    here.stack = None


def older(here: Landlord) -> None:
    here.names(here.group(here.vpc()))
    here.made_by_the_stack("")
    here.stack = None


def of_another_than_the_stack(here: Landlord) -> None:
    here.names(here.group(here.vpc()))
    here.made_by_the_stack(here.vpc())


def tagged(here: Landlord) -> None:
    group = here.group(here.parameters["VpcId"])
    here.ec2.create_tags(Resources=[group], Tags=[{"Key": "kubernetes.io/cluster/kubernetes", "Value": "owned"}])
    here.names(group)


def ranged(here: Landlord) -> None:
    here.file["network"]["subnets"][0]["cidr"] = "10.20.0.0/24"


def sourced(here: Landlord, source: str) -> None:
    """Have the prefix list or group at the key be who may reach a port."""
    section, *key = here.key.split(".")
    origin = {"id": source, "maxEntries": 1} if source.startswith("pl-") else source
    inside: dict[str, Any] = {key[0].removesuffix("[]"): [origin]}
    if len(key) > 1 and key[0] == "ingress[]":
        inside = {"ingress": [{"ports": 80, key[1].removesuffix("[]"): [origin]}]}
    if section in ("bastion", "ssh"):
        here.file["ssh"] = {"keyName": "k"}
    if section == "bastion":
        inside.setdefault("allowedCidrs", ["203.0.113.7/32"])
    if section == "nodeGroups[]":
        here.file["nodeGroups"] = [inside]
    else:
        here.file[section] = {**here.file.get(section, {}), **inside}


def sourced_before_the_vpc(here: Landlord) -> None:
    sourced(here, here.group(here.vpc()))
    here.made_by_the_stack("")
    here.stack = None


def elastic(here: Landlord, allocation: str) -> None:
    here.parameters |= {"ApiElasticIpAllocationId": allocation, "ApiElasticIp": "203.0.113.1"}


def elastic_of_bastion(here: Landlord, allocation: str) -> None:
    here.parameters |= {"BastionElasticIpAllocationId": allocation, "BastionElasticIpAddress": "203.0.113.1"}


def recorded(here: Landlord, bucket: str) -> None:
    here.file["network"]["flowLogs"] = {"destination": "s3", "bucket": bucket}


def zoned(here: Landlord, key: str, zone: str) -> None:
    here.file["api"] = {"internal": True, "dns": {"name": "api.example.com", key: {"id": zone}}}


def routed(here: Landlord, target: str) -> None:
    """Have a subnet that is created, and in its table a route to the target, or to the prefix list."""
    here.file["network"] |= {"subnets": [{"zone": ZONE, "cidr": "10.20.16.0/20"}], "plugin": "cilium"}
    key = here.key.rpartition(".")[2]
    if key == "destination":
        route = {"destination": target, "networkInterface": interface(here, here.parameters["VpcId"])}
    else:
        route = {"destination": "192.168.0.0/16", key: target}
    here.file["network"]["routes"] = [route]
    here.parameters |= {"SubnetAId": "", "RouteTableId": ""}


def before_the_vpc(here: Landlord) -> None:
    routed(here, "tgw-00000001")
    del here.file["network"]["vpc"], here.file["network"]["subnets"]
    here.parameters.clear()


def transit_gateway(here: Landlord) -> str:
    return str(here.ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"])


def attached(here: Landlord, state: str) -> None:
    gateway = transit_gateway(here)
    made = here.ec2.create_transit_gateway_vpc_attachment(
        TransitGatewayId=gateway, VpcId=here.parameters["VpcId"], SubnetIds=[here.parameters["SubnetAId"]]
    )["TransitGatewayVpcAttachment"]
    backend = ec2_backends["123456789012"][REGION]
    backend.transit_gateway_attachments[made["TransitGatewayAttachmentId"]].state = state
    routed(here, gateway)


def connection(here: Landlord, vpc: str) -> str:
    made = here.ec2.create_vpc_peering_connection(VpcId=vpc, PeerVpcId=here.vpc())["VpcPeeringConnection"]
    return str(made["VpcPeeringConnectionId"])


def private_gateway(here: Landlord, vpc: str = "") -> str:
    made = str(here.ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"])
    if vpc:
        here.ec2.attach_vpn_gateway(VpnGatewayId=made, VpcId=vpc)
    return made


def interface(here: Landlord, vpc: str) -> str:
    subnet = here.parameters["SubnetAId"] if vpc == here.parameters["VpcId"] else here.subnet(vpc)
    made = here.ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]
    return str(made["NetworkInterfaceId"])


def served(here: Landlord, *services: str) -> None:
    subnet = {"zone": ZONE, "cidr": "10.20.16.0/20"}
    here.file["network"] |= {"topology": "private", "nat": "none", "plugin": "cilium", "subnets": [subnet]}
    here.file["network"]["endpoints"] = {"additional": list(services)}
    here.file["api"] = {"public": False}
    here.parameters |= {"SubnetAId": "", "RouteTableId": "", "InternetGatewayId": ""}


def grouped(here: Landlord, group: str) -> None:
    """Name the first security group of something that the cluster has."""
    if "LoadBalancer" in here.key:
        here.file |= {"controlPlane": {"count": 3}, "api": {"internal": True}}
    if here.key.endswith("endpoints"):
        served(here)
    here.names(group)


OWN = "arn:aws:iam::123456789012"


def has_role(here: Landlord, arn: str = f"{OWN}:role/own", **profile: str) -> None:
    """Have the file name a role where the key of the row is."""
    section, here.key = here.key, here.key.rpartition(".")[0]
    here.names({"role": arn, **profile})
    here.key = section


def role(here: Landlord, name: str = "own", path: str = "/", principal: str = "ec2.amazonaws.com") -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": [principal]}, "Action": ["sts:AssumeRole"]}
    trust = json.dumps({"Version": "2012-10-17", "Statement": statement})
    made = here.account.client("iam").create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=trust)
    return str(made["Role"]["Arn"])


def has_profile(here: Landlord, arn: str = f"{OWN}:instance-profile/own", path: str = "/", held: str = "") -> None:
    """Have the file name a role and an instance profile, which exists and holds a role."""
    iam = here.account.client("iam")
    has_role(here, role(here), instanceProfile=arn)
    iam.create_instance_profile(InstanceProfileName="own", Path=path)
    if held:
        iam.add_role_to_instance_profile(InstanceProfileName="own", RoleName=held)


def with_pod_role(here: Landlord, **keys: Any) -> None:
    here.file.update(serviceAccountIssuer={}, iam={"serviceAccounts": [{"namespace": "shop", "name": "web", **keys}]})


def with_registry(here: Landlord, push: Any = (), **keys: Any) -> None:
    here.file.update(registry={"repositories": [{"name": "web", **keys}], "push": list(push)})


def has_profile_of_another_role(here: Landlord) -> None:
    role(here, "other")
    has_profile(here, held="other")


def key_of(here: Landlord, **settings: str) -> str:
    made = here.account.client("kms").create_key(**settings)["KeyMetadata"]["Arn"]
    here.names(made)
    return str(made.rpartition("/")[2])


def unlocked(here: Landlord) -> None:
    place = {"LocationConstraint": REGION}
    here.account.client("s3").create_bucket(Bucket="example-snapshots", CreateBucketConfiguration=place)
    here.names("example-snapshots")
    here.file["etcd"]["backups"]["objectLock"] = {"mode": "governance", "days": 7}


SCENARIOS: Mapping[str, Any] = {
    "role of another account": lambda here: has_role(here, "arn:aws:iam::210987654321:role/own"),
    "role that is not there": lambda here: has_role(here, f"{OWN}:role/gone"),
    "role with another path": lambda here: has_role(here, role(here, path="/team/").replace("team/", "")),
    "role that EC2 may not assume": lambda here: has_role(here, role(here, principal="lambda.amazonaws.com")),
    "role of another partition's EC2": lambda here: has_role(here, role(here, principal="ec2.amazonaws.com.cn")),
    "profile that is not there": lambda here: has_profile(here, f"{OWN}:instance-profile/gone", held="own"),
    "profile with another path": lambda here: has_profile(here, path="/team/", held="own"),
    "profile of another role": has_profile_of_another_role,
    "profile without a role": has_profile,
    "key that is not there": lambda here: here.names(
        "arn:aws:kms:us-west-2:${AWS::AccountId}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    ),
    "key that is disabled": lambda here: here.account.client("kms").disable_key(KeyId=key_of(here)),
    "key that will be deleted": lambda here: here.account.client("kms").schedule_key_deletion(KeyId=key_of(here)),
    "key that signs": lambda here: key_of(here, KeyUsage="SIGN_VERIFY", KeySpec="RSA_2048"),
    "first group of another VPC": lambda here: grouped(here, here.group(here.vpc())),
    "first group that is not there": lambda here: grouped(here, "sg-00000001"),
    "service that is not there": lambda here: served(here, "kmss", "kms"),
    "service of another region": lambda here: served(
        here, "com.amazonaws.vpce.eu-central-1.vpce-svc-0123456789abcdef0"
    ),
    "list that is not there": lambda here: routed(here, "pl-00000001"),
    "gateway before the VPC": before_the_vpc,
    "transit gateway that is not there": lambda here: routed(here, "tgw-00000001"),
    "transit gateway without the VPC": lambda here: routed(here, transit_gateway(here)),
    "transit gateway that has not accepted": lambda here: attached(here, "pendingAcceptance"),
    "connection that is not there": lambda here: routed(here, "pcx-00000001"),
    "connection of other VPCs": lambda here: routed(here, connection(here, here.vpc())),
    "connection that nobody has accepted": lambda here: routed(here, connection(here, here.parameters["VpcId"])),
    "private gateway that is not there": lambda here: routed(here, "vgw-00000001"),
    "private gateway of another VPC": lambda here: routed(here, private_gateway(here, here.vpc())),
    "private gateway that is attached to none": lambda here: routed(here, private_gateway(here)),
    "interface that is not there": lambda here: routed(here, "eni-00000001"),
    "interface of another VPC": lambda here: routed(here, interface(here, here.vpc())),
    "snapshots' key that signs": lambda here: key_of(here, KeyUsage="SIGN_VERIFY", KeySpec="RSA_2048"),
    "log bucket that is not there": lambda here: here.names("example-logs"),
    "snapshots' bucket without a lock": unlocked,
    "topic that is not there": lambda here: here.names("arn:aws:sns:us-west-2:${AWS::AccountId}:scaling"),
    "bucket that is not there": lambda here: recorded(here, "example-flow-logs"),
    "issuer's bucket that is not there": lambda here: here.file.update(
        serviceAccountIssuer={"discovery": "url", "url": "https://tokens.example.com", "bucket": "example-tokens"}
    ),
    "pods' policy of another account": lambda here: with_pod_role(here, additionalPolicies=[FOREIGN_POLICY]),
    "pods' boundary of another account": lambda here: with_pod_role(here, permissionsBoundary=FOREIGN_POLICY),
    "pods' role that is not there": lambda here: with_pod_role(here, role="arn:aws:iam::123456789012:role/own"),
    "repository that is not there": lambda here: with_registry(here, existing=True),
    "role of who pushes that is not there": lambda here: with_registry(
        here, push=[{"name": "web", "role": "arn:aws:iam::123456789012:role/own"}]
    ),
    "zone that is not there": lambda here: zoned(here, "publicZone", "Z1"),
    "private zone that is not there": lambda here: zoned(here, "privateZone", "Z2"),
    "list of a rule that is not there": lambda here: sourced(here, "pl-00000001"),
    "group of a rule that is not there": lambda here: sourced(here, "sg-00000001"),
    "group of a rule older than the VPC": sourced_before_the_vpc,
    "group older than the VPC": older,
    "group of another VPC": lambda here: here.names(here.group(here.vpc())),
    "group of another VPC than the stack's": of_another_than_the_stack,
    "group that is not there": lambda here: here.names("sg-00000001"),
    "group that bears the cluster's tag": tagged,
    "target group older than the VPC": target_group_older,
    "target group of another VPC": lambda here: here.names(here.target_group(here.vpc())),
    "target group that is not there": lambda here: here.names(TARGETS.replace("eu-central-1", REGION)),
    "target group of addresses": lambda here: here.names(here.target_group(here.parameters["VpcId"], "ip")),
    "policy of another account": lambda here: here.names("arn:aws:iam::210987654321:policy/x"),
    "boundary of another account": lambda here: here.names("arn:aws:iam::210987654321:policy/x"),
    "subnet of another VPC": lambda here: here.parameters.update(SubnetAId=here.subnet(here.vpc())),
    "subnet in another zone": lambda here: here.parameters.update(
        VpcId=(other := here.vpc()), SubnetAId=here.subnet(other, "us-west-2b"), RouteTableId="", InternetGatewayId=""
    ),
    "subnet with another range": ranged,
    "table of another VPC": lambda here: here.parameters.update(RouteTableId=here.table(here.vpc())),
    "table that is not there": lambda here: here.parameters.update(RouteTableId="rtb-00000001"),
    "gateway of another VPC": lambda here: here.parameters.update(InternetGatewayId=here.gateway(here.vpc())),
    "gateway that is attached to none": lambda here: here.parameters.update(InternetGatewayId=here.gateway()),
    "Elastic IP of another address": lambda here: elastic(
        here, here.ec2.allocate_address(Domain="vpc")["AllocationId"]
    ),
    "Elastic IP that is not there": lambda here: elastic(here, "eipalloc-00000001"),
    "bastion's Elastic IP of another address": lambda here: elastic_of_bastion(
        here, here.ec2.allocate_address(Domain="vpc")["AllocationId"]
    ),
    "bastion's Elastic IP that is not there": lambda here: elastic_of_bastion(here, "eipalloc-00000001"),
}
ROWS = [
    (key, scenario, says)
    for key, row in TABLE.items()
    for scenario, says in row.elsewhere.items()
    if ": " not in scenario
]


@pytest.mark.parametrize(("key", "scenario", "says"), ROWS)
def test_what_only_the_account_shows_is_refused_before_anything_changes(
    account: Account, key: str, scenario: str, says: str
) -> None:
    here = Landlord(account, key)
    here.check()
    SCENARIOS[scenario](here)
    with pytest.raises(ForeignObjectsError) as raised:
        here.check()
    [problem] = raised.value.problems
    assert is_key(problem.key)
    assert says in str(problem)
    assert problem.key.startswith(key.replace("[]", "[0]").replace("allocationId", "").rstrip("."))


@pytest.mark.parametrize(
    ("key", "id_parameter", "address_parameter"),
    [
        ("api.elasticIp", "ApiElasticIpAllocationId", "ApiElasticIp"),
        ("bastion.elasticIp", "BastionElasticIpAllocationId", "BastionElasticIpAddress"),
    ],
)
def test_an_elastic_ip_is_there_and_has_its_address(
    aws: Answers, key: str, id_parameter: str, address_parameter: str
) -> None:
    def problems(address: str) -> list[tuple[str, str]]:
        try:
            objects.check(
                aws.account,
                parse({}),
                {id_parameter: "eipalloc-1", address_parameter: address},
                None,
                lambda message: None,
            )
        except ForeignObjectsError as error:
            return [(problem.key, problem.text) for problem in error.problems]
        return []

    assert problems("203.0.113.1") == [(f"{key}.allocationId", f"there is no Elastic IP eipalloc-1 in {REGION}")]
    aws.given["ec2:DescribeAddresses"] = lambda arguments: {
        "Addresses": [{"PublicIp": "203.0.113.1"}] if filtered(arguments, "allocation-id") == ["eipalloc-1"] else []
    }
    other = "eipalloc-1 is 203.0.113.1 and not 203.0.113.2; correct one of the two"
    assert problems("203.0.113.2") == [(f"{key}.address", other)]
    assert problems("203.0.113.1") == []


@pytest.mark.parametrize("section", ["iam.masters", "iam.nodes", "nodeGroups[].iam"])
def test_a_role_that_ec2_may_assume_and_the_profile_that_holds_it_are_fine(account: Account, section: str) -> None:
    here = Landlord(account, f"{section}.role")
    has_profile(here, held="own")
    here.check()


def test_a_symmetric_key_is_fine(account: Account) -> None:
    here = Landlord(account, "secrets.kmsKey")
    key_of(here)
    here.check()


def test_targets_that_are_connected_with_the_vpc_are_fine(account: Account) -> None:
    for kind, make in (
        ("transitGateway", None),
        ("peeringConnection", connection),
        ("vpnGateway", private_gateway),
        ("networkInterface", interface),
    ):
        here = Landlord(account, f"network.routes[].{kind}")
        if make is None:
            attached(here, "available")
        else:
            target = make(here, here.parameters["VpcId"])
            if kind == "peeringConnection":
                here.ec2.accept_vpc_peering_connection(VpcPeeringConnectionId=target)
            routed(here, target)
        here.check()


def test_services_of_the_region_are_fine(account: Account) -> None:
    here = Landlord(account, "network.endpoints.additional[]")
    served(here, "kms", "sts", "com.amazonaws.us-west-2.monitoring")
    here.check()


B_AND_C = {"AvailabilityZones": [f"{REGION}b", f"{REGION}c"]}
NAMELESS = {"PrivateDnsName": None}
KMS, EC2 = (f"com.amazonaws.{REGION}.{service}" for service in ("kms", "ec2"))
NEEDS = "network.endpoints.services needs the entry"


@pytest.mark.parametrize(
    ("name", "offer", "settings", "says"),
    [
        (
            KMS,
            NAMELESS,
            {},
            f"additional[0]: {KMS} has no private DNS name; {NEEDS} {{service: kms, privateDns: fa",
        ),
        (KMS, {"PrivateDnsNameVerificationState": "failed"}, {}, f"{NEEDS} {{service: kms, privateDns: false}}"),
        (KMS, NAMELESS, {"service": "kms", "privateDns": False}, ""),
        (KMS, {"ServiceType": [{"ServiceType": "Gateway"}]}, {}, f"{KMS} has endpoints of the type Gateway only; "),
        (KMS, B_AND_C, {}, f"{KMS} is not in us-west-2a; {NEEDS} {{service: kms, zones: [us-west-2b]}}"),
        (KMS, B_AND_C, {"service": KMS, "zones": [f"{REGION}b"]}, ""),
        (KMS, B_AND_C | NAMELESS, {}, f"{NEEDS} {{service: kms, privateDns: false, zones: [us-west-2b]}}"),
        (KMS, B_AND_C, {"service": KMS, "zones": [ZONE]}, "(it is in us-west-2b and us-west-2c); remove it"),
        (EC2, B_AND_C, {}, f"network.endpoints.create: {EC2} is not in us-west-2a; {NEEDS} {{service: ec2, zones: ["),
        (EC2, NAMELESS, {}, f"network.endpoints.create: {EC2} has no private DNS name; use NAT gateways"),
    ],
)
def test_an_endpoint_has_what_its_service_offers(
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    offer: dict[str, Any],
    settings: dict[str, Any],
    says: str,
) -> None:
    offers = [service | (offer if service["ServiceName"] == name else {}) for service in services_of_aws(REGION)]
    monkeypatch.setattr(
        VPCBackend, "_collect_default_endpoint_services", staticmethod(lambda account_id, region: offers)
    )
    here = Landlord(account, "")
    served(here, "kms")
    here.file["network"]["subnets"].append({"zone": f"{REGION}b", "cidr": "10.20.32.0/20"})
    here.file["network"]["endpoints"]["services"] = [settings] if settings else []
    if not says:
        here.check()
        return
    with pytest.raises(ForeignObjectsError) as raised:
        here.check()
    [problem] = map(str, raised.value.problems)
    assert says in problem


def test_a_prefix_list_of_the_region_is_fine(account: Account) -> None:
    here = Landlord(account, "network.routes[].destination")
    made = here.ec2.create_managed_prefix_list(PrefixListName="offices", MaxEntries=1, AddressFamily="IPv4")
    routed(here, made["PrefixList"]["PrefixListId"])
    here.check()


@pytest.mark.parametrize("key", [key for key, row in TABLE.items() if row in (LISTED, SOURCE_GROUP)])
def test_a_list_and_a_group_that_may_reach_a_port_are_fine(account: Account, key: str) -> None:
    here = Landlord(account, key)
    made = here.ec2.create_managed_prefix_list(PrefixListName="offices", MaxEntries=1, AddressFamily="IPv4")
    # A group may be of a peered VPC.
    sourced(here, here.group(here.vpc()) if TABLE[key] is SOURCE_GROUP else made["PrefixList"]["PrefixListId"])
    here.check()


def test_a_group_of_the_vpc_that_the_stack_has_made_is_fine(account: Account) -> None:
    here = Landlord(account, "controlPlane.additionalSecurityGroups[]")
    vpc = here.vpc()
    here.names(here.group(vpc))
    here.made_by_the_stack(vpc)
    here.check()


@pytest.mark.parametrize(("tagged_groups", "is_refused"), [((0,), False), ((1,), False), ((0, 1), True)])
def test_one_group_of_an_instance_may_have_the_clusters_tag(
    account: Account, tagged_groups: tuple[int, ...], *, is_refused: bool
) -> None:
    here = Landlord(account, "nodeGroups[].additionalSecurityGroups[]")
    create = here.ec2.create_security_group
    vpc = here.parameters["VpcId"]
    groups = [create(GroupName=name, Description="own", VpcId=vpc)["GroupId"] for name in ("first", "second")]
    for position in tagged_groups:
        tag = {"Key": "kubernetes.io/cluster/kubernetes", "Value": "shared"}
        here.ec2.create_tags(Resources=[groups[position]], Tags=[tag])
    here.file["network"]["securityGroups"] = {"nodes": groups[0]}
    here.names(groups[1])
    if not is_refused:
        here.check()
        return
    with pytest.raises(ForeignObjectsError, match=f"this tag, and {groups[0]} has it: remove the tag"):
        here.check()


def test_who_may_not_look_is_told_what_was_not_checked_and_not_kept_from_deploying(account: Account) -> None:
    here = Landlord(account, "controlPlane.additionalSecurityGroups[]")
    here.names("sg-00000001")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(here.ec2, "describe_security_groups", refused)
        patch.setattr(here.ec2, "can_paginate", lambda call: False)
        here.check()
    [notice] = here.told
    assert isinstance(notice, Notice)
    assert notice.text.startswith("the security groups cannot be read, so what depends on it was not checked: not all")
    assert "ask for the permissions of an operator" in str(notice.hint)


def test_what_can_be_read_is_checked_though_something_else_cannot(account: Account) -> None:
    here = Landlord(account, "controlPlane.additionalSecurityGroups[]")
    here.names("sg-00000001")
    here.parameters["SubnetAId"] = "subnet-00000001"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(here.ec2, "describe_security_groups", refused)
        patch.setattr(here.ec2, "can_paginate", lambda call: False)
        with pytest.raises(ForeignObjectsError, match=r"^network\.subnets\[0\]\.id: there is no subnet"):
            here.check()
    assert ["cannot be read" in str(notice) for notice in here.told] == [True]


def refused(**arguments: Any) -> Any:
    from botocore.exceptions import ClientError

    raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeSecurityGroups")

"""What a drawn cluster file takes for granted in the account: made there, and named in the file by its real id.

Whatever the file says of such a thing is the name by which an account is compared with another; a cluster that changes
keeps what it has of it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from cloud import Cloud
from drawn_files import File, get, put

NOBODY = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "*", "Resource": "*"}]}


@dataclass
class Landlord:
    """Somebody who has what clusters are built upon.

    Attributes:
        cloud: the account.
        real: ids, ARNs and names in it by what a file says.
    """

    cloud: Cloud
    real: dict[str, str] = field(default_factory=dict)

    @property
    def ids(self) -> dict[str, str]:
        """What files say, by the ids and ARNs that stand for it; names are the same everywhere."""
        named = {
            real: f"<{drawn}>" for drawn, real in self.real.items() if not drawn.startswith(("key pair ", "bucket "))
        }
        # Logical ids have the ids of prefix lists and security groups in them.
        return named | {
            f"{real[:2].title()}{real[3:]}": drawn for real, drawn in named.items() if real.startswith(("pl-", "sg-"))
        }

    def furnish(self, file: File) -> File:
        """Return the file as it holds in this account, which then has everything that it names."""
        furnished = copy.deepcopy(file)
        self._network(furnished)
        self._network_beside(furnished)
        self._access(furnished)
        for instances in (furnished["controlPlane"], *furnished["nodeGroups"], furnished.get("bastion", {})):
            self._instances(furnished, instances)
        self._instances(furnished, furnished)
        return furnished

    def _made(self, drawn: str, make: Callable[[], str]) -> str:
        if drawn not in self.real:
            self.real[drawn] = make()
        return self.real[drawn]

    def _replace(self, file: File, key: str, make: Callable[[str], str]) -> None:
        """Put the real thing into a file that names one."""
        if drawn := get(file, key):
            put(file, key, self._made(drawn, lambda: make(drawn)))

    def _network(self, file: File) -> None:
        ec2, vpc = self.cloud.client("ec2"), file["network"].get("vpc", {})
        self._replace(file, "network.vpc.id", lambda _: ec2.create_vpc(CidrBlock=vpc["cidr"])["Vpc"]["VpcId"])
        existing = [each for each in file["network"]["subnets"] if "id" in each]
        for subnet in existing:
            self._replace(subnet, "id", lambda _, subnet=subnet: self._subnet(vpc["id"], subnet))
        if "id" in vpc:
            gateway = get(file, "network.internetGateway", "igw-of-the-vpc")
            # A VPC has one gateway at most, by whatever id a file first names it.
            self._made("igw-of-the-vpc", lambda: self._gateway(vpc["id"]))
            put(file, "network.internetGateway", self._made(gateway, lambda: self.real["igw-of-the-vpc"]))
            if existing:
                self._made("default route", lambda: self._default_route(vpc["id"], file["network"]["internetGateway"]))
                del file["network"]["internetGateway"]
        if existing and file["network"]["plugin"] == "vpc-routes":
            table = get(file, "network.routeTable", "rtb-of-the-subnets")
            put(file, "network.routeTable", self._made(table, lambda: self._table(file)))

    def _subnet(self, vpc: str, subnet: File) -> str:
        made = self.cloud.client("ec2").create_subnet(
            VpcId=vpc, CidrBlock=subnet["cidr"], AvailabilityZone=subnet["zone"]
        )
        return str(made["Subnet"]["SubnetId"])

    def _gateway(self, vpc: str) -> str:
        ec2 = self.cloud.client("ec2")
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
        return str(gateway)

    def _default_route(self, vpc: str, gateway: str) -> str:
        """Let the VPC's main route table, which subnets have without another one, lead to the internet."""
        ec2 = self.cloud.client("ec2")
        filters = [{"Name": "vpc-id", "Values": [vpc]}, {"Name": "association.main", "Values": ["true"]}]
        [table] = ec2.describe_route_tables(Filters=filters)["RouteTables"]
        ec2.create_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
        return str(table["RouteTableId"])

    def _table(self, file: File) -> str:
        ec2, network = self.cloud.client("ec2"), file["network"]
        table = ec2.create_route_table(VpcId=network["vpc"]["id"])["RouteTable"]["RouteTableId"]
        gateway = self.real["igw-of-the-vpc"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
        for subnet in network["subnets"]:
            ec2.associate_route_table(RouteTableId=table, SubnetId=subnet["id"])
        return str(table)

    def _network_beside(self, file: File) -> None:
        ec2 = self.cloud.client("ec2")
        options = [{"Key": "domain-name", "Values": ["example.com"]}]
        if get(file, "network.dhcpOptions", "default") != "default":
            self._replace(
                file,
                "network.dhcpOptions",
                lambda _: ec2.create_dhcp_options(DhcpConfigurations=options)["DhcpOptions"]["DhcpOptionsId"],
            )
        for section in ("api", "ssh", "bastion"):
            for each in get(file, f"{section}.allowedPrefixLists", ()):
                self._replace(each, "id", lambda name: self._prefix_list(name))
        vpc = get(file, "network.vpc.id")
        for instances in (file.get("controlPlane", {}), file.get("bastion", {}), *file["nodeGroups"]):
            for rule in instances.get("ingress", ()):
                for each in rule.get("prefixLists", ()):
                    self._replace(each, "id", lambda name: self._prefix_list(name))
                groups = rule.get("securityGroups", [])
                for index, drawn in enumerate(groups):
                    groups[index] = self._made(drawn, lambda drawn=drawn: self._security_group(drawn, vpc))
        for section in ("api", "bastion"):
            if elastic := get(file, f"{section}.elasticIp"):
                self._replace(
                    file,
                    f"{section}.elasticIp.allocationId",
                    lambda _, address=elastic["address"]: ec2.allocate_address(Domain="vpc", Address=address)[
                        "AllocationId"
                    ],
                )
        for kind in ("publicZone", "privateZone"):
            self._replace(file, f"api.dns.{kind}.id", lambda _, kind=kind: self._zone(kind))

    def _zone(self, kind: str) -> str:
        """A hosted zone of the domain that drawn names are in; a private one is of the account's default VPC."""
        region, private = self.cloud.cluster.region, {}
        if kind == "privateZone":
            filters = [{"Name": "is-default", "Values": ["true"]}]
            [vpc] = self.cloud.client("ec2").describe_vpcs(Filters=filters)["Vpcs"]
            private = {
                "VPC": {"VPCRegion": region, "VPCId": vpc["VpcId"]},
                "HostedZoneConfig": {"PrivateZone": True},
            }
        made = self.cloud.client("route53").create_hosted_zone(Name="example.com", CallerReference=kind, **private)
        return str(made["HostedZone"]["Id"].removeprefix("/hostedzone/"))

    def _prefix_list(self, name: str) -> str:
        made = self.cloud.client("ec2").create_managed_prefix_list(
            PrefixListName=name, MaxEntries=10, AddressFamily="IPv4", Entries=[{"Cidr": "198.51.100.0/24"}]
        )
        return str(made["PrefixList"]["PrefixListId"])

    def _access(self, file: File) -> None:
        name = get(file, "ssh.keyName")
        if name:
            self._made(f"key pair {name}", lambda: self.cloud.client("ec2").create_key_pair(KeyName=name)["KeyName"])
        self._replace(file, "iam.permissionsBoundary", self._policy)
        self._replace(file, "certificateAuthority.secret", self._secret)
        bucket = get(file, "etcd.backups.bucket")
        if bucket:
            self._made(f"bucket {bucket}", lambda: self._bucket(bucket))

    def _policy(self, arn: str) -> str:
        name = arn.rpartition("/")[2]
        made = self.cloud.client("iam").create_policy(PolicyName=name, PolicyDocument=json.dumps(NOBODY))
        return str(made["Policy"]["Arn"])

    def _secret(self, arn: str) -> str:
        name = arn.rpartition(":")[2].rpartition("-")[0]
        made = self.cloud.client("secretsmanager").create_secret(Name=name, SecretString="{}")
        return str(made["ARN"])

    def _bucket(self, name: str) -> str:
        region = self.cloud.cluster.region
        where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        self.cloud.client("s3").create_bucket(Bucket=name, **where)
        return name

    def _instances(self, file: File, instances: File) -> None:
        # Images are drawn where instances are of amd64 only.
        images = {name: image for name, image in self.cloud.account.images.items() if "arm64" not in name}
        if drawn := get(instances, "image.id"):
            put(instances, "image.id", self._made(drawn, lambda: sorted(images.values())[int(drawn[-1])]))
        for section in ("rootVolume", "volume"):
            self._replace(instances, f"{section}.kmsKey", self._key)
        vpc = get(file, "network.vpc.id")
        groups, policies = instances.get("additionalSecurityGroups", []), instances.get("additionalPolicies", [])
        for index, drawn in enumerate(groups):
            groups[index] = self._made(drawn, lambda drawn=drawn: self._security_group(drawn, vpc))
        for index, drawn in enumerate(policies):
            policies[index] = self._made(drawn, lambda drawn=drawn: self._policy(drawn))

    def _key(self, _: str) -> str:
        return str(self.cloud.client("kms").create_key(Description="volumes")["KeyMetadata"]["Arn"])

    def _security_group(self, name: str, vpc: str) -> str:
        made = self.cloud.client("ec2").create_security_group(
            GroupName=name.replace("sg-", "own-"), Description=name, VpcId=vpc
        )
        return str(made["GroupId"])

"""A network of someone else's in the emulator's EC2, and a cluster file that names it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "cli"))

from aws_cli import parsed

from cfngen.cluster.file.keys import fields, section_at
from cfngen.cluster.load import parse
from cfngen.deploy.aws.account import Account
from cfngen.deploy.preflight.findings import Finding, NetworkCheck
from cfngen.deploy.preflight.network.checks import check_network

REGION = "us-west-2"
EVERYWHERE = "0.0.0.0/0"


def is_key(text: str) -> bool:
    """Whether a finding's key is one of the cluster file, e.g. `network.subnets[0].id`."""
    *section, key = re.sub(r"\[\d+\]", "", text).split(".")
    model = section_at(tuple(section))
    return model is not None and key in fields(model)


class ExistingNetwork:
    """A VPC with a subnet in each of two zones, whose default routes lead where the topology needs.

    Attributes:
        ec2: the client that changes it.
        network: the section `network` of the cluster file.
        file: the other sections.
        endpoints: ids of interface endpoints by service.
        s3: id of the endpoint for S3.
    """

    def __init__(self, account: Account, topology: str = "public", plugin: str = "cilium") -> None:
        self.account = account
        self.ec2 = account.client("ec2")
        self.vpc = self.ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
        self.ec2.modify_vpc_attribute(VpcId=self.vpc, EnableDnsHostnames={"Value": True})
        self.gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=self.gateway, VpcId=self.vpc)
        self.public_table = self.table()
        self.route(self.public_table, GatewayId=self.gateway)
        self.table_of_instances = self.public_table
        if topology == "private":
            self.public_subnet = self.subnet("a", "10.20.200.0/26", self.public_table, "elb")
            self.nat_gateway = self.new_nat_gateway(self.public_subnet)
            self.table_of_instances = self.table()
            self.route(self.table_of_instances, NatGatewayId=self.nat_gateway)
        role = "internal-elb" if topology == "private" else "elb"
        self.subnets = [
            self.subnet(zone, f"10.20.{third}.0/24", self.table_of_instances, role)
            for zone, third in (("a", 0), ("b", 16))
        ]
        self.network: dict[str, Any] = {
            "topology": topology,
            "plugin": plugin,
            "vpc": {"id": self.vpc, "cidr": "10.20.0.0/16"},
            "subnets": [
                {"zone": f"{REGION}{zone}", "id": subnet, "cidr": f"10.20.{third}.0/24"}
                for (zone, third), subnet in zip((("a", 0), ("b", 16)), self.subnets, strict=True)
            ],
            "serviceCidr": "10.250.0.0/16",
            "podCidr": "10.244.0.0/16",
        }
        self.file: dict[str, Any] = {}
        self.endpoints: dict[str, str] = {}
        self.s3 = ""
        if topology == "private":
            self.file["api"] = {"public": False}

    def table(self) -> str:
        return str(self.ec2.create_route_table(VpcId=self.vpc)["RouteTable"]["RouteTableId"])

    def route(self, table: str, destination: str = EVERYWHERE, **target: str) -> None:
        self.ec2.create_route(RouteTableId=table, DestinationCidrBlock=destination, **target)

    def subnet(self, zone: str, cidr: str, table: str = "", role: str = "") -> str:
        made = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=cidr, AvailabilityZone=f"{REGION}{zone}")["Subnet"]
        if table:
            self.ec2.associate_route_table(RouteTableId=table, SubnetId=made["SubnetId"])
        if role:
            self.tag(made["SubnetId"], f"kubernetes.io/role/{role}", "1")
        return str(made["SubnetId"])

    def tag(self, resource: str, key: str, value: str) -> None:
        self.ec2.create_tags(Resources=[resource], Tags=[{"Key": key, "Value": value}])

    def new_nat_gateway(self, subnet: str) -> str:
        allocation = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        made = self.ec2.create_nat_gateway(SubnetId=subnet, AllocationId=allocation)["NatGateway"]
        return str(made["NatGatewayId"])

    def drop_default_route(self, table: str = "") -> None:
        table = table or self.table_of_instances
        self.ec2.delete_route(RouteTableId=table, DestinationCidrBlock=EVERYWHERE)

    def group(self, *cidrs: str) -> str:
        """Make a security group that admits HTTPS from these ranges."""
        made = self.ec2.create_security_group(GroupName=f"https-{len(cidrs)}", Description="https", VpcId=self.vpc)
        for cidr in cidrs:
            https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": cidr}]}
            self.ec2.authorize_security_group_ingress(GroupId=made["GroupId"], IpPermissions=[https])
        return str(made["GroupId"])

    def endpoint(self, service: str, group: str, *, private_dns: bool = True) -> str:
        made = self.ec2.create_vpc_endpoint(
            VpcId=self.vpc,
            VpcEndpointType="Interface",
            ServiceName=f"com.amazonaws.{REGION}.{service}",
            SubnetIds=self.subnets,
            SecurityGroupIds=[group],
            PrivateDnsEnabled=private_dns,
        )
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def s3_endpoint(self, *tables: str) -> str:
        made = self.ec2.create_vpc_endpoint(
            VpcId=self.vpc,
            VpcEndpointType="Gateway",
            ServiceName=f"com.amazonaws.{REGION}.s3",
            RouteTableIds=list(tables),
        )
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def check(self) -> NetworkCheck:
        """Check the network, as `cfngen check network` does."""
        cluster = parse({**self.file, "network": self.network})
        result = check_network(self.account, cluster, lambda message: None)
        assert [finding.key for finding in result.findings if finding.key and not is_key(finding.key)] == []
        for finding in result.findings:
            for command in finding.commands:
                parsed(command.split())  # there is such a command of the AWS CLI
        return result

    def found(self) -> list[Finding]:
        """Return the problems and warnings."""
        result = self.check()
        return [*result.problems, *result.warnings]

    def only(self) -> Finding:
        """Return the one problem or warning."""
        [finding] = self.found()
        return finding

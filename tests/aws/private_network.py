"""A network that somebody else has made, with a private and a public subnet, and clusters in the private one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import client

REGION = "us-west-2"
VPC_RANGE = "10.20.0.0/16"
DEFAULT_ROUTE = "0.0.0.0/0"
DEFAULT_CASE = Path(__file__).parents[1] / "golden" / "cases" / "default" / "cluster.yaml"
# Services that masters and nodes call while they boot.
SERVICES = ("cloudformation", "ec2", "secretsmanager")
# What a cluster without any way to the internet needs besides endpoints.
ISOLATED = (
    "image.distribution=amazon-linux-2023",
    "assets.mirror=http://10.20.9.9/files",
    *(
        f"{group}.containerd.registryMirrors={{registry.k8s.io: [http://10.20.9.9/registry]}}"
        for group in ("controlPlane", "nodeGroups[0]")
    ),
)


@dataclass(frozen=True)
class PrivateNetwork:
    """A VPC with a private subnet, which has no way out at first, and a public one.

    Attributes:
        vpc_id: id of the VPC.
        subnet_id: id of the private subnet.
        table_id: id of its route table.
        public_subnet_id: id of the public subnet.
        public_table_id: id of its route table, which leads to an internet gateway.
        gateway_id: id of that internet gateway.
    """

    vpc_id: str
    subnet_id: str
    table_id: str
    public_subnet_id: str
    public_table_id: str
    gateway_id: str

    @staticmethod
    def create() -> PrivateNetwork:
        """Create the network in the open account."""
        ec2 = _ec2()
        vpc_id = ec2.create_vpc(CidrBlock=VPC_RANGE)["Vpc"]["VpcId"]
        ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
        gateway_id = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(InternetGatewayId=gateway_id, VpcId=vpc_id)
        subnet_ids, table_ids = [], []
        for block in ("10.20.0.0/20", "10.20.240.0/24"):
            subnet = ec2.create_subnet(VpcId=vpc_id, CidrBlock=block, AvailabilityZone=f"{REGION}a")["Subnet"]
            table = ec2.create_route_table(VpcId=vpc_id)["RouteTable"]
            ec2.associate_route_table(RouteTableId=table["RouteTableId"], SubnetId=subnet["SubnetId"])
            subnet_ids.append(subnet["SubnetId"])
            table_ids.append(table["RouteTableId"])
        ec2.create_route(RouteTableId=table_ids[1], DestinationCidrBlock=DEFAULT_ROUTE, GatewayId=gateway_id)
        return PrivateNetwork(vpc_id, subnet_ids[0], table_ids[0], subnet_ids[1], table_ids[1], gateway_id)

    def add_nat_gateway(self, **options: Any) -> str:
        """Create a NAT gateway in the public subnet; return its id."""
        address = _ec2().allocate_address(Domain="vpc")
        request = {"SubnetId": self.public_subnet_id, "AllocationId": address["AllocationId"], **options}
        return str(_ec2().create_nat_gateway(**request)["NatGateway"]["NatGatewayId"])

    def route_out(self, **target: str) -> None:
        """Create the default route of the private subnet."""
        _ec2().create_route(RouteTableId=self.table_id, DestinationCidrBlock=DEFAULT_ROUTE, **target)

    def add_s3_endpoint(self) -> str:
        """Create a gateway endpoint for S3 in the private subnet's route table; return its id."""
        endpoint = _ec2().create_vpc_endpoint(
            VpcId=self.vpc_id, ServiceName=f"com.amazonaws.{REGION}.s3", RouteTableIds=[self.table_id]
        )
        return str(endpoint["VpcEndpoint"]["VpcEndpointId"])

    def add_endpoint(self, service: str, *, admitted: str = VPC_RANGE, **options: Any) -> str:
        """Create an interface endpoint in the private subnet; return its id.

        Args:
            service: the service in the endpoint's name.
            admitted: the addresses that its security group admits on port 443.
            options: further parameters of CreateVpcEndpoint.
        """
        ec2 = _ec2()
        group_id = ec2.create_security_group(GroupName=f"endpoint-{service}", Description="HTTPS", VpcId=self.vpc_id)[
            "GroupId"
        ]
        permission = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": admitted}]}
        ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=[permission])
        request = {
            "VpcEndpointType": "Interface",
            "VpcId": self.vpc_id,
            "ServiceName": f"com.amazonaws.{REGION}.{service}",
            "SubnetIds": [self.subnet_id],
            "SecurityGroupIds": [group_id],
            "PrivateDnsEnabled": True,
            **options,
        }
        return str(ec2.create_vpc_endpoint(**request)["VpcEndpoint"]["VpcEndpointId"])

    def cluster(self, *overrides: str) -> Cluster:
        """Return a cluster in the private subnet, without public addresses."""
        settings = (
            "network.topology=private",
            f"network.vpc.id={self.vpc_id}",
            f"network.vpc.cidr={VPC_RANGE}",
            "network.subnets[0].zone=us-west-2a",
            f"network.subnets[0].id={self.subnet_id}",
            "network.subnets[0].cidr=10.20.0.0/20",
            f"network.routeTable={self.table_id}",
            "network.serviceCidr=10.250.0.0/16",
            "api.public=false",
            *overrides,
        )
        return load(DEFAULT_CASE, environ={}, overrides=settings).cluster


def _ec2() -> Any:
    """Return EC2's client."""
    return client("ec2", REGION)

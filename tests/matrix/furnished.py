"""What the cluster file of a combination takes for granted in the account: made there, and named by its real id."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from clusters import bring_roles
from drawn_files import File, get, put
from landlord import Landlord

from cfngen.cluster.load import parse
from cfngen.cluster.security_groups.needed_rules import needed_rules

EVERYWHERE = "0.0.0.0/0"
# A subnet for load balancers and NAT gateways in each zone, beside the ranges of the dimension's own subnets.
_BESIDE = ("10.20.210.0/26", "10.20.210.64/26", "10.20.210.128/26")


@dataclass
class Owner(Landlord):
    """Somebody who has what the clusters of the matrix are built upon: networks, groups, roles, keys, images."""

    def furnish(self, file: File) -> File:
        """Return the file as it holds in this account, which then has everything that it names."""
        furnished = copy.deepcopy(file)
        if get(furnished, "network.vpc.id"):
            self._existing_network(furnished)
        self._network_beside(furnished)
        self._access(furnished)
        self._replace(furnished, "secrets.kmsKey", self._key)
        for instances in (furnished["controlPlane"], *furnished["nodeGroups"], furnished.get("bastion", {}), furnished):
            self._instances(furnished, instances)
        if get(furnished, "network.flowLogs.bucket"):
            self._bucket(furnished["network"]["flowLogs"]["bucket"])
        self._fill_security_groups(furnished)
        bring_roles(parse(furnished))
        return furnished

    @property
    def ec2(self) -> Any:
        return self.cloud.client("ec2")

    def _existing_network(self, file: File) -> None:
        """Make the VPC, and what the file names of its gateways, subnets and route tables."""
        network = file["network"]
        vpc = self._made(network["vpc"]["id"], lambda: self._vpc(network["vpc"]["cidr"]))
        network["vpc"]["id"] = vpc
        gateway = self._made(network.get("internetGateway", "igw-of-the-vpc"), lambda: self._gateway(vpc))
        if "internetGateway" in network:
            network["internetGateway"] = gateway
        public_table = self._table_to(vpc, GatewayId=gateway)
        for index, subnet in enumerate(network["subnets"]):
            beside = subnet.get("public", {})
            if "id" in beside or "natGateway" in subnet or ("id" in subnet and self._needs_nat(file)):
                public = self._in_zone(vpc, subnet["zone"], _BESIDE[index], public_table, "elb")
                if "id" in beside:
                    beside["id"] = public
                if "natGateway" in subnet:
                    subnet["natGateway"] = self._nat(public)
            if "routeTable" in subnet:
                subnet["routeTable"] = self._table_to(vpc, GatewayId=gateway)
            if "id" in subnet:
                table = self._table_of_subnet(file, vpc, gateway, public if self._needs_nat(file) else "")
                subnet["id"] = self._in_zone(vpc, subnet["zone"], subnet["cidr"], table)
        if "routeTable" in network:
            network["routeTable"] = self.real["table of the subnets"]

    @staticmethod
    def _needs_nat(file: File) -> bool:
        """Whether existing subnets need a way to the internet for instances without public addresses."""
        return get(file, "network.topology") == "private" or get(file, "api.public") is False

    def _table_of_subnet(self, file: File, vpc: str, gateway: str, public_subnet: str) -> str:
        """Return the route table of an existing subnet: with VPC routes all have one, behind NAT each its own."""
        if not public_subnet:
            return self._made("table of the subnets", lambda: self._table_to(vpc, GatewayId=gateway))
        if file["network"]["plugin"] == "vpc-routes":
            return self._made(
                "table of the subnets", lambda: self._table_to(vpc, NatGatewayId=self._nat(public_subnet))
            )
        return self._table_to(vpc, NatGatewayId=self._nat(public_subnet))

    def _vpc(self, cidr: str) -> str:
        vpc = self.ec2.create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"]
        self.ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
        return str(vpc)

    def _table_to(self, vpc: str, **target: str) -> str:
        """Make a route table with a default route."""
        table = self.ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        self.ec2.create_route(RouteTableId=table, DestinationCidrBlock=EVERYWHERE, **target)
        return str(table)

    def _nat(self, subnet: str) -> str:
        allocation = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        made = self.ec2.create_nat_gateway(SubnetId=subnet, AllocationId=allocation)
        return str(made["NatGateway"]["NatGatewayId"])

    def _in_zone(self, vpc: str, zone: str, cidr: str, table: str, role: str = "") -> str:
        """Make a subnet with a route table."""
        made = self.ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]["SubnetId"]
        self.ec2.associate_route_table(RouteTableId=table, SubnetId=made)
        if role:
            self.ec2.create_tags(Resources=[made], Tags=[{"Key": f"kubernetes.io/role/{role}", "Value": "1"}])
        return str(made)

    def _fill_security_groups(self, file: File) -> None:
        """Make the security groups that the file names, with the rules that the cluster needs."""
        groups = get(file, "network.securityGroups", {})
        for name in groups:
            made = self.ec2.create_security_group(
                GroupName=f"existing-{name}", Description=name, VpcId=file["network"]["vpc"]["id"]
            )
            groups[name] = made["GroupId"]
        if "nodes" in groups:
            tag = {"Key": f"kubernetes.io/cluster/{file['name']}", "Value": "shared"}
            self.ec2.create_tags(Resources=[groups["nodes"]], Tags=[tag])
        for rule in needed_rules(parse(file)) if groups else ():
            if rule.direction == "ingress":
                self.ec2.authorize_security_group_ingress(GroupId=rule.group, IpPermissions=[rule.permission])

    def _instances(self, file: File, instances: File) -> None:
        if drawn := get(instances, "image.id"):
            put(instances, "image.id", self._made(drawn, lambda: self._image(drawn)))
        image = instances.pop("image", None)
        super()._instances(file, instances)
        if image is not None:
            instances["image"] = image

    def _image(self, name: str) -> str:
        """An image of the operator's: those whose id ends in 1 are of arm64."""
        architecture = "arm64" if name.endswith("1") else "x86_64"
        made = self.ec2.register_image(Name=name, Architecture=architecture, RootDeviceName="/dev/sda1")
        return str(made["ImageId"])

"""Parts of a network for the rows of refusals: resources of templates, and sources that many rows share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from refusal import Creation, Resources
from small_stacks import REGION

from cfngen.sandbox.cloudformation import client

API = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference"
VPC_GUIDE = "https://docs.aws.amazon.com/vpc/latest/userguide"
CODES = f"EC2 API: [error codes]({API}/errors-overview.html)"
ZONE = f"{REGION}a"

CONDITION: Final = "condition documented"

VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}
OTHER_VPC = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.1.0.0/16"}}
GATEWAY = {"Type": "AWS::EC2::InternetGateway"}


def code(name: str) -> str:
    """The source of a row whose condition stands in EC2's list of error codes."""
    return f"{CODES}, {name}"


def operation(name: str, text: str = "") -> str:
    """The source of a row whose condition stands in the reference of an operation of EC2."""
    return f"EC2 API: [{name}]({API}/API_{name}.html)" + (f", {text}" if text else "")


def guide(page: str, title: str) -> str:
    """The source of a row whose condition stands in the VPC user guide."""
    return f"Amazon VPC user guide: [{title}]({VPC_GUIDE}/{page}.html)"


def seen(title: str, url: str) -> str:
    """The source of a row whose words stand in a log that someone has shown."""
    return f"[{title}]({url})"


def ref(logical_id: str) -> dict[str, str]:
    return {"Ref": logical_id}


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::EC2::{kind}", "Properties": properties}


def subnet(block: str = "10.0.0.0/24", vpc: str = "Vpc", zone: str = ZONE) -> dict[str, Any]:
    return resource("Subnet", VpcId=ref(vpc), CidrBlock=block, AvailabilityZone=zone)


def table(vpc: str = "Vpc") -> dict[str, Any]:
    return resource("RouteTable", VpcId=ref(vpc))


def security_group(vpc: str = "Vpc", **properties: Any) -> dict[str, Any]:
    return resource("SecurityGroup", VpcId=ref(vpc), GroupDescription="group", **properties)


def interface(**properties: Any) -> dict[str, Any]:
    return resource("NetworkInterface", **{"SubnetId": ref("Subnet"), **properties})


def network(**others: Any) -> Creation:
    """A VPC with a subnet, and with other resources, of which the last one fails."""
    resources: Resources = {"Vpc": VPC, "Subnet": subnet(), **others}
    return Creation(lambda: resources, fails=list(resources)[-1])


def only(**resources: Mapping[str, Any]) -> Creation:
    """Resources, of which the last one fails."""
    return Creation(lambda: resources, fails=list(resources)[-1])


def ec2() -> Any:
    return client("ec2", REGION)

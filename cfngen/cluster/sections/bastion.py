"""The bastion: an instance through which users reach the others by SSH."""

from __future__ import annotations

from pydantic import Field

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import List
from cfngen.cluster.sections.ingress import IngressRule
from cfngen.cluster.sections.instances import Image, Machine
from cfngen.cluster.sections.network import ElasticIp, PrefixList


class Bastion(Machine):
    """The bastion: an instance with a public address, through which users reach masters and nodes by SSH.

    It has the key of `ssh.keyName` or `ssh.publicKey`, as all instances, and no IAM role.
    """

    instance_type: field_types.InstanceType = Field(
        "t3.micro", description="EC2 instance type. Default: t3.micro, or t4g.micro for an image of arm64."
    )
    image: Image = Field(default_factory=Image, description="Image of the bastion. Default: the cluster's.")
    allowed_cidrs: List[field_types.Cidr] = Field(
        (), description="Address ranges that may reach port 22 of the bastion. Without any, it must have prefix lists."
    )
    allowed_prefix_lists: List[PrefixList] = Field(
        (), description="Prefix lists whose ranges may reach port 22 of the bastion, besides `allowedCidrs` or instead."
    )
    ingress: List[IngressRule] = Field(
        (), description="Further ports of the bastion that are opened. A change replaces nothing."
    )
    zone: field_types.Zone | None = Field(
        None,
        description="Zone of the bastion; it must have a subnet. Default: the first Availability Zone, in a private "
        "cluster the first with a public subnet.",
    )
    elastic_ip: ElasticIp | None = Field(None, description="An existing Elastic IP to use instead of a new one.")

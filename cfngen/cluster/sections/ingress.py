"""Ports of masters, of a node group or of the bastion that are opened beyond what the cluster itself needs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import List, Model
from cfngen.cluster.sections.network import PrefixList


class IngressRule(Model):
    """Ports that are opened to address ranges, prefix lists or security groups."""

    description: field_types.RuleDescription | None = Field(
        None, description="What the rule is for, as EC2 shows it. Default: protocol, ports and source."
    )
    protocol: Literal["tcp", "udp", "icmp", "all"] = Field(
        "tcp", description="Protocol; `icmp` is all of its types, `all` is all traffic."
    )
    ports: field_types.PortRange | None = Field(
        None,
        description="A port such as 30080, or a range such as 30000-32767: of `tcp` and `udp`, and only of these.",
    )
    cidrs: List[field_types.Cidr] = Field((), description="Address ranges that may reach the ports.")
    prefix_lists: List[PrefixList] = Field((), description="Prefix lists whose ranges may reach the ports.")
    security_groups: List[field_types.SourceGroupId] = Field(
        (),
        description="Ids of existing security groups, of the cluster's VPC or a peered one, whose instances may reach "
        "the ports.",
    )

    @property
    def port_range(self) -> tuple[int, int] | None:
        """First and last port; None for all."""
        if self.ports is None:
            return None
        first, _, last = self.ports.partition("-")
        return int(first), int(last or first)

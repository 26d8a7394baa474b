"""The logical ids of security groups and their rules: how they are made and parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from cfngen.cluster.allowed_sources import SECURITY_GROUP_ROLES, SecurityGroupRole
from cfngen.cluster.id_form import IdForm

# Whose security group a rule belongs to. The bastion has one group, whose rules all open the same port.
RuleRole = SecurityGroupRole | Literal["Bastion"]

_ANY_ROLE_PATTERN = "|".join(SECURITY_GROUP_ROLES)


@dataclass(frozen=True)
class RuleId(IdForm):
    """A rule of a security group, e.g. `MasterSshFrom10x0x0x0x8`.

    Attributes:
        purpose: what the open port is for, e.g. `Api`; empty for a rule that opens every port, and for the rules of the
            API's load balancer.
        source: who may connect: other instances or a load balancer of the cluster, the range of the parameter
            `ApiAllowedCidr`, or a CIDR or prefix list as `source_id` spells it.
    """

    role: RuleRole
    purpose: str
    source: str

    _PATTERN: ClassVar = re.compile(
        rf"(?P<role>{_ANY_ROLE_PATTERN}|Bastion)(?P<purpose>[A-Z][A-Za-z0-9]*?)?From"
        r"(?P<source>Masters|Nodes|Bastion|LoadBalancer|InternalLoadBalancer|AllowedCidr|Pl[0-9a-f]+|[0-9]+(?:x[0-9]+){4})"
    )

    def __str__(self) -> str:
        return f"{self.role}{self.purpose}From{self.source}"

    @property
    def from_outside(self) -> bool:
        """Whether the rule's source is neither an instance nor a load balancer of the cluster."""
        return self.source not in ("Masters", "Nodes", "Bastion", "LoadBalancer", "InternalLoadBalancer")

    @property
    def origin(self) -> str:
        """The CIDR or the id of the prefix list that `source` spells; empty for any other source."""
        if self.source.startswith("Pl"):
            return f"pl-{self.source.removeprefix('Pl')}"
        # The four numbers of the address, and the prefix length: `10x0x0x0x8` is 10.0.0.0/8.
        numbers = self.source.split("x")
        return f"{'.'.join(numbers[:4])}/{numbers[4]}" if len(numbers) == 5 else ""


@dataclass(frozen=True)
class SecurityGroupId(IdForm):
    """A security group, e.g. `MasterSecurityGroup`, or `MasterAccessSecurityGroup2` for an additional one.

    Attributes:
        number: its number among the security groups of the role. The first one always exists; additional ones hold
            rules for allowed sources only.
        part: `Id` for the parameter and output with its id; empty for the security group itself.
    """

    role: SecurityGroupRole
    number: int = 1
    part: Literal["", "Id"] = ""

    _PATTERN: ClassVar = re.compile(
        rf"(?P<role>{_ANY_ROLE_PATTERN})(?:SecurityGroup|AccessSecurityGroup(?P<number>[2-9]|[1-9][0-9]+))(?P<part>Id)?"
    )
    # The id of the first security group has no number.
    _PARSERS: ClassVar = {"number": lambda text: int(text or 1)}

    def __str__(self) -> str:
        name = "SecurityGroup" if self.number == 1 else f"AccessSecurityGroup{self.number}"
        return f"{self.role}{name}{self.part}"


def source_id(source: str) -> str:
    """Return a CIDR or prefix list as letters and digits: `10x0x0x0x8` for 10.0.0.0/8, `Pl0123` for pl-0123."""
    return f"Pl{source.removeprefix('pl-')}" if source.startswith("pl-") else re.sub(r"[./]", "x", source)

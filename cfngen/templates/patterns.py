"""`AllowedPattern`s of parameters that take an address or a range.

CloudFormation checks patterns before it creates any resource. Without a pattern, EC2 would reject a malformed range
only while the stack is being created.
"""

from __future__ import annotations

_NUMBER_TO_255 = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = rf"({_NUMBER_TO_255}\.){{3}}{_NUMBER_TO_255}"

IPV4_PATTERN = f"^{_ADDRESS}$"
"""Matches an IPv4 address."""

CIDR_PATTERN = f"^{_ADDRESS}/(3[0-2]|[12]?[0-9])$"
"""Matches an IPv4 range of any size."""

VPC_CIDR_PATTERN = f"^{_ADDRESS}/(1[6-9]|2[0-8])$"
"""Matches an IPv4 range of a VPC or a subnet: /16 to /28 ("VPC CIDR blocks", Amazon VPC User Guide)."""

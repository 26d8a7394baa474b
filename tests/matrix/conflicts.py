"""Values of dimensions that exclude each other, with what the checks of the cluster file say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dimension_values import Combination


@dataclass(frozen=True)
class Conflict:
    """Values that no cluster file may have together.

    Attributes:
        message: a part of the check's message, as a regular expression.
        values: names of values by the name of their dimension; a combination with one of each is refused.
    """

    message: str
    values: Mapping[str, frozenset[str]]

    @property
    def described(self) -> str:
        """Return the values as text."""
        return "; ".join(f"{name}: {' or '.join(sorted(values))}" for name, values in self.values.items())

    def is_in(self, combination: Combination) -> bool:
        """Return whether a combination, or a part of one, has one of the values of each dimension."""
        return all(combination.get(name) in values for name, values in self.values.items())


def _conflict(message: str, **values: str) -> Conflict:
    """Return a conflict; `_` in the name of a dimension stands for a space, values are separated by `|`."""
    return Conflict(message, {name.replace("_", " "): frozenset(text.split("|")) for name, text in values.items()})


_PRIVATE = "private|private, NAT per zone|private, single NAT|private, no NAT"

CONFLICTS: tuple[Conflict, ...] = (
    _conflict(
        "the API has no internal endpoint; use publicZone", api="public|elastic IP", dns="private zone|new zones"
    ),
    _conflict("the API has no public endpoint; use privateZone", api="internal", dns="public zone"),
    _conflict("nobody can log in to a bastion without a key", access="asked", bastion="new address|existing address"),
    _conflict("the masters of a private cluster have no public addresses", network=_PRIVATE, api="elastic IP"),
    _conflict("behind a load balancer, which has no Elastic IP", masters="3|5", api="elastic IP"),
    _conflict(
        "existing subnets have their own routes to the internet",
        network="private, NAT per zone|private, single NAT|private, no NAT",
        existing_network="subnets",
    ),
    _conflict("is in an existing VPC; set network.vpc.id", existing_network="none", security_groups="existing"),
    _conflict("AWS has no Deep Learning Base AMI of debian", distribution="debian-12|debian-13", nodes="gpu"),
    _conflict(
        "masters without public addresses cannot download Kubernetes",
        network="public",
        existing_network="none|VPC|VPC, route tables, NAT gateways",
        api="internal",
        downloads="direct|mirror",
    ),
    _conflict(
        "the routes to pods of vpc-routes are in one route table",
        network="public",
        existing_network="VPC, route tables, NAT gateways",
        plugin="vpc-routes",
    ),
    _conflict(
        "a NAT gateway in each zone needs a route table in each zone",
        zones="2|3",
        network="private, NAT per zone",
        plugin="vpc-routes",
    ),
    _conflict("g5g.xlarge is not offered in", region="gov-cloud|china", architecture="arm64", nodes="gpu"),
)

UNLIVED: tuple[Conflict, ...] = (
    _conflict("instances cannot reach dl.k8s.io", network="private, no NAT", downloads="direct"),
    _conflict(
        "instances cannot reach the packages of",
        network="private, no NAT",
        downloads="mirror",
        distribution="ubuntu-24.04|ubuntu-22.04|debian-12|debian-13|own image",
    ),
    _conflict(
        "the account's quotas do not suffice (Elastic IPs)",
        network="public",
        masters="5",
        bastion="new address|existing address",
    ),
    _conflict("g5g.xlarge is not offered in", region="eu-central-1", architecture="arm64", nodes="gpu"),
    # The existing network that these tests make has no way out for masters without public addresses beside a bastion.
    _conflict(
        "nothing was created: the network of",
        network="public",
        existing_network="subnets|VPC, route tables, NAT gateways",
        api="internal",
    ),
)
"""What lives nowhere, although the checks accept it.

They only warn where an image of the operator's may contain what cannot be downloaded, and know neither an account's
quotas nor what each zone offers, which a deployment asks AWS for."""

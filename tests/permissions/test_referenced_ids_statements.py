"""What may be read to resolve references: the named stacks and parameters, and nothing without references."""

from __future__ import annotations

from typing import Any

from cfngen.cluster.load import parse
from cfngen.permissions.grants import grants, scope_of

SUBNETS = [{"zone": "us-west-2a", "id": "ssm:/network/subnet", "cidr": "10.20.0.0/24"}]
NETWORK = {
    "vpc": {"id": "stack:network.VpcId", "cidr": "10.20.0.0/16"},
    "subnets": SUBNETS,
    "serviceCidr": "10.250.0.0/16",
}


def statements(grantee: str, **file: Any) -> dict[str, dict[str, Any]]:
    """Return the statements of a grantee by their names."""
    cluster = parse(file)
    [grant] = [grant for grant in grants(cluster, scope_of(cluster)) if grant.name == grantee]
    return {statement["Sid"]: dict(statement) for statement in grant.statements}


def test_without_references_nothing_else_may_be_read() -> None:
    for grantee in ("operator", "execution"):
        assert not {"References", "ReferencedStacks"} & statements(grantee).keys()


def test_the_service_role_resolves_references() -> None:
    found = statements("execution", network=NETWORK)
    assert found["References"]["Action"] == ["ssm:GetParameters"]
    assert found["References"]["Resource"] == ["arn:aws:ssm:us-west-2:*:parameter/network/subnet"]
    assert found["ReferencedStacks"]["Action"] == ["cloudformation:DescribeStacks"]
    assert found["ReferencedStacks"]["Resource"] == ["arn:aws:cloudformation:us-west-2:*:stack/network/*"]


def test_an_operator_reads_the_parameters_before_a_deployment() -> None:
    found = statements("operator", network=NETWORK)
    assert found["References"]["Resource"] == ["arn:aws:ssm:us-west-2:*:parameter/network/subnet"]


def test_a_zone_that_a_reference_leads_to_may_be_any() -> None:
    dns = {"name": "api.example.com", "publicZone": {"id": "ssm:/dns/zone"}}
    assert statements("execution", api={"dns": dns})["DnsRecords"]["Resource"] == ["arn:aws:route53:::hostedzone/*"]

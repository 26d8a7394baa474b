"""A DNS name for the API in the sandbox: its records in Route 53, and what a later change of them does."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from sandboxed import Place, place
from several_masters import three, variant

from cfngen.sandbox.cloudformation import client

NAME = "api.k8s.example.com"
PUBLIC_ZONE = '"publicZone": {"name": "k8s.example.com"}'
PUBLIC = f'api.dns={{"name": "{NAME}", {PUBLIC_ZONE}}}'
BOTH = f'api.dns={{"name": "{NAME}", {PUBLIC_ZONE}, "privateZone": {{"name": "{NAME}"}}}}'


def _addresses(region: str, *, private: bool) -> list[dict[str, Any]]:
    """Return the records of the API's name in the public or the private zone."""
    route53 = client("route53", region)
    [zone] = [each for each in route53.list_hosted_zones()["HostedZones"] if each["Config"]["PrivateZone"] is private]
    records = route53.list_resource_record_sets(HostedZoneId=zone["Id"])["ResourceRecordSets"]
    return [record for record in records if record["Type"] == "A"]


def test_one_name_leads_to_the_public_load_balancer_outside_and_to_the_internal_one_inside() -> None:
    with place() as where:
        where = Place(where.account, three("api.internal=true", BOTH))
        stack = where.create()
        assert stack.status == "CREATE_COMPLETE"
        balancers = client("elbv2", where.account.region).describe_load_balancers()["LoadBalancers"]
        names = {balancer["Scheme"]: balancer["DNSName"] for balancer in balancers}
        for private, scheme in ((False, "internet-facing"), (True, "internal")):
            [record] = _addresses(where.account.region, private=private)
            assert record["Name"].rstrip(".") == NAME
            assert record["AliasTarget"]["DNSName"].rstrip(".") == names[scheme]
        assert urlsplit(stack.outputs["ApiEndpoint"]).hostname == NAME
        assert NAME in where.account.cluster("kubernetes").server_names()


def test_the_name_of_one_master_follows_to_the_load_balancer_of_three() -> None:
    with place() as where:
        where = Place(where.account, variant(PUBLIC))
        before = where.create()
        [record] = _addresses(where.account.region, private=False)
        [address] = client("ec2", where.account.region).describe_addresses()["Addresses"]
        assert [each["Value"] for each in record["ResourceRecords"]] == [address["PublicIp"]]
        after = where.update(three(PUBLIC))
        assert after.status == "UPDATE_COMPLETE"
        assert after.outputs["ApiEndpoint"] == before.outputs["ApiEndpoint"]
        [record] = _addresses(where.account.region, private=False)
        assert "AliasTarget" in record


def test_another_name_replaces_the_record_and_without_a_name_the_address_is_the_endpoint_again() -> None:
    with place() as where:
        where = Place(where.account, variant(PUBLIC))
        where.create()
        other = where.update(variant(PUBLIC.replace(NAME, "other.k8s.example.com")))
        assert other.status == "UPDATE_COMPLETE"
        assert other.outputs["ApiEndpoint"] == "https://other.k8s.example.com"
        [record] = _addresses(where.account.region, private=False)
        assert record["Name"].rstrip(".") == "other.k8s.example.com"
        without = where.update(variant())
        assert without.status == "UPDATE_COMPLETE"
        assert "k8s.example.com" not in without.outputs["ApiEndpoint"]
        # The zone stays, as its name servers may be in the parent domain; the record in it does not.
        assert _addresses(where.account.region, private=False) == []

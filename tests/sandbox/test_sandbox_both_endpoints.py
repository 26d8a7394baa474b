"""A cluster with a public and an internal endpoint in the sandbox: both lead to its API, also if one comes later."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from sandboxed import Place, place
from several_masters import three

from cfngen.sandbox.cloudformation import client

pytestmark = pytest.mark.drill

BOTH = "api.internal=true"


def test_the_api_answers_under_the_names_of_both_load_balancers() -> None:
    with place() as where:
        where = Place(where.account, three(BOTH))
        stack = where.create()
        assert stack.status == "CREATE_COMPLETE"
        urls = {stack.outputs["ApiEndpoint"], stack.outputs["ApiInternalEndpoint"]}
        assert {urlsplit(url).hostname for url in urls} <= where.account.cluster("kubernetes").server_names()
        endpoints = where.account.kubernetes_endpoints()
        assert {endpoint.api_endpoint for endpoint in endpoints} == urls
        assert len({endpoint.address for endpoint in endpoints}) == 1


def test_an_internal_endpoint_that_comes_later_leaves_the_public_one() -> None:
    with place() as where:
        where = Place(where.account, three())
        before = where.create().outputs["ApiEndpoint"]
        stack = where.update(three(BOTH))
        assert stack.status == "UPDATE_COMPLETE"
        assert stack.outputs["ApiEndpoint"] == before
        balancers = client("elbv2", where.account.region).describe_load_balancers()["LoadBalancers"]
        assert {balancer["Scheme"] for balancer in balancers} == {"internet-facing", "internal"}
        internal_name = urlsplit(stack.outputs["ApiInternalEndpoint"]).hostname
        assert internal_name in where.account.cluster("kubernetes").server_names()


def test_the_internal_endpoint_goes_and_the_public_one_stays() -> None:
    with place() as where:
        where = Place(where.account, three(BOTH))
        before = where.create().outputs["ApiEndpoint"]
        stack = where.update(three())
        assert stack.status == "UPDATE_COMPLETE"
        assert stack.outputs["ApiEndpoint"] == before
        assert "ApiInternalEndpoint" not in stack.outputs
        [balancer] = client("elbv2", where.account.region).describe_load_balancers()["LoadBalancers"]
        assert balancer["Scheme"] == "internet-facing"

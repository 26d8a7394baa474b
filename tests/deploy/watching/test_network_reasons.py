"""What an operator reads if the network of a private cluster leads nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from click import unstyle
from deployed import Place, place
from private_network import ISOLATED, REGION, SERVICES, PrivateNetwork

from cfngen.cli.render.diagnosis import diagnosis_lines
from cfngen.deploy.aws.consoles import ConsoleExcerpt
from cfngen.deploy.watching.diagnosis import Diagnosis, diagnose
from cfngen.deploy.watching.evidence import explain_consoles
from cfngen.sandbox.cloudformation import Stack
from cfngen.sandbox.emulated_account import open_emulated_account

DEFAULT_ROUTE_HINT = (
    "check the route 0.0.0.0/0 of the instances' subnets: in a private subnet it leads to a NAT gateway, which is "
    "available and in a subnet with a route to an internet gateway"
)


@contextmanager
def private_place(network: PrivateNetwork, *overrides: str) -> Iterator[Place]:
    with place(network.cluster(*overrides)) as opened:
        yield opened


@pytest.fixture
def network() -> Iterator[PrivateNetwork]:
    with open_emulated_account(REGION):
        yield PrivateNetwork.create()


def shown(where: Place, stack: Stack) -> tuple[Diagnosis, str]:
    """The diagnosis of a stack, and the text on the screen, with single spaces."""
    found = diagnose(where.account, stack.id)
    return found, " ".join(" ".join(map(unstyle, diagnosis_lines(found, 120))).split())


def test_a_missing_route_to_the_nat_gateway_is_named(network: PrivateNetwork) -> None:
    network.add_nat_gateway()
    with private_place(network) as where:
        _, text = shown(where, where.create())
    assert "did not signal success in time: the instances have no way to the internet" in text
    assert f"to fix: {DEFAULT_ROUTE_HINT}" in text
    assert f"`aws ec2 describe-route-tables --region {REGION}` shows the routes" in text


@pytest.mark.parametrize("missing", SERVICES)
def test_a_missing_endpoint_is_named(network: PrivateNetwork, missing: str) -> None:
    network.add_s3_endpoint()
    for service in SERVICES:
        if service != missing:
            network.add_endpoint(service)
    with private_place(network, *ISOLATED) as where:
        found, text = shown(where, where.create())
    assert found.cause is not None
    assert f": the instances cannot reach {missing}.{REGION}.amazonaws.com" in text
    assert (
        f"to fix: without a way to the internet the VPC needs an interface endpoint com.amazonaws.{REGION}.{missing} "
        "with private DNS, whose security group admits masters and nodes on port 443"
    ) in text


def console(line: str) -> ConsoleExcerpt:
    return ConsoleExcerpt("i-1", "running", lines=("[1/9] identity: i-1 (0.1 s)", line), failed=True)


@pytest.mark.parametrize(
    ("line", "meaning", "hint"),
    [
        (
            'waited 60 s for list_objects_v2: Connect timeout on endpoint URL: "https://b.s3.us-west-2.amazonaws.com/?l"',
            "the instances cannot reach b.s3.us-west-2.amazonaws.com",
            "a gateway endpoint com.amazonaws.us-west-2.s3 in the route tables of the instances' subnets",
        ),
        (
            'waited 60 s for signal_resource: Could not connect to the endpoint URL: "https://a.example.com:8443/"',
            "the instances cannot reach a.example.com",
            "Otherwise check the route 0.0.0.0/0",
        ),
        (
            "waited 900 s for download: <urlopen error [Errno -3] Temporary failure in name resolution>",
            "the instances cannot resolve names",
            "enableDnsSupport",
        ),
        (
            "waiting for download (60 s): <urlopen error [Errno 101] Network is unreachable>",
            "the instances have no way to the internet, or to the mirror",
            "the cluster file needs assets.mirror and containerd.registryMirrors",
        ),
    ],
)
def test_each_symptom_has_its_remedy(line: str, meaning: str, hint: str) -> None:
    explanation = explain_consoles([console(line)], REGION)
    assert explanation.meaning == meaning
    assert hint in str(explanation.hint)


@pytest.mark.parametrize(
    "line",
    [
        "[6/9] downloads FAILED after 9.0 s: https://dl.k8s.io/x: HTTP Error 404: Not Found. What to do: check it",
        "[8/9] join FAILED after 120.0 s: no secret. What to do: see the master",
        "An error occurred (AccessDenied) when calling the DescribeVolumes operation",
    ],
)
def test_other_failures_are_not_blamed_on_the_network(line: str) -> None:
    assert explain_consoles([console(line)], REGION).hint == ""


def test_a_long_wait_is_shown_once(network: PrivateNetwork) -> None:
    with private_place(network) as where:
        found, _ = shown(where, where.create())
    assert found.cause is not None
    identity, waiting, failed, signal = found.cause.instances[0].lines
    # Masters and nodes give up at the same time.
    steps = identity.partition("/")[2].partition("]")[0]
    assert identity.startswith(f"[1/{steps}] identity")
    assert re.match(r"waiting for packages python3-boto3 \(10[24]0 s\): ", waiting)
    assert failed.startswith(f"[2/{steps}] packages FAILED after")
    assert signal.startswith("CloudFormation was not signalled")

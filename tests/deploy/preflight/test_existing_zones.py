"""Hosted zones that exist, before the API's name is written into them: what does not fit is told."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.deploy.preflight.existing.services import find_zone_problems
from cfngen.deploy.preflight.findings import Severity

NAME = "api.k8s.example.com"


def problems(aws: Answers, *, name: str = "k8s.example.com.", is_private: bool = False, key: str = "publicZone") -> Any:
    """Return what is told of a zone of this name and kind that the cluster file names."""
    aws.given["route53:GetHostedZone"] = {
        "HostedZone": {
            "Id": "/hostedzone/Z0123456789ABC",
            "Name": name,
            "CallerReference": "one",
            "Config": {"PrivateZone": is_private},
        }
    }
    dns = {"name": NAME, key: {"id": "Z0123456789ABC"}}
    return list(map(str, find_zone_problems(aws.account, parse({"api": {"internal": True, "dns": dns}}))))


@pytest.mark.parametrize(("key", "is_private"), [("publicZone", False), ("privateZone", True)])
@pytest.mark.parametrize("name", ["k8s.example.com.", f"{NAME}."])
def test_a_zone_of_the_domain_fits(aws: Answers, key: str, is_private: bool, name: str) -> None:
    assert problems(aws, name=name, key=key, is_private=is_private) == []


def test_a_zone_of_the_other_kind_or_of_another_domain_is_told(aws: Answers) -> None:
    [problem] = problems(aws, is_private=True)
    assert problem.startswith("api.dns.publicZone.id: Z0123456789ABC (k8s.example.com) is a private zone; use")
    [problem] = problems(aws, key="privateZone")
    assert "is a public zone" in problem
    [problem] = problems(aws, name="example.org.")
    assert problem.endswith(f"is the zone of example.org, and {NAME} is not in it")


def test_new_zones_are_not_looked_for(aws: Answers) -> None:
    cluster = parse({"api": {"dns": {"name": NAME, "publicZone": {"name": "k8s.example.com"}}}})
    assert list(find_zone_problems(aws.account, cluster)) == []
    assert not aws.named("route53:GetHostedZone")


@pytest.mark.parametrize(
    ("code", "severity", "says"),
    [
        ("NoSuchHostedZone", Severity.PROBLEM, "there is no hosted zone Z0123456789ABC in account"),
        ("AccessDenied", Severity.WARNING, "the hosted zone Z0123456789ABC cannot be read, so what depends on it was"),
    ],
)
def test_a_zone_that_does_not_exist_is_a_problem_and_one_that_may_not_be_read_is_said(
    aws: Answers, code: str, severity: Severity, says: str
) -> None:
    aws.given["route53:GetHostedZone"] = RefusedError(code)
    cluster = parse({"api": {"dns": {"name": NAME, "publicZone": {"id": "Z0123456789ABC"}}}})
    [finding] = find_zone_problems(aws.account, cluster)
    assert (finding.key, finding.severity) == ("api.dns.publicZone.id", severity)
    assert finding.text.startswith(says)

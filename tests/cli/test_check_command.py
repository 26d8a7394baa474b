"""`cfngen check network`, and the same check before `plan` and `deploy`: what is shown, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from deployed_cluster import Place, Ran, Shell, commanding, place, session
from json_lines import lines

from cfngen.deploy.aws.account import connect

# tests/deploy is on the path as soon as `deployed_cluster` is imported.
from existing_network import REGION, ExistingNetwork  # isort: skip

ALLOWED = ("--parameter", "ApiAllowedCidr=203.0.113.7/32")


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    with place() as made:
        yield made


class Landlord:
    """An existing network, and commands of cfngen for a cluster in it."""

    def __init__(self, network: ExistingNetwork, cfngen: Shell, directory: Path) -> None:
        self.network = network
        self._cfngen = cfngen
        self._file = directory / "cluster.yaml"

    def run(self, *arguments: str, **environ: str) -> Ran:
        file = {"name": "tenant", **self.network.file, "network": self.network.network}
        self._file.write_text(yaml.safe_dump(file))
        return self._cfngen(*arguments, "-f", str(self._file), **environ)


@pytest.fixture
def landlord(where: Place, cfngen: Shell, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Landlord:
    commanding(where, cfngen, monkeypatch)
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())
    account = connect(session(), REGION, clock=where.clock, attempts=1)
    for quota in ("L-F678F1CE", "L-A4707A72"):
        where.served.moto_extensions.set_quota("vpc", quota, 100)
    return Landlord(ExistingNetwork(account), cfngen, directory)


def test_a_network_in_order_is_listed(landlord: Landlord) -> None:
    ran = landlord.run("check", "network")
    assert ran.code == 0
    assert ran.err == f"• looking at the network of {landlord.network.vpc}\n"
    assert ran.out.startswith(f"Network of tenant ({landlord.network.vpc}, {REGION})\n")
    assert "✓ The VPC exists.\n" in ran.out
    assert ran.out.endswith("\nNo problems.\n")


def test_a_problem_is_shown_with_key_remedy_and_command(landlord: Landlord) -> None:
    landlord.network.drop_default_route()
    ran = landlord.run("check", "network", COLUMNS="70")
    assert ran.code == 2
    assert "✗ network.subnets[0].id: " in ran.out
    assert "\n  hint: add the route:\n    aws ec2 create-route --region us-west-2 " in ran.out
    assert ran.out.endswith("\n2 problems.\n")


def test_a_warning_alone_is_a_success(landlord: Landlord) -> None:
    landlord.network.tag(landlord.network.subnets[0], "kubernetes.io/cluster/other", "owned")
    ran = landlord.run("check", "network")
    assert ran.code == 0
    assert "! network.subnets[0].id: " in ran.out
    assert ran.out.endswith("\nNo problems, 1 warning.\n")


def test_a_program_gets_the_findings_as_data(landlord: Landlord) -> None:
    landlord.network.drop_default_route()
    ran = landlord.run("check", "network", "--output", "json")
    step, result = lines(ran.out)
    assert (ran.code, step["type"], result["type"]) == (2, "step", "networkCheck")
    assert (result["cluster"], result["vpc"]) == ("tenant", landlord.network.vpc)
    [first, *_] = result["findings"]
    assert (first["severity"], first["check"], first["key"]) == ("problem", "routes", "network.subnets[0].id")
    assert first["commands"][0].startswith("aws ec2 create-route ")


def test_a_cluster_with_a_vpc_of_its_own_has_nothing_to_check(landlord: Landlord) -> None:
    landlord.network.network = {}
    ran = landlord.run("check", "network")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "The stack of tenant creates its VPC, so there is no existing network to check.\n"


def test_there_is_more_than_one_word_to_type(landlord: Landlord) -> None:
    assert landlord.run("check", "weather").code == 64


@pytest.mark.parametrize("command", ["plan", "deploy"])
def test_nothing_is_created_in_a_network_with_problems(landlord: Landlord, command: str) -> None:
    landlord.network.drop_default_route()
    ran = landlord.run(command, *ALLOWED)
    assert ran.code == 1
    assert "✗ network.subnets[1].id: " in ran.out
    assert "✓" not in ran.out
    assert "has 2 problems (network.subnets[0].id, network.subnets[1].id)\n" in ran.err
    assert "`cfngen check network -f" in ran.err
    printed = lines(landlord.run(command, *ALLOWED, "--output", "json").out)
    assert [each["type"] for each in printed if each["type"] != "step"] == ["networkCheck", "error"]
    assert printed[-1]["code"] == "network-problems"


def test_warnings_are_shown_and_the_check_can_be_skipped(landlord: Landlord) -> None:
    subnet = landlord.network.subnets[0]
    landlord.network.tag(subnet, "kubernetes.io/cluster/other", "owned")
    ran = landlord.run("plan", *ALLOWED, "--create-bucket")
    assert ran.code == 4
    assert f"! network.subnets[0].id: {subnet} has the tag of the cluster other" in ran.out
    landlord.network.drop_default_route()
    ran = landlord.run("plan", *ALLOWED, "--skip-network-check", "--create-bucket")
    assert ran.code == 4
    assert "network.subnets[0].id" not in ran.out


def test_without_permission_to_look_nothing_is_said_to_be_in_order(
    landlord: Landlord, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import ClientError

    from cfngen.deploy.preflight.network import checks

    def refused(*_: object) -> None:
        raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeVpcs")

    def read(*arguments: object) -> None:
        from cfngen.deploy.aws.errors import translate_aws_errors

        with translate_aws_errors():
            refused(*arguments)

    monkeypatch.setattr(checks, "read", read)
    ran = landlord.run("check", "network", "--output", "json")
    assert ran.code == 1
    assert json.loads(ran.out.splitlines()[-1])["code"] == "aws-access-denied"

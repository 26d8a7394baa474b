"""`cfngen delete` as somebody at a keyboard, and a program, see it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import made_by_kubernetes as made
import pytest
from cloud import Cloud, default_cloud
from clusters import resources

from cfngen.cli.commands import delete as delete_command
from cfngen.deploy.aws.account import connect

pytestmark = pytest.mark.drill
REGION = "us-west-2"
Shell = Callable[..., Any]  # as in conftest.py, of which a run of all tests has several
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAOPERATOROPERATOR", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.fixture
def cloud(cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    with default_cloud() as opened:
        monkeypatch.setattr("cfngen.deploy.aws.types.SystemClock", lambda: opened.clock)
        yield opened


@pytest.fixture
def cluster(cloud: Cloud) -> Any:
    stack = cloud.account.create("cluster", name="kubernetes")
    stack.tags["cfngen:cluster"] = "kubernetes"
    return stack


def place_of(cloud: Cloud, stack: Any) -> made.Place:
    by_id = resources(stack)
    ids = [by_id[each].physical_id for each in ("Vpc", "SubnetA", "NodeSecurityGroup")]
    return made.Place(connect(cloud.session, REGION, clock=cloud.clock), *ids)


def deleted(cfngen: Shell, *arguments: str) -> Any:
    return cfngen("delete", "--defaults", "--no-drain", *arguments, **KEYS)


def test_a_dry_run_shows_everything_and_changes_nothing(cloud: Cloud, cluster: Any, cfngen: Shell) -> None:
    place = place_of(cloud, cluster)
    balancer = made.classic(place, "kubernetes")
    volume = made.volume(place.account, made.claimed("kubernetes"), size=100)
    ran = deleted(cfngen, "--dry-run")
    assert ran.code == 0, ran.err
    for text in (
        "stack kubernetes (CREATE_COMPLETE)",
        "5  instances",
        balancer.name,
        "default/web",
        volume,
        "claim shop/data-db-0: data of a PersistentVolumeClaim; --delete-volumes deletes it",
        "--authorities file, recovery-window or destroy",
        "KMS deletes it after a waiting period",
    ):
        assert text in " ".join(ran.out.split()) or text in ran.out
    assert cluster.status == "CREATE_COMPLETE"
    assert made.balancer_names(place.account) == {balancer.name}


def test_a_dry_run_refuses_what_the_real_run_refuses(cloud: Cloud, cluster: Any, cfngen: Shell) -> None:
    place = place_of(cloud, cluster)
    database = made.security_group(place, "database", {})
    made.admit(place.account, database, place.node_group)
    ran = deleted(cfngen, "--dry-run")
    assert ran.code == 1
    assert f"{database}: security group database has rules that refer to" in ran.err
    assert "Deleted with the stack" in ran.out
    assert deleted(cfngen, "--dry-run", "--even-if-occupied").code == 0


@pytest.mark.parametrize("wish", ["--delete-volumes", "--empty-bucket"])
def test_what_a_living_cluster_uses_is_told_without_a_command_and_not_deleted(
    cloud: Cloud, cluster: Any, cfngen: Shell, wish: str
) -> None:
    place = place_of(cloud, cluster)
    names = ("MasterSecurityGroup", "NodeSecurityGroup", "NodeGroupNodesSecurityGroup")
    groups = [resources(cluster)[each].physical_id for each in names]
    place.ec2.create_tags(Resources=groups, Tags=made.pairs({"cfngen:cluster": "kubernetes"}))
    volume = made.volume(place.account, made.claimed("kubernetes"), size=100)
    for arguments in (("--dry-run",), ("--yes",)):
        refused = deleted(cfngen, "--stack-name", "fresh2", wish, *arguments)
        assert refused.code == 1
        assert "kubernetes" in refused.err.partition("the stack")[2]
        ran = deleted(cfngen, "--stack-name", "fresh2", *arguments)
        told = " ".join(ran.out.split())
        assert ran.code == 0, ran.err
        assert "The cluster kubernetes already exists in the stack kubernetes. These resources may belong to it" in told
        assert volume in told
        assert "delete-volume" not in ran.out + refused.out
        assert "aws s3 rm" not in ran.out + refused.out
    assert "There is nothing to delete for the stack fresh2." in told
    assert volume in {volume["VolumeId"] for volume in place.ec2.describe_volumes()["Volumes"]}


@pytest.mark.parametrize("width", [40, 60, 100])
def test_words_are_whole_at_any_width(cloud: Cloud, cluster: Any, cfngen: Shell, width: int) -> None:
    place = place_of(cloud, cluster)
    made.classic(place, "kubernetes")
    made.volume(place.account, made.claimed("kubernetes"), size=100)
    ran = cfngen("delete", "--defaults", "--no-drain", "--dry-run", **KEYS, COLUMNS=str(width))
    wide = cfngen("delete", "--defaults", "--no-drain", "--dry-run", **KEYS, COLUMNS="120")
    words = [line for line in ran.out.splitlines() if not line.lstrip().startswith(("aws ", "(umask "))]
    # What is longer than a line, such as an id, is not torn apart either.
    assert [word for word in words if len(word) > width and len(word.split()) > 1] == []
    assert set(ran.out.split()) == set(wide.out.split())
    stays = words[words.index("Kept") + 1 :]
    assert all(line.startswith("  ") for line in stays[: stays.index("")])


def test_yes_deletes_and_says_what_stays(cloud: Cloud, cluster: Any, cfngen: Shell) -> None:
    place = place_of(cloud, cluster)
    balancer = made.classic(place, "kubernetes")
    ran = deleted(cfngen, "--yes")
    assert ran.code == 0, ran.err
    assert cluster.status == "DELETE_COMPLETE"
    assert f"load balancer {balancer.name}" in ran.err
    assert "kubernetes is deleted, after" in ran.out
    volume = [{"Name": "volume-id", "Values": [resources(cluster)["MasterAVolume"].physical_id]}]
    [snapshot] = place.ec2.describe_snapshots(OwnerIds=["self"], Filters=volume)["Snapshots"]
    assert f"aws ec2 delete-snapshot --snapshot-id {snapshot['SnapshotId']}" in ran.out
    for kind in ("roles", "instance profiles", "DHCP options", "Elastic IPs", "secrets"):
        assert any(line.split() and line.strip().startswith(kind) and "gone" in line for line in ran.out.splitlines())


def test_without_consent_nothing_happens(cloud: Cloud, cluster: Any, cfngen: Shell) -> None:
    ran = deleted(cfngen)
    assert ran.code == 1
    assert "confirmation is needed" in ran.err
    assert cluster.status == "CREATE_COMPLETE"


def test_a_program_reads_json_lines(cloud: Cloud, cluster: Any, cfngen: Shell) -> None:
    ran = deleted(cfngen, "--yes", "--output", "json")
    assert ran.code == 0, ran.err
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert (lines[0]["type"], lines[-1]["type"]) == ("survey", "deleted")
    assert lines[0]["retained"][0]["kind"] == "snapshot"
    last = lines[-1]
    assert (last["succeeded"], last["inProgress"], last["orphans"]) == (True, False, [])
    assert [each["kind"] for each in last["retained"]] == ["snapshot", "KMS key", "bucket of etcd's snapshots"]


def test_what_cannot_be_deleted_is_named_and_the_next_run_goes_on(cloud: Cloud, cluster: Any, cfngen: Shell) -> None:
    cloud.engine.fail("Vpc", "it has a dependency that nobody knows", during="DELETE", times=3)
    ran = deleted(cfngen, "--yes")
    assert ran.code == 1
    assert "attempt 3 of 3" in ran.err
    assert "it has a dependency that nobody knows" in ran.err
    assert "kubernetes: DELETE_FAILED, after" in ran.out
    assert "AWS::EC2::VPC vpc-" in ran.out
    assert "aws ec2 delete-vpc --vpc-id vpc-" in ran.out
    again = deleted(cfngen, "--yes")
    assert again.code == 0, again.err
    assert cluster.status == "DELETE_COMPLETE"


def test_leaving_behind_is_a_wish_of_its_own(cloud: Cloud, cluster: Any, cfngen: Shell) -> None:
    cloud.engine.fail("Vpc", "it has a dependency that nobody knows", during="DELETE", times=4)
    ran = deleted(cfngen, "--yes", "--leave-behind")
    assert ran.code == 0, ran.err
    assert cluster.status == "DELETE_COMPLETE"
    vpc = resources(cluster)["Vpc"].physical_id
    assert f"AWS::EC2::VPC {vpc}" in ran.out
    assert f"left: {vpc}" in ran.out


def test_detaching_leaves_the_rest_to_cloudformation(cloud: Cloud, cluster: Any, cfngen: Shell) -> None:
    cloud.engine.durations["AWS::AutoScaling::AutoScalingGroup"] = 300
    ran = deleted(cfngen, "--yes", "--detach")
    assert ran.code == 6, ran.err
    assert cluster.status == "DELETE_IN_PROGRESS"
    assert "it continues without cfngen" in ran.out
    again = deleted(cfngen, "--yes")
    assert again.code == 0, again.err
    assert cluster.status == "DELETE_COMPLETE"


def test_nothing_to_delete_is_no_failure(cloud: Cloud, cfngen: Shell) -> None:
    ran = deleted(cfngen)
    assert (ran.code, "There is nothing to delete for the cluster kubernetes." in ran.out) == (0, True), ran.err


def test_the_vpc_of_a_stack_that_is_gone_is_found_by_its_reference(cloud: Cloud, cfngen: Shell, tmp_path: Path) -> None:
    account = connect(cloud.session, REGION, clock=cloud.clock)
    place = made.new_place(account, "guest", "10.9.0.0/16")
    interface = made.interface(place, "for pods", **{"kubernetes.io/cluster/guest": "owned"})
    file = tmp_path / "cluster.yaml"
    network = {
        "vpc": {"id": "ssm:/network/vpc", "cidr": "10.9.0.0/16"},
        "subnets": [{"id": "ssm:/network/subnet", "cidr": "10.9.0.0/24"}],
    }
    file.write_text(json.dumps({"name": "guest", "network": network}))
    lost = cfngen("delete", "-f", str(file), "--no-drain", "--dry-run", **KEYS)
    assert lost.code == 0, lost.err
    said = " ".join((lost.out + lost.err).split())
    assert "the VPC is not searched for leftovers such as network interfaces" in said
    assert "network.vpc.id: ssm:/network/vpc names a parameter that does not exist" in said
    assert interface not in lost.out
    account.client("ssm").put_parameter(Name="/network/vpc", Value=place.vpc_id, Type="String")
    found = cfngen("delete", "-f", str(file), "--no-drain", "--dry-run", **KEYS)
    assert found.code == 0, found.err
    assert "is not searched" not in found.out + found.err
    assert interface in found.out


@pytest.mark.parametrize("wish", ["--delete-volumes", "--delete-snapshots", "--empty-bucket", "--delete-bucket"])
def test_detached_and_thorough_exclude_each_other(cfngen: Shell, wish: str) -> None:
    ran = cfngen("delete", "--defaults", "--detach", wish)
    assert ran.code == 64
    assert "--detach exits before volumes" in ran.err


def initialised(cloud: Cloud, cluster: Any) -> str:
    """Let the first master have written the certificate authorities; returns what it wrote."""
    text = json.dumps({"ca.crt": "certificate", "ca.key": "key"})
    secret = resources(cluster)["CaSecret"].physical_id
    cloud.client("secretsmanager").put_secret_value(SecretId=secret, SecretString=text)
    return text


def test_who_never_wants_to_be_asked_can_bring_the_authorities_back(cloud: Cloud, cluster: Any, cfngen: Shell) -> None:
    initialised(cloud, cluster)
    ran = deleted(cfngen, "--yes")
    assert ran.code == 0, ran.err
    assert "aws secretsmanager restore-secret --secret-id cfngen/kubernetes/authorities-" in ran.out


def test_the_authorities_are_written_where_one_says(cloud: Cloud, cluster: Any, cfngen: Shell, tmp_path: Path) -> None:
    text = initialised(cloud, cluster)
    path = tmp_path / "kept.json"
    wrong = deleted(cfngen, "--yes", "--authorities", "destroy", "--authorities-file", str(path))
    assert (wrong.code, "writes no file" in wrong.err) == (64, True)
    path.write_bytes(b"\xff\x1b[2J")
    other = deleted(cfngen, "--yes", "--authorities-file", str(path))
    assert (other.code, "it exists, with other content" in other.err) == (1, True)
    path.unlink()
    ran = deleted(cfngen, "--yes", "--authorities-file", str(path))
    assert ran.code == 0, ran.err
    assert (path.read_text(), path.stat().st_mode & 0o777) == (text, 0o600)
    assert str(path) in ran.out


@pytest.mark.parametrize(("letter", "how"), [("f", "file"), ("r", "recovery-window"), ("d", "destroy")])
def test_somebody_at_a_keyboard_is_asked_what_becomes_of_the_authorities(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], letter: str, how: str
) -> None:
    monkeypatch.setattr("click.prompt", lambda text, **options: letter)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    shown: Any = SimpleNamespace(close=lambda: None)
    chosen = delete_command._ask_copy_method(shown, Path("one-authorities.json"), yes=False)
    assert chosen.how == how
    asked = capsys.readouterr().err
    assert "Without a copy, no snapshot can be restored" in " ".join(asked.split())
    assert "one-authorities.json" in asked

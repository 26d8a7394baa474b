"""What a deployment may not change, or says that it changes: notes of the root and its parameters, one by one."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.preflight.immutable_settings import ImmutableSettingError, check, setting_impacts
from cfngen.templates.immutable_settings import immutable_settings, settings_to_record

NOW: dict[str, Any] = {"kubernetesVersion": "1.35"}
EXACT = immutable_settings(parse(NOW))["kubernetesVersion"]
ZONES = [{"zone": f"us-west-2{letter}"} for letter in "abc"]
THREE = {**NOW, "network": {"subnets": ZONES}, "controlPlane": {"count": 3}}
FIVE = {**NOW, "network": {"subnets": ZONES}, "controlPlane": {"count": 5}}
NEW_CLUSTER = "restore the old value in the cluster file, or create a new cluster."
KEEP = (
    "Use --on-failure keep: if the update is rolled back after new masters have joined, etcd loses "
    "its majority and must be restored from an earlier snapshot"
)


def told(was: dict[str, str], wanted: dict[str, Any]) -> list[tuple[str, Danger]]:
    """What is predicted of a wanted cluster whose root has other notes."""
    cluster = parse(wanted)
    root = {"Metadata": {"cfngen": {"immutableSettings": {**immutable_settings(cluster), **was}}}}
    return [(impact.text, impact.danger) for impact in setting_impacts(root, cluster)]


def refused(was: dict[str, str], wanted: dict[str, Any]) -> ImmutableSettingError:
    with pytest.raises(ImmutableSettingError) as raised:
        told(was, wanted)
    return raised.value


@pytest.mark.parametrize(
    "key",
    [
        "controlPlane.volume.kmsKey",
        "certificateAuthority.secret",
        "secrets.kmsKey",
        "iam.path",
        "api.port",
        "network.plugin",
        "network.podCidr",
        "network.serviceCidr",
        "network.dnsServiceIp",
        "network.dnsDomain",
        "network.topology",
    ],
)
def test_what_is_decided_once_is_refused(key: str) -> None:
    error = refused({key: "another"}, NOW)
    [problem] = map(str, error.problems)
    assert problem.startswith(f"{key}: was another when the cluster was created and cannot be changed to ")
    section, _, name = key.rpartition(".")
    hint = f"in the cluster file, write `{name}: another` below `{section}`; or create a new cluster."
    assert (str(error), error.hint) == (problem, hint)
    # What was not noted, or is not decided any more, is not judged.
    cluster = parse(NOW)
    notes = {name: value for name, value in immutable_settings(cluster).items() if name != key}
    assert setting_impacts({"Metadata": {"cfngen": {"immutableSettings": notes}}}, cluster) == ()
    assert told({"network.other": "another"}, NOW) == []


def test_a_cluster_of_an_earlier_default_is_told_the_lines_that_keep_it() -> None:
    network: dict[str, Any] = {"topology": "private", "subnets": ZONES}
    was = {"network.plugin": "vpc-routes", "secrets.kmsKey": "a key made with the cluster"}
    error = refused(was, {**NOW, "network": network, "secrets": {"kmsKey": f"arn:aws:kms:us-west-2:{'1' * 12}:key/1"}})
    assert error.hint == (
        "in the cluster file, remove secrets.kmsKey, and write `plugin: vpc-routes` below `network`; "
        "or create a new cluster."
    )
    kept = {**NOW, "network": {**network, "plugin": "vpc-routes"}}
    assert told(was, kept) == []
    # So is what the file left to the default beside it.
    assert parse(kept).network.nat == "single"


def test_all_that_cannot_be_is_said_at_once() -> None:
    error = refused({"api.port": "6444", "kubernetesVersion": "1.33.1"}, NOW)
    assert [problem.key for problem in error.problems] == ["api.port", "kubernetesVersion"]
    assert error.hint == NEW_CLUSTER
    assert str(error) == "; ".join(map(str, error.problems))


@pytest.mark.parametrize(
    ("version", "words", "danger"),
    [
        ("1.34.9", f"Kubernetes 1.34.9 becomes {EXACT}: masters are replaced one at a time, ", Danger.DANGEROUS),
        ("1.35.1", f"Kubernetes 1.35.1 becomes {EXACT}", Danger.DISRUPTIVE),
        ("1.35.99", f"Kubernetes 1.35.99 becomes {EXACT}", Danger.DISRUPTIVE),
    ],
)
def test_a_version_that_changes(version: str, words: str, danger: Danger) -> None:
    [(text, worst)] = told({"kubernetesVersion": version}, NOW)
    assert (text[: len(words)], worst) == (words, danger)


@pytest.mark.parametrize(
    ("version", "problem", "hint"),
    [
        ("1.36.1", f"cannot be changed to {EXACT}: Kubernetes has no downgrade to an older minor version", NEW_CLUSTER),
        (
            "1.33.1",
            f"cannot be changed to {EXACT} in one step: upgrade to 1.34 first",
            "set kubernetesVersion to 1.34, deploy, and continue from there.",
        ),
        ("1.30.1", "upgrade to 1.31 first", "set kubernetesVersion to 1.31, deploy, and continue from there."),
    ],
)
def test_a_version_that_cannot_be(version: str, problem: str, hint: str) -> None:
    error = refused({"kubernetesVersion": version}, NOW)
    assert problem in str(error)
    assert error.hint == hint


def test_masters_neither_go_nor_move() -> None:
    error = refused({"controlPlane.count": "5", "controlPlane.zones": "x y z x y"}, THREE)
    [problem] = map(str, error.problems)
    assert problem == (
        "controlPlane.count: is 5 and cannot be changed to 3: the removed masters' etcd members would "
        "be lost, and the remaining masters would wait for them"
    )
    moved = refused({"controlPlane.zones": "us-west-2c us-west-2b us-west-2a"}, THREE)
    assert tuple(map(str, moved.problems)) == tuple(
        f"controlPlane.addresses: master {letter} is in us-west-2{old} and cannot move to us-west-2{letter}: its "
        f"volume stays there; give it an address of the subnet in us-west-2{old}"
        for letter, old in (("a", "c"), ("c", "a"))
    )


@pytest.mark.parametrize("key", ["controlPlane.volume.kmsKey", "secrets.kmsKey"])
def test_a_key_of_the_account_may_be_named_with_its_number_and_without(key: str) -> None:
    open_arn, arn, foreign = (
        f"arn:aws:kms:us-west-2:{account}:key/1" for account in ("${AWS::AccountId}", "1" * 12, "2" * 12)
    )

    def change(before: str, after: str) -> tuple[Impact, ...]:
        clusters = (
            parse(functools.reduce(lambda value, part: {part: value}, reversed(key.split(".")), text))
            for text in (before, after)
        )
        root = {"Metadata": {"cfngen": {"immutableSettings": settings_to_record(next(clusters))}}}
        return setting_impacts(root, next(clusters), account_number="1" * 12)

    assert change(open_arn, arn) == change(arn, open_arn) == change(open_arn, open_arn) == ()
    for before, after in ((open_arn, foreign), (foreign, open_arn)):
        with pytest.raises(ImmutableSettingError) as raised:
            change(before, after)
        assert f"write `kmsKey: {before}` below" in raised.value.hint


@pytest.mark.parametrize("notes", ["controlPlane.count", "controlPlane.zones"])
def test_notes_that_an_earlier_version_did_not_make_are_not_judged(notes: str) -> None:
    cluster = parse(THREE)
    was = {name: value for name, value in immutable_settings(cluster).items() if name != notes}
    assert setting_impacts({"Metadata": {"cfngen": {"immutableSettings": was}}}, cluster) == ()


@pytest.mark.parametrize(
    ("count", "wanted", "words"),
    [
        ("1", THREE, "1 master becomes 3: the API moves to the address of a load balancer, "),
        ("1", FIVE, "1 master becomes 5: the API moves to the address of a load balancer, "),
        ("3", FIVE, "3 masters become 5: the existing ones are replaced one at a time, then the new ones join; the "),
    ],
)
def test_masters_that_are_added(count: str, wanted: dict[str, Any], words: str) -> None:
    [(text, danger)] = told({"controlPlane.count": count}, wanted)
    assert text.startswith(words)
    assert text.endswith(KEEP)
    assert danger is Danger.DANGEROUS


def test_a_version_and_more_masters_are_both_said() -> None:
    found = told({"controlPlane.count": "1", "kubernetesVersion": "1.35.1"}, THREE)
    assert [text.split()[0] for text, _ in found] == ["Kubernetes", "1"]


VPC = (
    "network.vpc: is 10.0.0.0/16 and cannot be changed to {}: all resources of the cluster are in "
    "it, and they cannot move"
)
SUBNET = (
    "network.subnets (zone A): is 10.0.0.0/24 and cannot be changed to {}: the instances and "
    "network interfaces in this "
    "subnet cannot move"
)
ZONE = (
    "network.subnets (zone A): is us-west-2a and cannot be changed to us-west-2b: subnets and "
    "volumes stay in their zone"
)
BACK = "restore the old value in the cluster file (and in the parameters), or create a new cluster."


@pytest.mark.parametrize(
    ("before", "after", "problem", "kept"),
    [
        ({"VpcCidr": "10.0.0.0/16"}, {"VpcCidr": "10.1.0.0/16"}, VPC.format("10.1.0.0/16"), "--keep VpcCidr"),
        ({"VpcCidr": "10.0.0.0/16"}, {"VpcId": "vpc-1"}, VPC.format("vpc-1"), ""),
        ({"VpcId": "vpc-1"}, {"VpcCidr": "10.0.0.0/16"}, VPC.replace("10.0.0.0/16", "vpc-1").format("10.0.0.0/16"), ""),
        (
            {"SubnetACidr": "10.0.0.0/24"},
            {"SubnetACidr": "10.0.1.0/24"},
            SUBNET.format("10.0.1.0/24"),
            "--keep SubnetACidr",
        ),
        ({"SubnetACidr": "10.0.0.0/24"}, {"SubnetAId": "subnet-1"}, SUBNET.format("subnet-1"), ""),
        (
            {"SubnetAId": "subnet-1"},
            {"SubnetAId": "subnet-2"},
            SUBNET.replace("10.0.0.0/24", "subnet-1").format("subnet-2"),
            "--keep SubnetAId",
        ),
        ({"ZoneA": "us-west-2a"}, {"ZoneA": "us-west-2b"}, ZONE, "--keep ZoneA"),
        (
            {"ZoneA": "us-west-2a", "ZZZ": "1", "Gone": "1", "Same": "1"},
            {"ZoneA": "us-west-2b", "ZZZ": "2", "Same": "1"},
            ZONE,
            "--keep ZZZ --keep ZoneA",
        ),
    ],
)
def test_what_a_cluster_stands_on_stays(before: dict[str, str], after: dict[str, str], problem: str, kept: str) -> None:
    with pytest.raises(ImmutableSettingError) as raised:
        check(before, after)
    assert tuple(map(str, raised.value.problems)) == (problem,)
    assert raised.value.hint == (f"{BACK} `{kept}` deploys with the stack's current values." if kept else BACK)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"VpcCidr": "10.0.0.0/16"}),
        ({"VpcCidr": "10.0.0.0/16"}, {}),
        ({"VpcCidr": "10.0.0.0/16", "VpcId": "a"}, {"VpcCidr": "10.0.0.0/16", "VpcId": "b"}),
        ({"SubnetACidr": "1"}, {"SubnetBCidr": "2"}),
        ({"ZoneA": "1"}, {"ZoneB": "2"}),
        ({"SubnetCount": "1", "Zone": "1", "MyZoneA": "1"}, {"SubnetCount": "2", "Zone": "2", "MyZoneA": "2"}),
    ],
)
def test_what_comes_goes_or_stays_is_no_exchange(before: dict[str, str], after: dict[str, str]) -> None:
    check(before, after)


def test_every_exchange_is_named() -> None:
    with pytest.raises(ImmutableSettingError) as raised:
        check({"VpcCidr": "1", "SubnetACidr": "1", "ZoneB": "1"}, {"VpcCidr": "2", "SubnetACidr": "2", "ZoneB": "2"})
    keys = [problem.key for problem in raised.value.problems]
    assert keys == ["network.vpc", "network.subnets (zone A)", "network.subnets (zone B)"]

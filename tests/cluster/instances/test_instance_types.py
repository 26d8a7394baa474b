"""Instance types: their architecture, which are too small, and which exist where."""

from __future__ import annotations

import pytest

from cfngen.cluster.instances import instance_types


@pytest.mark.parametrize(
    "name",
    ["a1.large", "t4g.small", "m6g.large", "c7gn.large", "im4gn.large", "g5g.xlarge", "x2gd.large", "hpc7g.4xlarge"],
)
def test_graviton_is_arm64(name: str) -> None:
    assert instance_types.architecture(name) == "arm64"


@pytest.mark.parametrize(
    "name", ["t3.medium", "m5.large", "g4dn.xlarge", "g5.xlarge", "gr6.4xlarge", "c7i-flex.large", "u7i-12tb.224xlarge"]
)
def test_others_are_amd64(name: str) -> None:
    assert instance_types.architecture(name) == "amd64"


@pytest.mark.parametrize(
    "name", ["t3.small", "t3a.small", "t4g.small", "t2.medium", "t3.medium", "t4g.medium", "m3.large"]
)
def test_two_cpus_and_two_gib_are_enough(name: str) -> None:
    assert instance_types.why_unsuitable(name, "master") is None
    assert instance_types.why_unsuitable(name, "node") is None


@pytest.mark.parametrize(
    "name",
    [
        "t1.micro",
        "t2.nano",
        "t3.micro",
        "t4g.micro",
        "t2.small",
        "m1.small",
        "m1.medium",
        "c1.medium",
        "m3.medium",
        "a1.medium",
        "m6g.medium",
        "c7g.medium",
        "r8g.medium",
        "m7a.medium",
        "m1.xlarge",
        "m2.4xlarge",
        "mac1.metal",
    ],
)
def test_too_small_or_too_old(name: str) -> None:
    reason = instance_types.why_unsuitable(name, "node")
    assert reason is not None
    assert reason.startswith(name)
    assert "medium or larger" in reason


def test_what_is_proposed_instead_has_the_same_architecture() -> None:
    assert "t4g.medium" in str(instance_types.why_unsuitable("c7g.medium", "node"))
    assert "t3.medium" in str(instance_types.why_unsuitable("m7a.medium", "node"))


def test_kube_ups_own_types_are_recognised() -> None:
    assert "kube-up's type for masters" in str(instance_types.why_unsuitable("m3.medium", "master"))
    assert "kube-up's type for nodes" in str(instance_types.why_unsuitable("t2.micro", "node"))


def test_regions_have_lists_of_types() -> None:
    assert {"us-west-2", "eu-central-1", "cn-north-1", "us-gov-west-1"} <= set(instance_types.regions())
    assert "t3.medium" in (instance_types.types_in_region("us-west-2") or ())
    assert instance_types.types_in_region("mars-north-1") is None


def test_every_type_of_cfn_lints_lists_has_an_architecture_and_a_verdict() -> None:
    names = {name for region in instance_types.regions() for name in instance_types.types_in_region(region) or ()}
    assert len(names) > 1000
    fit = {name for name in names if instance_types.why_unsuitable(name, "node") is None}
    assert {name.partition(".")[2] for name in names - fit} <= {"nano", "micro", "small", "medium", "metal"} | {
        size for name in names - fit if name.startswith(("m1.", "m2.", "c1.")) for size in [name.partition(".")[2]]
    }


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        ("m9x.large", ["m8i.large", "m7i.large", "m6i.large"]),
        ("m6.large", ["m6i.large", "m7i.large", "m5.large"]),
        ("m5x.large", ["m5.large", "m6i.large", "m4.large"]),
        ("c99g.xlarge", ["c9g.xlarge", "c8g.xlarge", "c7g.xlarge"]),
        ("g9.xlarge", ["g6.xlarge", "g5.xlarge", "g4ad.xlarge"]),
        ("t5.medium", ["t3.medium", "t8i.medium", "t2.medium"]),
        ("m5.lagre", ["m5.large", "m5n.large", "m5d.large"]),
        ("xyzzy", []),
    ],
)
def test_the_nearest_type_is_of_the_same_family_and_size(wanted: str, near: list[str]) -> None:
    assert instance_types.similar(wanted, "us-west-2") == near

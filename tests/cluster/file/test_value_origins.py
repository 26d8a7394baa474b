"""Where each value in effect came from, as `cfngen config` shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_cases import CASES, load_case

from cfngen.cluster.checks.placement import LASTING_DEFAULTS
from cfngen.cluster.file.validation import Origin
from cfngen.cluster.iam.issuer_stages import state_to_record
from cfngen.cluster.load import load, parse
from cfngen.cluster.paths import dotted, leaves
from cfngen.templates.immutable_settings import immutable_settings

FILE = """\
name: blue
kubernetesVersion: 1.35
network:
  vpc:
    cidr: 10.7.0.0/16
  routeTable:
image:
  distribution: debian-12
ssh: {keyName: mine, allowedCidrs: [203.0.113.0/24]}
nodeGroups:
  - name: first
    minSize: 2
  - {name: second, instanceType: t4g.medium}
  - {name: third, instanceTypes: [m7i.large, m6i.large], spotPrice: 0.05}
  - {name: fourth, instanceTypes: [m7i.large, m6i.large]}
kubernetes:
  kubeletConfiguration: {maxPods: 50}
"""


@pytest.fixture
def origins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Origin]:
    monkeypatch.chdir(tmp_path)
    Path("cluster.yaml").write_text(FILE)
    environ = {"MASTER_SIZE": "t3.large", "KUBE_RUNTIME_CONFIG": "api/all=true"}
    loaded = load(Path("cluster.yaml"), environ=environ, overrides=["api.port=6443", "nodeGroups[1].maxSize=9"])
    assert loaded.warnings == ()
    return dict(loaded.origins)


@pytest.mark.parametrize(
    ("key", "kind", "where"),
    [
        ("name", "file", "cluster.yaml:1"),
        ("network.vpc.cidr", "file", "cluster.yaml:5"),
        ("ssh.allowedCidrs[0]", "file", "cluster.yaml:9"),
        ("nodeGroups[0].minSize", "file", "cluster.yaml:12"),
        ("nodeGroups[1].instanceType", "file", "cluster.yaml:13"),
        ("kubernetes.kubeletConfiguration.maxPods", "file", "cluster.yaml:17"),
        ("controlPlane.instanceType", "environment", "MASTER_SIZE"),
        ("kubernetes.clusterConfiguration.apiServer.extraArgs[0].value", "environment", "KUBE_RUNTIME_CONFIG"),
        ("api.port", "flag", "--set api.port=6443"),
        ("nodeGroups[1].maxSize", "flag", "--set nodeGroups[1].maxSize=9"),
        ("kubernetesVersion", "derived", "newest known patch of 1.35"),
        ("network.vpc.name", "derived", "from name"),
        ("network.subnets[0].cidr", "derived", "by its position in network.vpc.cidr"),
        ("controlPlane.addresses[0]", "derived", "from network.subnets[0].cidr"),
        ("nodeGroups[0].maxSize", "derived", "from minSize"),
        ("nodeGroups[0].image.distribution", "derived", "from image.distribution"),
        ("nodeGroups[1].image.architecture", "derived", "from instanceType"),
        ("nodeGroups[2].instancesDistribution.onDemandPercentage", "derived", "from spotPrice"),
        ("nodeGroups[2].instancesDistribution.spotAllocationStrategy", "default", ""),
        ("nodeGroups[3].instancesDistribution.onDemandPercentage", "default", ""),
        ("nodeGroups[3].instancesDistribution.onDemandAllocationStrategy", "default", ""),
        ("region", "default", ""),
        ("network.subnets[0].zone", "default", ""),
        ("network.podCidr", "default", ""),
        ("network.routeTable", "default", ""),
        ("nodeGroups[0].instanceType", "default", ""),
        ("nodeGroups[0].rootVolume.size", "default", ""),
        ("nodeGroups[0].image.architecture", "default", ""),
    ],
)
def test_origin_of_a_value(origins: dict[str, Origin], key: str, kind: str, where: str) -> None:
    assert origins[key] == Origin(kind, where)


# For each other setting that lasts: why its default lowers neither availability nor security by surprise.
_CONSTANT = "the default is the same for all clusters"
HARMLESS_DEFAULTS = {
    "api.port": _CONSTANT,
    "certificateAuthority.secret": _CONSTANT,
    "controlPlane.count": f"{_CONSTANT}, and masters can be added",
    "controlPlane.volume.kmsKey": f"{_CONSTANT}: the account's key, so volumes are always encrypted",
    "iam.addonRoles": "an existing cluster can change it",
    "iam.path": _CONSTANT,
    "kubernetesVersion": "the newest version, which only gets newer",
    "network.dnsDomain": _CONSTANT,
    "network.dnsServiceIp": "an address of network.serviceCidr; every address serves as well",
    "network.podCidr": _CONSTANT,
    "network.serviceCidr": _CONSTANT,
    "network.subnets": "the zones are those of the file; checks compare the ranges with the sizes of node groups",
    "network.topology": _CONSTANT,
    "network.vpc": f"{_CONSTANT}; only the VPC's name follows from the cluster's",
    "secrets.kmsKey": f"{_CONSTANT}: a key of the cluster's own",
    "serviceAccountIssuer.bucket": "has no default",
    # The documents hold public keys, and AWS STS reads them from the internet.
    "serviceAccountIssuer.discovery": "the issuer's documents are public, wherever they are",
    "serviceAccountIssuer.signTokens": "an existing cluster can change it",
    "serviceAccountIssuer.url": "has no default",
}


def test_every_leaf_has_an_origin() -> None:
    loaded = load(None, environ={})
    assert set(loaded.origins) == {
        dotted(path) for path, _ in leaves(loaded.cluster.model_dump(mode="json", by_alias=True))
    }
    assert {origin.kind for origin in loaded.origins.values()} == {"default"}


def test_every_setting_that_lasts_warns_of_its_default_or_has_a_harmless_one() -> None:
    issuer = {"discovery": "url", "url": "https://tokens.example.com", "bucket": "tokens"}
    recorded = {*immutable_settings(parse({})), *state_to_record(parse({"serviceAccountIssuer": issuer}))}
    assert {*LASTING_DEFAULTS, *HARMLESS_DEFAULTS} == recorded | {"network.vpc", "network.subnets"}
    assert not LASTING_DEFAULTS.keys() & HARMLESS_DEFAULTS.keys()
    constants = {key for key, reason in HARMLESS_DEFAULTS.items() if reason.startswith("the default is the same")}
    for case in CASES:
        assert not [key for key in constants if getattr(load_case(case).origins.get(key), "kind", "") == "derived"]

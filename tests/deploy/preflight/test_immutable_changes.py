"""What a deployment changes that no change set says: refused, or said where it can be seen."""

from __future__ import annotations

import pytest
from cloud import Cloud
from clusters import inventory
from deployments import Operator, groups

from cfngen.cluster.load import parse
from cfngen.deploy.messages.message import Danger
from cfngen.deploy.preflight.immutable_settings import ImmutableSettingError, setting_impacts
from cfngen.deploy.preflight.parameters.parameter_values import MissingParameterError
from cfngen.templates import generate

ONE = {"name": "one", "nodeGroups": groups("general")}


def root(**keys):
    documents = {each.name: each.body for each in generate(parse({**ONE, **keys}))}
    return documents["cluster"]


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("api.port", {"api": {"port": 6443}}),
        ("network.podCidr", {"network": {"podCidr": "10.200.0.0/16"}}),
        ("network.serviceCidr", {"network": {"serviceCidr": "10.96.0.0/16"}}),
        ("network.dnsDomain", {"network": {"dnsDomain": "k8s.example"}}),
        ("network.plugin", {"network": {"plugin": "cilium"}}),
        ("network.plugin", {"network": {"plugin": "amazon-vpc"}}),
        ("network.topology", {"network": {"topology": "private"}}),
    ],
)
def test_what_is_decided_once_is_refused(key, change):
    with pytest.raises(ImmutableSettingError, match=f"^{key}: was ") as raised:
        setting_impacts(root(), parse({**ONE, **change}))
    assert "create a new cluster" in raised.value.hint


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [("1.36", "1.35", "no downgrade to an older minor version"), ("1.34", "1.36", "upgrade to 1.35 first")],
)
def test_versions_that_kubernetes_cannot_go_to_are_refused(before, after, message):
    with pytest.raises(ImmutableSettingError, match=message):
        setting_impacts(root(kubernetesVersion=before), parse({**ONE, "kubernetesVersion": after}))


def test_a_private_cluster_does_not_become_public():
    with pytest.raises(
        ImmutableSettingError, match=r"^network\.topology: was private .* to public: instances"
    ) as raised:
        setting_impacts(root(network={"topology": "private"}), parse(ONE))
    assert "create a new cluster" in raised.value.hint


LOCKED = {"backups": {"objectLock": {"mode": "compliance", "days": 7}}}


def test_object_lock_of_the_stacks_bucket_is_never_turned_off():
    with pytest.raises(
        ImmutableSettingError, match=r"^etcd\.backups\.objectLock: cannot be removed, as S3 never turns"
    ):
        setting_impacts(root(etcd=LOCKED), parse(ONE))
    # Mode and days are those of the next snapshots; another bucket, or none, has what it has.
    for backups in ({"objectLock": {"mode": "governance", "days": 1}}, {"bucket": "mine"}, {"enabled": False}):
        assert setting_impacts(root(etcd=LOCKED), parse({**ONE, "etcd": {"backups": backups}})) == ()
    assert setting_impacts(root(), parse({**ONE, "etcd": LOCKED})) == ()


def test_a_single_private_master_with_a_public_api_keeps_its_load_balancer():
    zones = {"topology": "private", "subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]}
    three = {"network": zones, "controlPlane": {"count": 3}}
    [impact] = setting_impacts(root(network=zones), parse({**ONE, **three}))
    assert impact.text.startswith("1 master becomes 3: the API keeps its load balancer. The existing master is")
    internal = {"api": {"public": False}}
    [impact] = setting_impacts(root(network=zones, **internal), parse({**ONE, **three, **internal}))
    assert impact.text.startswith("1 master becomes 3: the API moves to the address of a load balancer, so fetch")


def test_a_minor_version_that_is_skipped_is_no_reason_for_a_new_cluster():
    with pytest.raises(ImmutableSettingError) as raised:
        setting_impacts(root(kubernetesVersion="1.34"), parse({**ONE, "kubernetesVersion": "1.36"}))
    assert raised.value.hint == "set kubernetesVersion to 1.35, deploy, and continue from there."


def test_fewer_masters_are_refused_by_the_number_there_is_now():
    with pytest.raises(ImmutableSettingError, match=r"^controlPlane\.count: is 3 and cannot be changed to 1: "):
        setting_impacts(root(controlPlane={"count": 3}), parse(ONE))


def test_a_new_minor_version_is_named_and_dangerous():
    [meaning] = setting_impacts(root(kubernetesVersion="1.35"), parse({**ONE, "kubernetesVersion": "1.36"}))
    assert meaning.danger is Danger.DANGEROUS
    assert meaning.text.startswith("Kubernetes 1.35.")
    assert " becomes 1.36." in meaning.text
    assert "new nodes wait for the last master" in meaning.text
    assert "the only way back is an etcd snapshot" in meaning.text
    assert [str(command) for command in meaning.hint.commands] == ["cfngen etcd backup", "cfngen etcd restore KEY"]
    without = {**ONE, "kubernetesVersion": "1.36", "etcd": {"backups": {"enabled": False}}}
    [meaning] = setting_impacts(root(kubernetesVersion="1.35"), parse(without))
    assert meaning.hint == "there are no snapshots: etcd.backups is not enabled; enable it before."


def test_a_patch_may_go_either_way():
    [meaning] = setting_impacts(root(kubernetesVersion="1.36.2"), parse({**ONE, "kubernetesVersion": "1.36.3"}))
    assert meaning.danger is Danger.DISRUPTIVE
    assert setting_impacts(root(kubernetesVersion="1.36.3"), parse({**ONE, "kubernetesVersion": "1.36.2"}))


def test_clusters_of_a_time_with_one_plugin_keep_it():
    before = root()
    del before["Metadata"]["cfngen"]["immutableSettings"]["network.plugin"]
    assert setting_impacts(before, parse(ONE)) == ()
    with pytest.raises(ImmutableSettingError, match=r"^network\.plugin: was vpc-routes "):
        setting_impacts(before, parse({**ONE, "network": {"plugin": "calico"}}))


def test_nothing_changed_or_nothing_noted_means_nothing():
    assert setting_impacts(root(), parse(ONE)) == ()
    assert setting_impacts({}, parse({**ONE, "api": {"port": 6443}})) == ()


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def test_the_plan_of_an_upgrade_is_dangerous(operator: Operator):
    operator.deploy({**ONE, "kubernetesVersion": "1.35"})
    plan = operator.plan({**ONE, "kubernetesVersion": "1.36"})
    assert plan.is_dangerous
    assert plan.consequences[0].text.startswith("Kubernetes 1.35.")


def test_a_refused_change_leaves_everything_as_it_is(operator: Operator):
    operator.deploy(ONE)
    before = inventory(operator.cloud.cluster.region)
    with pytest.raises(ImmutableSettingError):
        operator.deploy({**ONE, "api": {"port": 6443}})
    assert inventory(operator.cloud.cluster.region) == before


def test_the_bucket_of_an_existing_cluster_is_locked_in_place_and_stays_so(operator: Operator):
    operator.deploy(ONE)
    s3 = operator.cloud.client("s3")
    names = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    [bucket] = [name for name in names if "backupbucket" in name]
    s3.put_object(Bucket=bucket, Key="one/etcd/hourly/2026-01-01T000000Z.db", Body=b"", IfNoneMatch="*")
    plan = operator.plan({**ONE, "etcd": LOCKED})
    said = [change.impact.text for stack in plan.stacks for change in stack.changes if change.impact]
    assert [text for text in said if "S3 Object Lock is turned on for the bucket, and can never be turned off" in text]
    operator.deploy({**ONE, "etcd": LOCKED})
    assert s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"] == {
        "ObjectLockEnabled": "Enabled"
    }
    with pytest.raises(ImmutableSettingError, match=r"^etcd\.backups\.objectLock: cannot be removed"):
        operator.deploy(ONE)


def test_a_missing_parameter_is_said_before_anything_is_sent(operator: Operator):
    with pytest.raises(MissingParameterError):
        operator.deploy(ONE, flags={})
    assert operator.cloud.client("s3").list_buckets()["Buckets"] == [
        bucket
        for bucket in operator.cloud.client("s3").list_buckets()["Buckets"]
        if not bucket["Name"].startswith("cfngen-")
    ]

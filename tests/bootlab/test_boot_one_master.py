"""A cluster of one master and two nodes, from its creation through what may befall the nodes and the master.

One cluster for all tests of this file, in the order of the file: each leaves it working for the next one.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import re

import lab_timing
import pytest
import yaml
from lab import Lab, calls
from lab_file import ABSENT_IMAGE, PULLED_IMAGE
from lab_instance import Instance
from stand_ins import pki

from cfngen.cluster.instances.node_resources import NODE_TEMPLATE

MASTER, NODES, SPOT = "Master", "NodeGroupNodes", "NodeGroupSpot"
KUBECTL = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf")
SECRETS = re.compile(r"-----BEGIN (?:EC |RSA )?PRIVATE KEY-----|\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
# What is the same after a reboot: whoever looks after the cluster finds no file changed.
KEPT = "cd /etc/kubernetes && find . -type f -not -name '*.cfngen' | sort | xargs sha256sum"


@pytest.fixture(scope="module")
def lab(one_master: Lab, timing_page: str) -> Lab:
    one_master.bring_up()
    boots = {
        title: (one_master.newest(group), one_master.launched[one_master.newest(group).id])
        for title, group in (("The only master, making a new cluster", MASTER), ("A node", NODES))
    }
    lab_timing.write(timing_page, lab_timing.report(boots, os.cpu_count() or 1))
    return one_master


@pytest.fixture
def master(lab: Lab) -> Instance:
    return lab.newest(MASTER)


@pytest.fixture
def node(lab: Lab) -> Instance:
    return lab.newest(NODES)


@pytest.fixture
def spot(lab: Lab) -> Instance:
    return lab.newest(SPOT)


def ready(lab: Lab, master: Instance) -> dict[str, str]:
    """Which nodes the cluster knows, and whether they are Ready."""
    found = {}
    for item in lab.kubectl(master, "get", "nodes")["items"]:
        conditions = {each["type"]: each["status"] for each in item.get("status", {}).get("conditions", [])}
        found[item["metadata"]["name"]] = conditions.get("Ready", "")
    return found


def test_each_instance_signals_success_once(lab, master, node, spot):
    signals = lab.signals(lab.stack)
    expected = [f"Received SUCCESS signal with UniqueId {each.id}" for each in (master, node, spot)]
    assert sorted(signals) == sorted(expected)


def test_every_step_is_on_the_console_with_its_duration(lab, master, node, spot):
    for instance in (master, node, spot):
        numbers = [re.match(r"\[(\d+)/(\d+)\] .+ \(\d+\.\d s\)$", line) for line in instance.lines]
        steps = [(int(match[1]), int(match[2])) for match in numbers if match]
        count = steps[0][1]
        assert [number for number, total in steps if total == count] == list(range(1, count + 1))
        assert instance.booted


def test_the_console_output_of_ec2_is_what_the_instance_wrote(lab, master):
    answer = lab.account.call("ec2", "get_console_output", InstanceId=master.id)
    assert "initialised a new cluster" in answer["Output"]


def test_the_cluster_has_all_as_ready_nodes_that_the_cloud_controller_knows(lab, master, node, spot):
    assert ready(lab, master) == dict.fromkeys((master.id, node.id, spot.id), "True")
    for item in lab.kubectl(master, "get", "nodes")["items"]:
        assert item["spec"]["providerID"] == f"aws:///us-west-2a/{item['metadata']['name']}"
        assert item["metadata"]["labels"]["topology.kubernetes.io/zone"] == "us-west-2a"
        assert "node.cloudprovider.kubernetes.io/uninitialized" not in str(item["spec"].get("taints"))


def test_the_node_has_run_a_pod_before_it_reported_success(node):
    steps = [number for number, line in enumerate(node.lines) if "a pod of registry.k8s.io/pause:" in line]
    assert len(steps) == 1
    assert any("signalled SUCCESS" in line for line in node.lines[steps[0] :])
    assert node.run("ls", "-A", "/etc/kubernetes/manifests").strip() == ""


def test_a_node_of_several_types_is_what_the_tags_of_its_group_promise(lab, master, spot):
    tags = {}
    for group in lab.account.call("autoscaling", "describe_auto_scaling_groups")["AutoScalingGroups"]:
        if SPOT in group["AutoScalingGroupName"]:
            tags = {tag["Key"].removeprefix(NODE_TEMPLATE + "/"): tag["Value"] for tag in group["Tags"]}
    labels = {key.removeprefix("label/"): value for key, value in tags.items() if key.startswith("label/")}
    node = lab.kubectl(master, "get", "node", spot.id)
    assert labels == {"example.com/purchase": "spot", "example.com/version": "first"}
    assert labels.items() <= node["metadata"]["labels"].items()
    taints = {f"taint/{taint['key']}": f"{taint['value']}:{taint['effect']}" for taint in node["spec"]["taints"]}
    assert taints == {"taint/example.com/spot": "yes:NoSchedule"}
    assert taints.items() <= tags.items()
    assert node["status"]["allocatable"]["pods"] == tags["resources/pods"] == "40"
    assert spot.identity["instance_type"] in ("t2.medium", "t2.large")
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == spot.identity["instance_type"]


def test_a_further_volume_is_formatted_and_mounted_before_containerd_writes_to_it(spot):
    assert any("/dev/sdf formatted and mounted at /var/lib/containerd" in line for line in spot.lines)
    mounted = spot.run("findmnt", "--noheadings", "--output", "SOURCE,FSTYPE", "/var/lib/containerd").split()
    assert mounted == ["/dev/xvdf", "ext4"]
    requirement = spot.run("systemctl", "show", "--property=RequiresMountsFor", "--value", "containerd")
    assert "/var/lib/containerd" in requirement.split()


def test_a_node_does_not_wait_for_the_images_that_it_pulls(spot):
    assert spot.booted
    assert spot.run("ctr", "-n", "k8s.io", "images", "ls", "-q", f"name=={PULLED_IMAGE}").strip() == PULLED_IMAGE
    # The other one is tried again for five minutes.
    assert spot.run("systemctl", "is-active", "cfngen-images", check=False).strip() == "activating"


def test_a_node_does_not_pause_when_its_group_is_created(spot):
    assert any("no pause: the group is not being updated" in line for line in spot.lines)


def test_the_secret_of_the_authorities_is_written(lab, master):
    bundle = lab.secret("caSecretArn")
    assert bundle["initialised"]
    assert "BEGIN CERTIFICATE" in bundle["ca.crt"]
    assert bundle["ca.crt"] == master.read("/etc/kubernetes/pki/ca.crt")


def test_the_join_information_holds_a_token_of_a_day(lab):
    information = lab.secret("joinSecretArn")
    expires = datetime.datetime.fromisoformat(information["expires"].replace("Z", "+00:00"))
    left = expires - datetime.datetime.now(datetime.UTC)
    assert datetime.timedelta(hours=23) < left <= datetime.timedelta(hours=24)
    assert re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", information["token"])


def test_masters_have_approved_the_first_certificates_of_nodes(lab, master, node, spot):
    requests = lab.kubectl(master, "get", "certificatesigningrequests")["items"]
    first = [each for each in requests if each["spec"]["username"].startswith("system:bootstrap:")]
    assert len(first) >= 2
    for each in first:
        assert "system:bootstrappers:cfngen:nodes" in each["spec"]["groups"]
        assert [condition["reason"] for condition in each["status"]["conditions"]] == ["KubectlApprove"]
    bindings = lab.kubectl(master, "get", "clusterrolebindings")["items"]
    assert "kubeadm:node-autoapprove-bootstrap" not in [each["metadata"]["name"] for each in bindings]


def test_a_node_becomes_neither_a_master_nor_another_node(lab, master, node, spot):
    information = lab.secret("joinSecretArn")
    authority = base64.b64encode(node.read("/etc/kubernetes/pki/ca.crt").encode()).decode()
    server = {"server": f"https://{information['endpoint']}", "certificate-authority-data": authority}
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": server}],
        "users": [{"name": "token", "user": {"token": information["token"]}}],
        "contexts": [{"name": "claim", "context": {"cluster": "cluster", "user": "token"}}],
        "current-context": "claim",
    }
    file = "/run/claim.conf"
    node.run("sh", "-c", f"umask 077; cat > {file}", stdin=json.dumps(kubeconfig))
    for name, claimed in (("claim-master", master.id), ("claim-node", spot.id)):
        _, request = pki.request(f"system:node:{claimed}", ("system:nodes",))
        spec = {
            "request": base64.b64encode(request).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        }
        made = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
        item = {**made, "metadata": {"name": name}, "spec": spec}
        node.run("kubectl", "--kubeconfig", file, "create", "-f", "-", stdin=json.dumps(item))
    node.run("rm", file)
    refused = {
        f"for {master.id} was not approved: that instance is a master or the bastion",
        f"for {spot.id} was not approved: a kubelet already reports for the Node of that name",
    }

    def said() -> bool:
        journal = master.run("journalctl", "-u", "cfngen-approve", "-o", "cat", "--no-pager")
        return all(line in journal for line in refused)

    lab.until("the refusals", said)
    for name in ("claim-master", "claim-node"):
        assert not lab.kubectl(master, "get", "certificatesigningrequest", name).get("status", {}).get("certificate")


def test_no_secret_is_where_others_may_read_it(lab, master, node, spot):
    token = lab.secret("joinSecretArn")["token"]
    for instance in (master, node, spot):
        spoken = "\n".join(" ".join(call["arguments"]) for call in calls(instance))
        journal = instance.run("journalctl", "--no-pager", "-o", "cat")
        user_data = instance.identity["user_data"].decode()
        for text in (spoken, journal, user_data, instance.console, instance.read("/var/log/cfngen.log")):
            assert token not in text
            assert not SECRETS.search(text)


def test_files_with_keys_are_for_root_alone(master):
    open_to_others = master.run("find", "/etc/kubernetes", "/opt/cfngen", "-name", "*.key", "-perm", "/077")
    assert open_to_others == ""
    assert master.run("find", "/opt/cfngen/kubeadm.yaml", "/etc/kubernetes/admin.conf", "-perm", "/077") == ""


def test_the_metadata_service_was_never_asked_without_a_token(lab):
    assert lab.metadata.refused == []


def test_etcd_is_on_the_data_volume(lab, master):
    source, kind = master.run("findmnt", "--noheadings", "--output", "SOURCE,FSTYPE", "/mnt/master").split()
    assert (source[:9], kind) == ("/dev/nvme", "ext4")
    assert (
        master.run("sh", "-c", "tr '\\0' ' ' < /proc/$(pgrep -x etcd)/cmdline").count("--data-dir=/mnt/master/etcd ")
        == 1
    )


def test_every_unit_is_at_work(master, node, spot):
    for instance in (master, node, spot):
        assert instance.run("systemctl", "list-units", "--failed", "--no-legend", "--plain") == ""


def test_a_reboot_of_the_master_changes_nothing(lab, master):
    files, before = master.run("sh", "-c", KEPT), len(calls(master, "kubeadm"))
    objects = lab.kubectl(master, "get", "configmaps", "-n", "kube-system")["items"]
    signals, boots = lab.signals(lab.stack), master.boots
    said = len(master.lines)
    master.reboot()
    lab.until("the second boot", lambda: master.boots > boots and "done in" in " ".join(master.lines[said:]))
    assert any("steady" in line for line in master.lines[said:])
    assert any("signalled SUCCESS before" in line for line in master.lines[said:])
    assert master.run("sh", "-c", KEPT) == files
    made = [call["arguments"] for call in calls(master, "kubeadm")[before:]]
    assert [each for each in made if each[:2] != ["certs", "check-expiration"]] == []
    after = lab.kubectl(master, "get", "configmaps", "-n", "kube-system")["items"]
    assert {each["metadata"]["uid"] for each in after} == {each["metadata"]["uid"] for each in objects}
    assert lab.signals(lab.stack) == signals


def test_an_update_that_replaces_a_node_pauses_before_the_node_counts(lab, spot):
    groups = yaml.safe_load(lab.file.read_text())["nodeGroups"]
    for group in groups:
        if group["name"] == "spot":
            group["labels"]["example.com/version"] = "second"
    lab.stack = lab.update(nodeGroups=groups)
    new = lab.until("the new node", lambda: next((each for each in lab.members(SPOT) if each is not spot), None))
    lab.until("the end of its other steps", lambda: "recommends to rebalance" in " ".join(new.lines))
    assert lab.stack.status == "UPDATE_IN_PROGRESS"
    assert new.id not in " ".join(lab.signals(lab.stack))


# The next tests pass the time of the pause.


def test_a_recommendation_to_rebalance_drains_the_node(lab, master, spot):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "to-be-moved", "namespace": "default"},
        "spec": {"nodeName": spot.id, "containers": [{"name": "pause", "image": PULLED_IMAGE}]},
    }
    master.run(*KUBECTL, "create", "-f", "-", stdin=json.dumps(pod))
    lab.metadata.recommend_rebalance(spot.id)
    said = "EC2 recommends to rebalance this Spot Instance: all its pods are gone"
    lab.until("the node to be drained", lambda: said in " ".join(spot.task_lines("rebalance")))
    assert lab.kubectl(master, "get", "pods", "-n", "default")["items"] == []
    node = lab.kubectl(master, "get", "node", spot.id)
    assert node["spec"]["unschedulable"]
    assert node["metadata"]["labels"]["node.kubernetes.io/exclude-from-external-load-balancers"] == "true"
    assert ready(lab, master)[spot.id] == "True"
    assert spot.run("systemctl", "show", "--property=Result", "--value", "cfngen-rebalance").strip() == "success"


def test_the_notice_of_an_interruption_is_left_to_the_drain_service(lab, spot):
    lab.metadata.interrupt(spot.id)
    said = "EC2 is about to interrupt this Spot Instance: all its pods are gone"
    lab.until("the drain service", lambda: said in " ".join(spot.task_lines("drain")))


def test_a_node_that_meets_an_expired_token_joins_when_a_master_has_renewed_it(lab, master):
    arn = lab.references(master)["joinSecretArn"]
    information = {**lab.secret("joinSecretArn"), "expires": "2020-01-01T00:00:00Z"}
    lab.account.call("secretsmanager", "put_secret_value", SecretId=arn, SecretString=json.dumps(information))
    before = {each.id for each in lab.members(NODES)}
    lab.terminate(before.pop())
    node = lab.until("the new node", lambda: next(iter(lab.members(NODES)), None))
    log = "/var/log/cfngen.log"
    lab.until("its attempt to join", lambda: "enable kubelet" in node.read(log))
    assert not node.booted
    master.run("systemctl", "start", "cfngen-join.service")
    lab.until("the node", lambda: node.booted)
    assert ready(lab, master)[node.id] == "True"


def test_the_update_ends_after_the_pause(lab, master, spot):
    assert lab.settled(lab.stack) == "UPDATE_COMPLETE", lab.story()
    [paused] = [number for number, line in enumerate(spot.lines) if "after a pause of 1 min" in line]
    assert any("signalled SUCCESS" in line for line in spot.lines[paused:])
    assert f"Received SUCCESS signal with UniqueId {spot.id}" in lab.signals(lab.stack)
    node = lab.kubectl(master, "get", "node", spot.id)
    assert node["metadata"]["labels"]["example.com/version"] == "second"


def test_a_pull_that_fails_is_on_the_console_with_its_reason(lab, spot):

    def failures() -> list[str]:
        return [line for line in spot.task_lines("images") if f"waiting for {ABSENT_IMAGE}" in line]

    lab.until("the failure", failures)
    assert "no such host" in failures()[0]


def test_a_master_that_dies_is_replaced_and_resumes_the_cluster(lab, master):
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
    master.run(*KUBECTL, "create", "-f", "-", stdin=json.dumps(made))
    bundle, volume = lab.secret("caSecretArn"), lab.volume(master)
    lab.stop(master.id)
    lab.terminate(master.id)
    heir = lab.until("the heir", lambda: next((each for each in lab.members(MASTER) if each is not master), None))
    lab.until("the heir's boot", lambda: heir.booted)
    assert any("continued with the etcd data on the volume" in line for line in heir.lines)
    assert lab.volume(heir) == volume
    assert heir.identity["interface"] == master.identity["interface"]
    assert lab.kubectl(heir, "get", "configmap", "kept")["metadata"]["name"] == "kept"
    assert lab.secret("caSecretArn") == bundle
    lab.until("the old Node to be forgotten", lambda: master.id not in ready(lab, heir))


def test_a_snapshot_of_etcd_is_taken_and_seen_by_the_operator(lab, master):
    master.run("rm", "-f", "/var/lib/cfngen/backup.json")  # the next one would be due in minutes
    master.run("systemctl", "start", "cfngen-backup.service")
    told = lab.operator("etcd", "list")
    assert re.search(r"kubernetes/etcd/hourly/\S+Z\.db", told), told


def test_a_blank_volume_never_becomes_a_second_cluster(lab, master):
    since = lab.secret("caSecretArn")["initialised"]
    volume = lab.volume(master)
    lab.terminate_and_wipe(master.id)
    heir = lab.until("the heir", lambda: next((each for each in lab.members(MASTER) if each is not master), None))
    line = lab.until("the refusal", lambda: next((each for each in heir.lines if "FAILED" in each), ""))
    assert f"{volume} is blank, but the cluster exists since {since}" in line
    assert "What to do: run `cfngen etcd restore latest`" in line
    assert calls(heir, "container") == []
    assert lab.secret("caSecretArn")["initialised"] == since


def test_the_command_of_that_refusal_brings_the_cluster_back(lab, master):
    former = master.id
    lab.operator("etcd", "restore", "latest", "--yes")
    heir = lab.newest(MASTER)
    assert heir.id != former
    lab.until("the end of its boot", lambda: heir.booted)
    assert any("restored the cluster" in line for line in heir.lines)
    assert lab.kubectl(heir, "get", "configmap", "kept")["metadata"]["name"] == "kept"
    lab.until("the nodes", lambda: set(ready(lab, heir).values()) == {"True"} and len(ready(lab, heir)) == 3)

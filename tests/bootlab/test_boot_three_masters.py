"""A cluster of three masters: what a quorum must survive, and what an operator does when it is lost.

One cluster for all tests of this file, in the order of the file: each leaves it working for the next one.
"""

from __future__ import annotations

import itertools
import json
import re
import threading

import pytest
from lab import Lab, calls
from lab_instance import Instance

from cfngen.cluster.naming.names import api_host
from cfngen.sandbox.cloudformation import Stack

MASTERS = ("MasterA", "MasterB", "MasterC")
KUBECTL = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "--request-timeout=30s")
ETCD = "/etc/kubernetes/pki/etcd/"
OLD, NEW = "1.36.2", "1.36.3"


@pytest.fixture(scope="module")
def lab(three_masters: Lab) -> Lab:
    three_masters.bring_up()
    return three_masters


def masters(lab: Lab) -> list[Instance]:
    return [lab.newest(group) for group in MASTERS]


def etcd(master: Instance) -> dict[str, str]:
    """Each member's id by its peer URL, as a master's own member lists those with a vote."""
    options = ("--endpoints=https://127.0.0.1:2379", f"--cacert={ETCD}ca.crt")
    certificate = (f"--cert={ETCD}healthcheck-client.crt", f"--key={ETCD}healthcheck-client.key")
    text = master.run("etcdctl", *options, *certificate, "member", "list", "--write-out=json")
    found = json.loads(text)["members"]
    return {each["peerURLs"][0]: f"{each['ID']:x}" for each in found if not each.get("isLearner")}


def put(lab: Lab, master: Instance, name: str) -> None:
    """Write an object by a master's own API server, in the seconds that etcd takes to agree on a new leader, too."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    server = f"--server=https://{master.address}"

    def written() -> bool:
        master.run(*KUBECTL, server, "apply", "--server-side", "-f", "-", stdin=json.dumps(made), check=False)
        return name in master.run(*KUBECTL, server, "get", "configmaps", check=False)

    lab.until(f"{name} to be written", written)


def names(lab: Lab, master: Instance, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in lab.kubectl(master, "get", kind)["items"]}


def heir(lab: Lab, group: str, former: Instance) -> Instance:
    """The next instance of a slot, booted."""
    found = lab.until("the heir", lambda: next((each for each in lab.members(group) if each is not former), None))
    lab.until("the heir's boot", lambda: found.booted)
    return found


def span(stack: Stack, logical_id: str) -> tuple[int, int]:
    """Where among the stack's events the update of a resource begins and ends."""
    statuses = {number: each.status for number, each in enumerate(stack.events) if each.logical_id == logical_id}
    begin = min(number for number, status in statuses.items() if status == "UPDATE_IN_PROGRESS")
    return begin, min(number for number, status in statuses.items() if status == "UPDATE_COMPLETE")


class Watch:
    """Asks the API of any master again and again, and counts how often nobody answered."""

    def __init__(self, lab: Lab) -> None:
        self._lab, self.failures, self.successes = lab, [], 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.5):
            if any(self._answers(str(each.address)) for each in self._lab.cluster.slots):
                self.successes += 1
            else:
                self.failures.append(self._lab.story())

    def _answers(self, address: str) -> bool:
        try:
            self._lab.network.connect(address, 443, 2).close()
        except OSError:
            return False
        return True


def test_each_slot_and_each_node_signals_success_once(lab):
    told = lab.signals(lab.stack)
    expected = [*masters(lab), lab.newest("NodeGroupNodes")]
    assert sorted(told) == sorted(f"Received SUCCESS signal with UniqueId {each.id}" for each in expected)


def test_etcd_has_three_members_with_a_vote(lab):
    addresses = [str(each.address) for each in lab.cluster.slots]
    for master in masters(lab):
        assert sorted(etcd(master)) == sorted(f"https://{each}:2380" for each in addresses)


def test_one_slot_alone_has_made_the_cluster(lab):
    first, *others = masters(lab)
    assert any("initialised a new cluster" in line for line in first.lines)
    for each in others:
        assert any("joined the cluster" in line for line in each.lines)
    bundle = lab.secret("caSecretArn")
    assert {each.read("/etc/kubernetes/pki/ca.crt") for each in masters(lab)} == {bundle["ca.crt"]}


def test_an_operator_sees_a_working_cluster(lab):
    told = lab.operator("status")
    assert [each.id for each in masters(lab) if each.id not in told] == [], told
    assert re.search(r"(?m)^ *API .*ready$", told), told
    assert re.search(r"4 nodes with 1\.36\.2", told), told


def test_a_node_asks_a_master_last_whose_packets_are_lost(lab):
    node = lab.newest("NodeGroupNodes")

    def order() -> list[str]:
        """The masters' addresses, after the node has looked which of them answer."""
        node.run("systemctl", "start", "cfngen-addresses.service")
        name = re.escape(api_host(lab.cluster))
        return re.findall(rf"(?m)^(\S+) {name}$", node.read("/etc/hosts"))

    first, *others = order()
    rule = ("OUTPUT", "-d", first, "-p", "tcp", "--dport", "443", "-j", "DROP")
    node.run("iptables", "-w", "-I", *rule)
    try:
        assert order() == [*others, first]
    finally:
        node.run("iptables", "-w", "-D", *rule)
    assert order() == [first, *others]


def test_a_lost_instance_comes_back_as_the_same_member_while_the_others_go_on(lab):
    former = lab.newest("MasterB")
    put(lab, former, "before-the-loss")
    members = etcd(former)
    lab.stop(former.id)
    put(lab, lab.newest("MasterA"), "during-the-loss")
    lab.terminate(former.id)
    found = heir(lab, "MasterB", former)
    assert any("continued with the etcd data on the volume" in line for line in found.lines)
    assert etcd(found) == members
    assert {"before-the-loss", "during-the-loss"} <= names(lab, found, "configmaps")
    lab.until("the old Node to be forgotten", lambda: former.id not in names(lab, found, "nodes"))


def test_a_lost_volume_is_a_dead_member_that_is_replaced(lab):
    former = lab.newest("MasterC")
    members = etcd(former)
    url = f"https://{lab.cluster.slots[2].address}:2380"
    lab.terminate_and_wipe(former.id)
    found = heir(lab, "MasterC", former)
    after = etcd(found)
    assert sorted(after) == sorted(members)
    assert after[url] != members[url]
    assert {key: each for key, each in after.items() if key != url} == {
        key: each for key, each in members.items() if key != url
    }
    assert {"before-the-loss", "during-the-loss"} <= names(lab, found, "configmaps")


def test_the_cluster_is_set_back_to_a_snapshot_by_one_command(lab):
    put(lab, lab.newest("MasterA"), "before-the-snapshot")
    for master in masters(lab):  # what the timer does within a minute
        master.run("rm", "-f", "/var/lib/cfngen/backup.json")
        master.run("systemctl", "start", "cfngen-backup.service")
    put(lab, lab.newest("MasterA"), "after-the-snapshot")
    old = {each.id for each in masters(lab)}
    lab.operator("etcd", "restore", "--yes")
    assert not old & {each.id for each in masters(lab)}
    for master in masters(lab):
        assert len(etcd(master)) == len(MASTERS)
        known = names(lab, master, "configmaps")
        assert "before-the-snapshot" in known
        assert "after-the-snapshot" not in known


def test_an_update_rolls_one_master_after_another_and_the_api_answers_all_the_time(lab):
    old = {each.id for each in masters(lab)}
    with Watch(lab) as watch:
        stack = lab.update(kubernetesVersion=NEW)
        assert lab.settled(stack) == "UPDATE_COMPLETE", lab.story()
    assert watch.successes
    assert watch.failures == []
    new = masters(lab)
    assert not old & {each.id for each in new}
    rolled = sorted(span(stack, f"{group}AutoScalingGroup") for group in MASTERS)
    assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(rolled))

    def versions() -> set[str]:
        nodes = lab.kubectl(new[0], "get", "nodes")["items"]
        return {each["status"]["nodeInfo"]["kubeletVersion"] for each in nodes}

    # The Node of an instance that was terminated last goes a moment later.
    lab.until("the old Nodes to go", lambda: versions() == {f"v{NEW}"})
    assert all(calls(each, "kubeadm") for each in new)


def test_a_master_waits_while_etcd_needs_it_and_then_leaves_the_other_one_a_quorum(lab):
    first, failed, survivor = masters(lab)
    # A minute instead of five.
    first.run("sed", "-i", 's/"quorumWait": *[0-9]*/"quorumWait": 1/', "/opt/cfngen/role.json")
    first.run("systemctl", "restart", "cfngen-termination.service")
    lab.stop(failed.id)
    lab.account.call(
        "autoscaling",
        "terminate_instance_in_auto_scaling_group",
        InstanceId=first.id,
        ShouldDecrementDesiredCapacity=False,
    )
    said = "etcd has no quorum without it while these masters do not work: b"

    def told() -> str:
        return " ".join(first.task_lines("termination"))

    lab.until("the first master to wait", lambda: f"{said}; it waits up to 1 min" in told())
    put(lab, survivor, "while-one-waits")
    lab.until("the first master to go", lambda: "the lifecycle action was completed" in told())
    put(lab, survivor, "while-one-is-left")
    found = heir(lab, "MasterA", first)
    assert any("joined the cluster" in line for line in found.lines)
    lab.terminate(failed.id)
    assert any("joined the cluster" in line for line in heir(lab, "MasterB", failed).lines)
    assert len(etcd(survivor)) == len(MASTERS)
    assert {"while-one-waits", "while-one-is-left"} <= names(lab, lab.newest("MasterB"), "configmaps")

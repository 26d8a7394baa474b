"""Add-ons on masters: applied once, by one master, again when they change, and after any interruption."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from helm_cluster import Cluster, Master, release
from scripted_machine import ScriptedMachine

from cfngen.boot.machine import BootError, Pending
from cfngen.boot.master import addons
from cfngen.boot.state import Boot

MASTER, OTHER = "i-0000000000000000a", "i-0000000000000000b"
LATER = "2026-09-01T11:30:00Z"
ALPHA, BETA = release("alpha"), release("beta")
NETWORK = release("network", essential=True)


class PowerCutError(Exception):
    """The instance is gone; nothing of it runs any more."""


class Impatient(Master):
    """A master that tries everything once."""

    def wait(self, description: str, probe: Any, hint: str, seconds: float = 120, retry_on: Any = Pending) -> Any:
        return probe()

    def sleep(self, seconds: float) -> None:
        return

    @classmethod
    def apply_once(cls, cluster: Cluster, config: Boot) -> None:
        """Apply releases without a pause between the tries."""
        addons.apply(cls(cluster, MASTER), config)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def master(cluster: Cluster) -> Master:
    return cluster.master(MASTER)


def helm_runs(machine: ScriptedMachine) -> list[str]:
    return [command.split()[3] for command in machine.ran("helm upgrade")]


def test_releases_are_installed_in_order_and_noted(cluster: Cluster, master: Master) -> None:
    given = release("beta", version="2.1.0", values='{"replicas": 2}', namespace="shop")
    assert addons.apply(master, master.configuration(ALPHA, given)) == "applied 2, removed 0 of 2 releases"
    assert helm_runs(master) == ["alpha", "beta"]
    assert json.loads(cluster.helm["beta"]["values"]) == {"replicas": 2}
    assert cluster.helm["beta"]["namespace"] == "shop"
    note = cluster.notes()["beta"]
    assert (note["version"], note["status"], note["message"]) == ("2.1.0", "deployed", "")
    assert note["time"].startswith("2026-09-01T12:00")


def test_values_reach_helm_in_a_file_that_only_root_may_read(master: Master) -> None:
    addons.apply(master, master.configuration(release("alpha", values='{"password": "geheim"}')))
    assert not [command for command in master.commands if "geheim" in command]
    [path] = [path for path, text in master.files.items() if "geheim" in text]
    assert master.modes[path] == 0o600


def test_nothing_is_done_or_said_where_all_is_as_configured(cluster: Cluster, master: Master) -> None:
    addons.apply(master, master.configuration(ALPHA, BETA))
    again = cluster.master(OTHER)
    assert addons.apply(again, again.configuration(ALPHA, BETA)) == ""
    assert not again.ran("helm")


def test_only_what_changed_is_applied_again(cluster: Cluster, master: Master) -> None:
    addons.apply(master, master.configuration(ALPHA, BETA))
    master.commands.clear()
    addons.apply(master, master.configuration(ALPHA, release("beta", values='{"a": 1}')))
    assert helm_runs(master) == ["beta"]
    assert cluster.helm["beta"]["revision"] == 2


@pytest.mark.parametrize(
    "change",
    [
        {"chart": {**ALPHA["chart"], "sha256": hashlib.sha256(b"another archive").hexdigest()}},
        {"namespace": "elsewhere"},
        {"values": '{"a": 1}'},
        {"patches": [{"kind": "Deployment"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_changes_of_a_release_it_is_applied_again(
    cluster: Cluster, master: Master, change: dict[str, Any]
) -> None:
    addons.apply(master, master.configuration(ALPHA))
    master.web[ALPHA["chart"]["url"]] = "another archive" if "chart" in change else "archive of alpha"
    assert addons.apply(master, master.configuration({**ALPHA, **change})) == "applied 1, removed 0 of 1 releases"
    assert addons.apply(master, master.configuration({**ALPHA, **change})) == ""
    assert cluster.status() == {"alpha": "deployed"}


def test_release_that_vanished_is_removed(cluster: Cluster, master: Master) -> None:
    addons.apply(master, master.configuration(ALPHA, BETA))
    assert addons.apply(master, master.configuration(ALPHA)) == "applied 0, removed 1 of 1 releases"
    assert cluster.installed() == ["alpha"]
    assert list(cluster.notes()) == ["alpha"]


def test_release_that_cannot_be_removed_is_noted_so_and_tried_again(cluster: Cluster, master: Master) -> None:
    addons.apply(master, master.configuration(ALPHA, BETA))
    cluster.staying["beta"] = "timed out waiting for the condition"
    with pytest.raises(
        BootError, match=r"^beta: `helm uninstall beta .* timed out waiting for the condition"
    ) as caught:
        addons.apply(master, master.configuration(ALPHA))
    assert "get configmap cfngen-addons" in caught.value.hint
    assert cluster.status() == {"alpha": "deployed", "beta": "failed to uninstall"}
    assert "timed out" in cluster.notes()["beta"]["message"]
    assert cluster.installed() == ["alpha"], "the others are left alone"
    cluster.staying.clear()
    assert addons.apply(master, master.configuration(ALPHA)) == "applied 0, removed 1 of 1 releases"
    assert cluster.status() == {"alpha": "deployed"}
    assert addons.apply(master, master.configuration(ALPHA)) == ""


def test_release_moves_to_another_namespace(cluster: Cluster, master: Master) -> None:
    addons.apply(master, master.configuration(ALPHA))
    addons.apply(master, master.configuration(release("alpha", namespace="elsewhere")))
    assert master.ran("helm uninstall alpha --namespace kube-system")
    assert cluster.helm["alpha"]["namespace"] == "elsewhere"


def test_patches_are_laid_over_what_the_chart_made(cluster: Cluster, master: Master) -> None:
    patch = {"kind": "Deployment", "metadata": {"name": "alpha"}, "spec": {"hostNetwork": True}}
    addons.apply(master, master.configuration(release("alpha", patches=[patch])))
    assert cluster.applied == [patch]
    applied = master.commands.index(master.ran("kubectl .* --field-manager=cfngen ")[0])
    assert applied > master.commands.index(master.ran("helm upgrade")[0])


def test_resource_definitions_are_brought_to_the_charts_version(cluster: Cluster, master: Master) -> None:
    cluster.definitions["alpha"] = "kind: CustomResourceDefinition"
    addons.apply(master, master.configuration(ALPHA, BETA))
    assert cluster.applied == ["kind: CustomResourceDefinition"]
    assert all("--skip-crds" in command for command in master.ran("helm upgrade"))


def test_note_of_a_release_says_how_it_stands(cluster: Cluster, master: Master) -> None:
    seen = []
    cluster.during = lambda machine, name: seen.append(cluster.notes()[name])
    addons.apply(master, master.configuration(ALPHA))
    applied = addons.digest(ALPHA)
    note = {"version": "1.0.0", "namespace": "kube-system", "hash": applied, "time": "2026-09-01T12:00:00Z"}
    assert seen == [{**note, "status": "applying", "message": ""}]
    assert cluster.notes()["alpha"] == {**note, "status": "deployed", "message": ""}
    cluster.broken["beta"] = "x" * 2000
    with pytest.raises(BootError):
        Impatient.apply_once(cluster, master.configuration(ALPHA, BETA))
    assert cluster.notes()["beta"]["status"] == "failed"
    assert len(cluster.notes()["beta"]["message"]) == 1000
    assert "exited with 1: xxx" in cluster.notes()["beta"]["message"]


def test_failure_of_one_does_not_stop_the_others(cluster: Cluster, master: Master) -> None:
    cluster.broken["alpha"] = "no matches for kind Foo"
    with pytest.raises(BootError, match=r"alpha: .*no matches for kind Foo") as caught:
        addons.apply(master, master.configuration(ALPHA, BETA))
    assert "it is retried within the hour" in caught.value.hint
    assert cluster.status() == {"alpha": "failed", "beta": "deployed"}
    assert "no matches for kind Foo" in cluster.notes()["alpha"]["message"]


def test_what_has_failed_is_tried_again_after_all_others(cluster: Cluster, master: Master) -> None:
    cluster.broken["alpha"] = "timed out waiting for the condition"
    with pytest.raises(BootError):
        addons.apply(master, master.configuration(ALPHA))
    master.commands.clear()
    cluster.broken.clear()
    addons.apply(master, master.configuration(ALPHA, BETA))
    assert helm_runs(master) == ["beta", "alpha"]


def test_failure_is_tried_again_for_a_quarter_of_an_hour(cluster: Cluster, master: Master) -> None:
    cluster.broken["alpha"] = "no"
    begun: list[float] = []
    cluster.during = lambda machine, name: begun.append(cluster.passed)
    with pytest.raises(BootError) as caught:
        addons.apply(master, master.configuration(ALPHA))
    assert begun == [0, 60, 180, 420, 900]
    assert caught.value.hint.endswith("configmap cfngen-addons -o yaml`; it is retried within the hour")


def test_failure_that_passes_is_got_over(cluster: Cluster, master: Master) -> None:
    # A hook's pod that waits for the first node.
    cluster.broken["alpha"] = "timed out waiting for the condition"

    def joined(machine: ScriptedMachine, name: str) -> None:
        if machine.passed > 150:
            cluster.broken.clear()

    cluster.during = joined
    assert addons.apply(master, master.configuration(ALPHA)) == "applied 1, removed 0 of 1 releases"
    assert cluster.status() == {"alpha": "deployed"}


def test_chart_that_cannot_be_had_holds_up_no_other(cluster: Cluster, master: Master) -> None:
    del master.web["https://charts.example.com/alpha.tgz"]
    with pytest.raises(BootError, match=r"alpha: .*404"):
        addons.apply(master, master.configuration(ALPHA, BETA))
    assert cluster.status() == {"alpha": "failed", "beta": "deployed"}
    assert "alpha" not in cluster.helm


def test_chart_with_another_digest_is_never_installed(cluster: Cluster, master: Master) -> None:
    master.web["https://charts.example.com/alpha.tgz"] = "something else"
    with pytest.raises(BootError, match="another SHA-256"):
        addons.apply(master, master.configuration(ALPHA))
    assert not cluster.helm


def test_interrupted_operation_is_taken_up_at_once(cluster: Cluster, master: Master) -> None:
    def cut(machine: ScriptedMachine, name: str) -> None:
        raise PowerCutError

    cluster.during = cut
    with pytest.raises(PowerCutError):
        addons.apply(master, master.configuration(ALPHA))
    assert cluster.helm["alpha"]["status"] == "pending-install"
    cluster.during = lambda machine, name: None
    # The same master again, after a reboot.
    rebooted = cluster.master(MASTER)
    addons.apply(rebooted, rebooted.configuration(ALPHA))
    assert cluster.installed() == ["alpha"]
    assert rebooted.passed < 60


def test_somebody_elses_operation_is_respected_for_a_quarter_of_an_hour(cluster: Cluster, master: Master) -> None:
    cluster.helm["alpha"] = {"status": "pending-upgrade", "revision": 3, "changed": 0.0}
    with pytest.raises(BootError, match=r"another Helm operation \(pending-upgrade\) on alpha started \d+ s ago"):
        addons.essentials(master, master.configuration(release("alpha", essential=True)))
    assert cluster.helm["alpha"]["revision"] == 3
    cluster.passed = 1000
    addons.apply(master, master.configuration(ALPHA))
    assert cluster.installed() == ["alpha"]


@pytest.mark.parametrize(("age", "taken"), [(899, False), (900, True)])
def test_somebody_elses_operation_counts_from_when_its_secret_was_changed_last(
    cluster: Cluster, master: Master, age: int, taken: bool
) -> None:
    cluster.passed = 5000
    begun = 5000.0 - age
    cluster.helm["alpha"] = {"status": "uninstalling", "revision": 3, "changed": 0.0, "modified": begun}
    if taken:
        addons.essentials(master, master.configuration(release("alpha", essential=True)))
        assert cluster.installed() == ["alpha"]
        return
    machine = Impatient(cluster, MASTER)
    with pytest.raises(BootError, match=r"another Helm operation \(uninstalling\) on alpha started 899 s ago"):
        addons.essentials(machine, machine.configuration(release("alpha", essential=True)))


def test_interrupted_removal_is_finished_before_installing_again(cluster: Cluster, master: Master) -> None:
    cluster.helm["alpha"] = {"status": "uninstalling", "revision": 3, "changed": -1000.0}
    addons.apply(master, master.configuration(ALPHA))
    assert master.ran("helm uninstall alpha")
    assert cluster.installed() == ["alpha"]


def test_two_masters_never_run_helm_at_once(cluster: Cluster, master: Master) -> None:
    other = cluster.master(OTHER)
    said = []

    def meanwhile(machine: ScriptedMachine, name: str) -> None:
        if machine is master and name == "alpha":
            # While the one installs, the other's timer fires; it waits, and finds little left to do.
            cluster.during = lambda machine, name: None
            said.append(addons._try_releases(other, other.configuration(ALPHA, BETA))[0])

    cluster.during = meanwhile
    addons.apply(master, master.configuration(ALPHA, BETA))
    assert said == [f"{MASTER} has held the lease since 2026-09-01T12:00:00Z"]
    assert helm_runs(other) == []
    assert not other.ran("kubectl .* --field-manager=cfngen-addons"), "notes are the lock holder's"
    assert cluster.installed() == ["alpha", "beta"]


def test_lock_is_renewed_with_each_release_however_long_all_of_them_take(cluster: Cluster, master: Master) -> None:
    other = cluster.master(OTHER)
    seen = []

    def slowly(machine: ScriptedMachine, name: str) -> None:
        machine.sleep(400)
        if machine is master:
            seen.append(addons._try_releases(other, other.configuration(ALPHA, BETA))[0])

    cluster.during = slowly
    addons.apply(master, master.configuration(ALPHA, BETA))
    assert seen == [f"{MASTER} has held the lease since 2026-09-01T12:00:00Z"] * 2
    assert cluster.passed == 800


def test_what_another_master_did_before_the_lock_was_had_is_not_done_again(cluster: Cluster, master: Master) -> None:
    other, download = cluster.master(OTHER), master.download

    def slowly(url: str, path: str, sha256: str) -> None:
        download(url, path, sha256)
        addons.apply(other, other.configuration(ALPHA))

    master.download = slowly  # type: ignore[method-assign]
    assert addons.apply(master, master.configuration(ALPHA)) == "applied 0, removed 0 of 1 releases"
    assert helm_runs(master) == []
    assert cluster.helm["alpha"]["revision"] == 1


def test_lock_of_a_master_that_died_is_taken_over(cluster: Cluster, master: Master) -> None:
    def cut(machine: ScriptedMachine, name: str) -> None:
        if machine is master:
            raise PowerCutError

    cluster.during = cut
    # It cannot give the lock back either.
    master.run = _dying(master)  # type: ignore[method-assign]
    with pytest.raises(PowerCutError):
        addons.apply(master, master.configuration(ALPHA))
    other = cluster.master(OTHER)
    begin = cluster.passed = cluster.passed + 7
    assert addons.apply(other, other.configuration(ALPHA)) == "applied 1, removed 0 of 1 releases"
    assert 400 < cluster.passed - begin < 900
    assert cluster.installed() == ["alpha"]


def _dying(machine: Master):  # type: ignore[no-untyped-def]
    run = machine.run

    def until_helm_ran(*command: str, **options: object) -> tuple[int, str]:
        if machine.ran("helm upgrade"):
            raise PowerCutError
        return run(*command, **options)  # type: ignore[arg-type]

    return until_helm_ran


def test_lock_is_free_after_a_failure(cluster: Cluster, master: Master) -> None:
    cluster.broken["alpha"] = "no"
    with pytest.raises(BootError):
        addons.apply(master, master.configuration(ALPHA))
    assert cluster.objects["lease", "cfngen-addons"]["spec"] == {}


def test_old_master_does_not_undo_what_a_new_one_did(cluster: Cluster, master: Master) -> None:
    # While masters are rolled, some still have the former configuration.
    addons.apply(master, master.configuration(ALPHA))
    new = cluster.master(OTHER, LATER)
    addons.apply(new, new.configuration(release("alpha", version="2.0.0", values='{"new": 1}'), BETA))
    assert addons.apply(master, master.configuration(ALPHA)) == ""
    assert json.loads(cluster.helm["alpha"]["values"]) == {"new": 1}
    assert cluster.installed() == ["alpha", "beta"]


def test_youngest_master_vouches_for_what_others_do_with_the_same_configuration(
    cluster: Cluster, master: Master
) -> None:
    new = cluster.master(OTHER, LATER)
    addons.apply(new, new.configuration(ALPHA))
    del cluster.objects["configmap", "cfngen-addons"]["data"]["alpha"]
    addons.apply(master, master.configuration(ALPHA))
    between = cluster.master("i-0000000000000000c", "2026-09-01T11:15:00Z")
    assert addons.apply(between, between.configuration(BETA)) == ""
    assert cluster.installed() == ["alpha"]


def test_rolling_back_brings_the_former_releases_back(cluster: Cluster, master: Master) -> None:
    new = cluster.master(OTHER, LATER)
    addons.apply(new, new.configuration(release("alpha", values='{"new": 1}'), BETA))
    back = cluster.master("i-0000000000000000c", "2026-09-01T11:45:00Z")
    addons.apply(back, back.configuration(ALPHA))
    assert cluster.installed() == ["alpha"]
    assert json.loads(cluster.helm["alpha"]["values"]) == {}


def test_boot_waits_for_essentials_and_leaves_the_rest_to_the_timer(cluster: Cluster, master: Master) -> None:
    said = addons.essentials(master, master.configuration(NETWORK, ALPHA))
    assert said == "the cloud controller manager and network running; 1 charts follow"
    assert cluster.installed() == ["network"]
    assert cluster.applied[0]["kind"] == "DaemonSet"
    assert master.ran("systemctl enable --now cfngen-addons.timer")
    assert master.ran("systemctl start --no-block cfngen-addons.service")


def test_boot_without_essential_charts_needs_no_helm(cluster: Cluster, master: Master) -> None:
    del cluster.nodes[MASTER]["status"]
    assert addons.essentials(master, master.configuration(ALPHA)).endswith("running; 1 charts follow")
    assert not master.ran("helm")


def test_boot_never_removes_add_ons(cluster: Cluster, master: Master) -> None:
    addons.apply(master, master.configuration(NETWORK, ALPHA, BETA))
    addons.essentials(master, master.configuration(release("network", essential=True, values='{"a": 1}'), ALPHA))
    assert set(cluster.installed()) == {"alpha", "beta", "network"}


def test_master_does_not_work_before_the_cloud_controller_does(cluster: Cluster, master: Master) -> None:
    tainted = [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}]
    cluster.nodes[MASTER]["spec"]["taints"] = tainted
    with pytest.raises(
        BootError, match="for the cloud controller manager: the node still has the taint node"
    ) as caught:
        addons.essentials(master, master.configuration())
    assert "logs daemonset/cloud-controller-manager" in caught.value.hint
    cluster.nodes[MASTER]["spec"]["taints"] = [{"key": "node-role.kubernetes.io/control-plane"}]
    assert addons.essentials(master, master.configuration()).startswith("the cloud controller manager running")


def test_master_does_not_work_before_its_network_does(cluster: Cluster, master: Master) -> None:
    ready = {"type": "Ready", "status": "False", "message": "cni plugin not initialized"}
    cluster.nodes[MASTER]["status"]["conditions"] = [ready]
    with pytest.raises(BootError, match="the node is not Ready: cni plugin not initialized"):
        addons.essentials(master, master.configuration(NETWORK))


def test_boot_waits_while_another_master_installs_the_essentials(cluster: Cluster, master: Master) -> None:
    other = cluster.master(OTHER)

    def meanwhile(machine: ScriptedMachine, name: str) -> None:
        cluster.during = lambda machine, name: None
        assert addons._try_releases(other, other.configuration(NETWORK))[0].startswith(MASTER)

    cluster.during = meanwhile
    addons.essentials(master, master.configuration(NETWORK))
    addons.essentials(other, other.configuration(NETWORK))
    assert helm_runs(other) == []


def test_manifests_are_tried_again_and_go_through_standard_input(cluster: Cluster) -> None:
    machine, answers = ScriptedMachine(), [(1, "the server is currently unable to handle the request"), (0, "")]
    machine.on("kubectl .* apply", lambda _: answers.pop(0))
    machine.on("kubectl .* get node ", (0, json.dumps({"spec": {}})))
    config = cluster.master(MASTER).configuration()
    assert addons.essentials(machine, config).startswith("the cloud controller manager running")
    command = machine.ran("kubectl .* apply")[-1]
    assert command.endswith("apply --server-side --force-conflicts -f -")
    assert json.loads(machine.stdin[command])["kind"] == "DaemonSet"

"""Leaf certificates: looked at each day, renewed in time, read by the control plane, seen by operators."""

from __future__ import annotations

import json

import pytest
from boots import boot_of
from masters import EXPIRES, MANIFESTS, Master
from scripted_machine import PowerCut
from slots import boot

from cfngen.boot.machine import BootError
from cfngen.boot.master import certificate_expiry, certificates

DAY = 24 * 3600
APPLY = "kubectl .* apply --server-side"


@pytest.fixture
def master() -> Master:
    """A master that has just been set up; its certificates are good for a year."""
    found = Master()
    boot(found)
    assert certificates.schedule(found, boot_of(found.config)) == f"valid until {EXPIRES}"
    found.commands.clear()
    return found


def restarted(master: Master) -> bool:
    return bool(master.ran("kubeadm init phase etcd local") and master.ran("kubeadm init phase control-plane all"))


def test_timer_is_started_at_boot_and_nothing_is_restarted() -> None:
    master = Master()
    boot(master)
    before = len(master.ran("kubeadm init phase control-plane"))
    certificates.schedule(master, boot_of(master.config))
    assert master.commands[-1] == "systemctl enable --now cfngen-certificates.timer"
    assert len(master.ran("kubeadm init phase control-plane")) == before


def test_certificates_with_much_of_their_life_left_are_left_alone(master: Master) -> None:
    master.passed = 250 * DAY
    assert certificates.renew(master, boot_of(master.config)) == f"valid until {EXPIRES}"
    assert master.ran("kubeadm certs renew") == []
    assert not restarted(master)


def test_certificates_near_their_end_are_renewed_and_read(master: Master) -> None:
    master.passed = 260 * DAY
    assert (
        certificates.renew(master, boot_of(master.config))
        == f"valid until 2028-05-18T12:00:00Z, renewed (before: {EXPIRES})"
    )
    assert len(master.ran("kubeadm certs renew all")) == 1
    assert restarted(master)
    for component in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"):
        patch = json.loads(master.files[f"/opt/cfngen/patches/{component}+merge.json"])
        assert patch == {"metadata": {"annotations": {"cfngen/certificates": "2028-05-18T12:00:00Z"}}}
    master.commands.clear()
    certificates.renew(master, boot_of(master.config))
    assert not restarted(master)


def test_renewal_that_was_cut_off_before_the_control_plane_read_it_is_finished(master: Master) -> None:
    master.passed = 260 * DAY

    def cut(command: str) -> tuple[int, str]:
        raise PowerCut

    master.on("kubeadm init phase etcd local", cut)
    with pytest.raises(PowerCut):
        certificates.renew(master, boot_of(master.config))
    master.answers.pop(0)
    master.commands.clear()
    certificates.renew(master, boot_of(master.config))
    assert master.ran("kubeadm certs renew") == []
    assert restarted(master)


def test_control_plane_that_does_not_come_back_is_not_taken_for_renewed(master: Master) -> None:
    master.passed = 260 * DAY
    master.config["deadline"] = master.passed + 600
    master.on("kubectl .* get --server", (1, ""))
    with pytest.raises(BootError, match="for the API server"):
        certificates.renew(master, boot_of(master.config))
    master.answers.pop(0)
    master.commands.clear()
    assert ", renewed" in certificates.renew(master, boot_of(master.config))
    assert restarted(master)


def test_renewal_without_the_note_of_what_was_last_read_is_read_all_the_same(master: Master) -> None:
    """The first renewal by a program of this version on an instance that an older one has set up."""
    master.remove(certificate_expiry.LOADED_EXPIRY_FILE)
    master.passed = 260 * DAY
    assert (
        certificates.renew(master, boot_of(master.config))
        == f"valid until 2028-05-18T12:00:00Z, renewed (before: {EXPIRES})"
    )
    assert restarted(master)
    assert master.files[certificate_expiry.LOADED_EXPIRY_FILE] == "2028-05-18T12:00:00Z"


def test_instance_without_the_note_whose_certificates_are_good_restarts_nothing(master: Master) -> None:
    master.remove(certificate_expiry.LOADED_EXPIRY_FILE)
    assert certificates.renew(master, boot_of(master.config)) == f"valid until {EXPIRES}"
    assert not restarted(master)
    assert master.files[certificate_expiry.LOADED_EXPIRY_FILE] == EXPIRES


def test_renewal_that_renews_nothing_fails(master: Master) -> None:
    master.passed = 260 * DAY
    master.on("kubeadm certs renew all", (0, ""))
    with pytest.raises(BootError, match="kubeadm did not renew them"):
        certificates.renew(master, boot_of(master.config))


def test_expiry_of_each_slot_is_written_where_operators_see_it(master: Master) -> None:
    certificates.renew(master, boot_of(master.config))
    [command] = master.ran(APPLY)
    assert "--field-manager=cfngen-a" in command, "each slot owns its line of the ConfigMap and no other"
    item = json.loads(master.stdin[command])
    assert item["metadata"] == {"name": "cfngen-certificates", "namespace": "kube-system"}
    assert {slot: json.loads(text) for slot, text in item["data"].items()} == {
        "a": {"expires": EXPIRES, "instance": master.name}
    }


def test_api_server_that_has_a_bad_moment_hears_of_the_expiry_all_the_same(master: Master) -> None:
    answers = [(1, "etcdserver: leader changed")] * 2
    master.on("kubectl .* --field-manager=cfngen-a", lambda text: answers.pop(0) if answers else master._note(text))
    assert certificates.renew(master, boot_of(master.config)) == f"valid until {master.expires}"
    assert answers == []
    master.on("kubectl .* --field-manager=cfngen-a", (1, "etcdserver: leader changed"))
    with pytest.raises(BootError, match=r"for ConfigMap cfngen-certificates: .* leader changed") as caught:
        certificates.renew(master, boot_of(master.config))
    assert caught.value.hint == "check that the API server is healthy"


@pytest.mark.parametrize(
    ("slot", "left", "due"),
    [("a", 9_460_800, False), ("a", 9_460_799, True), ("b", 8_830_081, False), ("b", 8_830_078, True)],
)
def test_certificates_are_due_with_thirty_percent_of_a_year_left_and_two_less_for_each_slot(
    master: Master, slot: str, left: int, due: bool
) -> None:
    master.config["facts"]["slot"] = slot
    assert certificate_expiry.is_renewal_due(master, boot_of(master.config), master.time(left)) is due


def test_manifests_stay_in_place_while_certificates_are_renewed(master: Master) -> None:
    master.passed = 260 * DAY
    there = {path for path in master.files if path.startswith(MANIFESTS)}
    for cut in range(40):
        master.fuse = cut
        try:
            certificates.renew(master, boot_of(master.config))
        except PowerCut:
            assert there <= set(master.files)


@pytest.mark.parametrize("days", [260, 400], ids=["they end soon", "they have ended"])
def test_instance_that_was_off_for_long_makes_its_certificates_anew(master: Master, days: int) -> None:
    master.reboot()
    master.passed = days * DAY
    master.commands.clear()
    assert boot(master)[0].startswith("resume: ")
    # Pods with the old certificates would go on running where no manifest changes.
    ended = master.commands.index("systemctl stop kubepods.slice")
    assert ended < master.commands.index("kubeadm init phase certs all --config /opt/cfngen/kubeadm.yaml")
    assert master.expires == master.time(365 * DAY)
    master.commands.clear()
    certificates.schedule(master, boot_of(master.config))
    assert not restarted(master), "the control plane has only just read them"
    master.reboot()
    assert boot(master)[0].startswith("steady: ")


@pytest.mark.parametrize(("days", "renewed"), [(20, False), (22, True)])
def test_shorter_life_of_the_users_choice_is_measured_by_itself(master: Master, days: int, renewed: bool) -> None:
    master.config["kubeadm"][1]["certificateValidityPeriod"] = "720h"
    master.expires = master.time(30 * DAY)
    certificates.renew(master, boot_of(master.config))
    master.passed = days * DAY
    master.commands.clear()
    certificates.renew(master, boot_of(master.config))
    assert bool(master.ran("kubeadm certs renew")) is renewed


def test_masters_that_were_made_together_do_not_restart_their_etcd_in_the_same_night(master: Master) -> None:
    # 30 % of a year are 109.5 days, and 2 % a week: slot a is due on day 256, slot b on day 263, slot c on day 271.
    expected = {"a": [260, 265, 272], "b": [265, 272], "c": [272]}
    for slot, days in expected.items():
        master.config["facts"]["slot"] = slot
        found = []
        for day in (250, 260, 265, 272):
            master.passed = day * DAY
            found += [day] if certificate_expiry.is_renewal_due(master, boot_of(master.config), EXPIRES) else []
        assert found == days

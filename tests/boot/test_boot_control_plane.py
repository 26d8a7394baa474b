"""How a master boots: every decision, every order of phases, every place where it may be cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest
from boots import boot_of
from masters import BUNDLE, CA_SECRET, INSTANCE, Master, configuration
from scripted_machine import FIRST_VERSION, ScriptedMachine

from cfngen.boot.host import kubelet
from cfngen.boot.machine import HOME, BootError
from cfngen.boot.master import certificate_authorities, control_plane, encryption
from cfngen.boot.master.certificate_authorities import INITIALISED_AT, KUBEADM_CONFIG, PKI, RESTORED_REQUEST_ID
from cfngen.boot.master.etcd_data import DATABASE_FILE

MARKED = {**BUNDLE, INITIALISED_AT: "2026-08-01T00:00:00Z"}
ETCDCTL = (
    "etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt "
    "--cert=/etc/kubernetes/pki/etcd/healthcheck-client.crt --key=/etc/kubernetes/pki/etcd/healthcheck-client.key "
    "--dial-timeout=5s "
)
KUBECTL = "kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout=30s "
HEALTHY = [
    KUBECTL + "get --server=https://172.20.0.9:443 --raw /readyz",
    ETCDCTL + "endpoint health --command-timeout=5s --write-out=json",
]
START = [
    f"kubeadm init phase certs all --config {KUBEADM_CONFIG}",
    f"kubeadm init phase kubeconfig all --config {KUBEADM_CONFIG}",
    f"kubeadm init phase etcd local --config {KUBEADM_CONFIG}",
    f"kubeadm init phase control-plane all --config {KUBEADM_CONFIG}",
    f"kubeadm init phase kubelet-start --config {KUBEADM_CONFIG}",
    *HEALTHY,
    f"kubeadm init phase upload-config kubeadm --config {KUBEADM_CONFIG}",
    f"{KUBECTL}get node {INSTANCE}",
    f"kubeadm init phase upload-config all --config {KUBEADM_CONFIG}",
    f"kubeadm init phase mark-control-plane --config {KUBEADM_CONFIG}",
    f"kubeadm init phase bootstrap-token --skip-token-print --config {KUBEADM_CONFIG}",
    f"kubeadm init phase kubelet-finalize all --config {KUBEADM_CONFIG}",
    f"{KUBECTL}get nodes -l node-role.kubernetes.io/control-plane -o json",
    f"{KUBECTL}get nodes -l node-role.kubernetes.io/control-plane -o json",
    f"kubeadm init phase addon all --config {KUBEADM_CONFIG}",
    ETCDCTL + "member list --write-out=json",
]
# A cluster that was there before may have been upgraded by another master meanwhile.
LOOK = (
    "kubectl --kubeconfig /etc/kubernetes/super-admin.conf --request-timeout=30s get configmap kubeadm-config "
    "--namespace=kube-system --ignore-not-found -o json"
)
RESUME = [*START[:7], LOOK, *START[7:]]


def members(machine: Master) -> str:
    """What the volume of a cluster's only master holds."""
    return machine.world.etcd.restored("ours", ["172.20.0.9"], "172.20.0.9")


def boot(machine: Master) -> list[str]:
    """Run both steps of the control plane; return what they report."""
    machine.config = configuration()
    boot = boot_of(machine.config)
    return [control_plane.prepare(machine, boot), control_plane.start(machine, boot)]


@pytest.mark.parametrize("secret", ["", "{}"], ids=["no version", "empty object"])
def test_new_cluster(secret: str) -> None:
    machine = Master(**({CA_SECRET: secret} if secret else {}))
    assert boot(machine) == ["init: created the certificate authorities", "initialised a new cluster"]
    preflight = machine.commands.index(f"kubeadm init phase preflight --config {KUBEADM_CONFIG}")
    assert machine.commands[preflight + 1 :] == START
    bundle = json.loads(machine.secrets.text(CA_SECRET))
    assert {name: bundle[name] for name in certificate_authorities.CA_FILES} == {
        name: machine.files[PKI + name] for name in certificate_authorities.CA_FILES
    }
    assert bundle[INITIALISED_AT] == "2026-09-01T12:00:00Z"


def test_replaced_master_resumes_the_cluster_of_the_volume() -> None:
    machine = Master(**{CA_SECRET: json.dumps(MARKED)})
    machine.files[DATABASE_FILE] = members(machine)
    assert boot(machine) == [
        "resume: installed the certificate authorities of the secret",
        "continued with the etcd data on the volume",
    ]
    assert machine.commands == ["systemctl stop kubelet", *RESUME]
    assert machine.files[PKI + "ca.key"] == "stored"
    assert machine.modes[PKI + "ca.key"] == 0o600
    assert machine.files[PKI + "apiserver.crt"] == "signed by stored"
    kept = json.loads(machine.secrets.text(CA_SECRET))
    assert kept.pop(encryption.KEY_NAME), "a bundle of an older program gets a key to encrypt with"
    assert kept == MARKED


def test_reboot_of_the_same_instance_only_looks() -> None:
    machine = Master()
    boot(machine)
    machine.reboot()
    machine.commands.clear()
    assert boot(machine) == ["steady: certificate authorities in place", "the API server and etcd are healthy"]
    look = f"kubeadm certs check-expiration -o json --config {KUBEADM_CONFIG}"
    assert machine.commands == [look, "systemctl start kubelet", *HEALTHY]


def test_changed_authorities_bring_new_certificates_at_the_next_boot() -> None:
    machine = Master()
    boot(machine)
    machine.secrets.put(CA_SECRET, json.dumps({**MARKED, "ca.key": "another"}))
    machine.commands.clear()
    assert boot(machine) == [
        "resume: installed the certificate authorities of the secret",
        "continued with the etcd data on the volume",
    ]
    assert machine.files[PKI + "apiserver.crt"] == "signed by another"


def test_what_etcd_never_finished_is_out_of_the_way_of_the_next_attempt() -> None:
    machine = Master()
    machine.files["/mnt/master/etcd/member/wal/0.tmp"] = "begun"
    assert boot(machine)[1] == "initialised a new cluster"
    assert machine.files["/mnt/master/etcd.unfinished/member/wal/0.tmp"] == "begun"


def test_image_made_of_a_master_is_not_taken_for_the_master() -> None:
    machine = Master(**{CA_SECRET: json.dumps(MARKED)})
    machine.files.update(
        {DATABASE_FILE: members(machine), kubelet.SET_UP_FILE: "i-0fedcba9876543210", kubelet.KUBELET_CONF: "its"}
    )
    machine.files.update({PKI + "ca.key": "of another cluster", PKI + "apiserver.crt": "of another cluster"})
    machine.files["/var/lib/kubelet/pki/kubelet-client-current.pem"] = "its"
    assert boot(machine)[0] == "resume: installed the certificate authorities of the secret"
    assert machine.files[kubelet.KUBELET_CONF] == "made anew"
    assert machine.files[PKI + "apiserver.crt"] == "signed by stored"
    assert "/var/lib/kubelet/pki/kubelet-client-current.pem" not in machine.files


def test_blank_volume_never_becomes_a_second_cluster() -> None:
    machine = Master(**{CA_SECRET: json.dumps(MARKED)})
    with pytest.raises(BootError, match="vol-1 is blank, but the cluster exists since 2026-08-01T00:00:00Z") as caught:
        boot(machine)
    assert caught.value.hint == (
        "run `cfngen etcd restore latest` (in the folder of the cluster file), or restore the volume from one of its "
        "snapshots; or, to start again with an empty cluster, remove initialised from secret arn:ca and reboot"
    )
    assert machine.ran("kubeadm") == []
    assert json.loads(machine.secrets.text(CA_SECRET)) == MARKED


def test_beginning_again_with_nothing_is_a_decision_of_the_operator_and_works() -> None:
    machine = Master(**{CA_SECRET: json.dumps(MARKED)})
    with pytest.raises(BootError):
        boot(machine)
    machine.secrets.put(CA_SECRET, json.dumps(BUNDLE))
    assert boot(machine) == ["init: certificate authorities in place", "initialised a new cluster"]
    assert machine.files[PKI + "ca.key"] == "stored"
    assert json.loads(machine.secrets.text(CA_SECRET))[INITIALISED_AT] == "2026-09-01T12:00:00Z"


def test_volume_of_a_cluster_whose_authorities_are_lost_is_not_touched() -> None:
    machine = Master()
    machine.files[DATABASE_FILE] = members(machine)
    with pytest.raises(BootError, match="vol-1 contains a cluster's data, but secret arn:ca is empty") as caught:
        boot(machine)
    assert caught.value.hint == "store the secret's previous value (AWSPREVIOUS) as a new version"
    assert machine.ran("kubeadm") == []
    assert machine.secrets.text(CA_SECRET) == ""


def test_incomplete_bundle_is_never_overwritten() -> None:
    machine = Master(**{CA_SECRET: '{"ca.crt": "mine"}'})
    with pytest.raises(BootError, match=r"secret arn:ca lacks ca.key, front-proxy-ca.crt"):
        boot(machine)
    assert machine.secrets.text(CA_SECRET) == '{"ca.crt": "mine"}'


def test_authorities_supplied_beforehand_are_used() -> None:
    machine = Master(**{CA_SECRET: json.dumps(BUNDLE)})
    assert boot(machine)[0] == "init: installed the certificate authorities of the secret"
    assert machine.files[PKI + "ca.key"] == "stored"


def test_second_writer_takes_the_first_ones_authorities() -> None:
    machine = Master()
    read = machine.secrets.get

    def overtaken(SecretId: str) -> dict[str, str]:  # noqa: N803
        answer = read(SecretId)
        machine.secrets.versions.setdefault(SecretId, [(FIRST_VERSION, json.dumps(BUNDLE))])
        return answer

    machine.cloud["secretsmanager.get_secret_value"] = overtaken
    original = machine.secrets.put
    machine.cloud["secretsmanager.put_secret_value"] = lambda **arguments: (
        {"Error": {"Code": "ResourceExistsException", "Message": ""}}
        if json.loads(arguments["SecretString"])["ca.key"] != "stored"
        else original(**arguments)
    )
    assert boot(machine)[0] == "init: installed the certificate authorities of the secret"
    assert machine.files[PKI + "ca.key"] == "stored"
    assert machine.files[PKI + "apiserver.crt"] == "signed by stored"


def test_two_writers_of_one_version_get_the_same_token_and_so_only_one_wins() -> None:
    machine, boot = Master(), boot_of(configuration())
    boot.secret_version = FIRST_VERSION
    certificate_authorities.store(machine, boot, BUNDLE)
    boot.secret_version = FIRST_VERSION
    other = {**BUNDLE, "ca.key": "another"}
    assert certificate_authorities.store(machine, boot, other) == BUNDLE


def meddle(machine: Master, times: int) -> list[str]:
    """Let another master write the secret just before this one does, some times; return what it has written."""
    original, written = machine.secrets.put, []

    def put(**arguments: str) -> dict[str, Any]:
        if len(written) < times:
            written.append(f"note {len(written)}")
            bundle = json.loads(machine.secrets.text(CA_SECRET))
            # As its token follows from what it has read, it is the one that this master's follows from.
            token = arguments["ClientRequestToken"]
            original(CA_SECRET, json.dumps({**bundle, written[-1]: "of another master"}), token)
        return original(**arguments)

    machine.cloud["secretsmanager.put_secret_value"] = put
    return written


@pytest.mark.parametrize("times", [0, 1, 2])
def test_master_that_was_overtaken_adds_to_what_the_other_one_wrote(times: int) -> None:
    machine, boot = Master(**{CA_SECRET: json.dumps(BUNDLE)}), boot_of(configuration())
    written = meddle(machine, times)
    certificate_authorities.mark_initialised(machine, boot, "restored-1")
    bundle = json.loads(machine.secrets.text(CA_SECRET))
    assert (bundle[INITIALISED_AT], bundle[RESTORED_REQUEST_ID]) == (machine.time(), "restored-1")
    assert {bundle[note] for note in written} <= {"of another master"}
    assert {name: bundle[name] for name in BUNDLE} == BUNDLE
    assert len(written) == times


def test_key_of_encryption_is_that_of_the_master_that_was_faster() -> None:
    machine, boot = Master(**{CA_SECRET: json.dumps(BUNDLE)}), boot_of(configuration())
    certificate_authorities.load(machine, boot)
    meddle(machine, 2)
    bundle = certificate_authorities.add_encryption_key(machine, boot, dict(BUNDLE))
    assert bundle == json.loads(machine.secrets.text(CA_SECRET))
    assert bundle[encryption.KEY_NAME]
    assert bundle["note 1"]


def test_secret_that_keeps_changing_ends_the_boot_with_what_to_look_at() -> None:
    machine, boot = Master(**{CA_SECRET: json.dumps(BUNDLE)}), boot_of(configuration())
    written = meddle(machine, 10**6)
    for attempt in (
        lambda: certificate_authorities.mark_initialised(machine, boot, ""),
        lambda: certificate_authorities.add_encryption_key(machine, boot, dict(BUNDLE)),
    ):
        certificate_authorities.load(machine, boot)
        with pytest.raises(BootError, match="the secret of the certificate authorities keeps changing") as caught:
            attempt()
        assert caught.value.hint == "check who else writes to it"
    assert len(written) == 6, "three attempts each"


def test_api_server_that_does_not_come_ends_the_step_with_what_to_look_at() -> None:
    machine = Master()
    machine.on("kubectl .* get --server", (1, ""))
    with pytest.raises(BootError, match=r"waited 10[89]\d s for the API server: not available yet") as caught:
        boot(machine)
    assert "journalctl -u kubelet" in caught.value.hint
    assert machine.said[0].startswith("waiting for the API server (6")


def test_image_registry_that_comes_back_is_waited_for() -> None:
    machine, answers = Master(), [(1, "failed to pull image"), (0, "")]
    machine.on("kubeadm init phase preflight", lambda _: answers.pop(0))
    assert boot(machine)[1] == "initialised a new cluster"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("[ERROR CRI]: could not connect to the container runtime", "journalctl -u containerd"),
        ("[ERROR ImagePull]: failed to pull image registry.k8s.io/kube-apiserver:v1.36.3", "registry.k8s.io"),
        ("[ERROR Port-2379]: Port 2379 is in use", "ss -ltnp"),
        ("[ERROR DirAvailable--mnt-master-etcd]: /mnt/master/etcd is not empty", "that folder"),
        ("[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2", "controlPlane.instanceType"),
        ("something that nobody has seen yet", ""),
    ],
)
def test_hint_fits_the_check_of_kubeadm_that_failed(line: str, hint: str) -> None:
    machine = Master()
    machine.on("kubeadm init phase preflight", (1, line))
    with pytest.raises(BootError, match=r"waited .* for kubeadm's preflight") as caught:
        boot(machine)
    assert hint in caught.value.hint
    assert ("registry" in caught.value.hint) == ("ImagePull" in line)


def test_configuration_and_patch_are_written_for_kubeadm() -> None:
    machine = Master()
    machine.files[kubelet.RESOLVED_CONF] = "nameserver 127.0.0.1"
    control_plane.prepare(machine, boot_of(configuration()))
    documents = [json.loads(text) for text in machine.files[KUBEADM_CONFIG].split("\n---\n")]
    assert [each["kind"] for each in documents] == [
        "InitConfiguration",
        "ClusterConfiguration",
        "KubeletConfiguration",
    ]
    assert documents[2] == {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "systemd",
    }, "what is one instance's own must not reach the cluster's ConfigMap"
    assert machine.modes[KUBEADM_CONFIG] == 0o600
    patch = json.loads(machine.files[HOME + "/patches/kubeletconfiguration+merge.json"])
    patch.pop("kubeReserved")
    assert patch == {
        "cgroupDriver": "systemd",
        "providerID": f"aws:///us-west-2a/{INSTANCE}",
        "resolvConf": "/run/systemd/resolve/resolv.conf",
    }


def test_resolver_follows_the_distribution_unless_the_user_says_otherwise() -> None:
    patch = HOME + "/patches/kubeletconfiguration+merge.json"
    machine, config = ScriptedMachine(), configuration()
    kubelet.write_patch(machine, boot_of(config))
    assert json.loads(machine.files[patch])["resolvConf"] == "/etc/resolv.conf"
    config["kubeletPatch"]["resolvConf"] = "/etc/kubernetes/resolv.conf"
    kubelet.write_patch(machine, boot_of(config))
    assert json.loads(machine.files[patch])["resolvConf"] == "/etc/kubernetes/resolv.conf"

"""Encryption at rest: one key for all masters, kept where the authorities are, never anywhere else."""

from __future__ import annotations

import base64
import json

from masters import BUNDLE, CA_SECRET, World
from slots import boot, cluster_of_three, master_of, successor

from cfngen.boot.master import encryption
from cfngen.boot.master.certificate_authorities import INITIALISED_AT


def key_of(text: str) -> str:
    document = json.loads(text)
    # With another kind the API server does not start.
    assert (document["apiVersion"], document["kind"]) == ("apiserver.config.k8s.io/v1", "EncryptionConfiguration")
    [entry] = document["resources"]
    assert entry["resources"] == ["secrets"]
    first, second = entry["providers"]
    assert [key["name"] for key in first["secretbox"]["keys"]] == ["cfngen"], "stored Secrets name the key they need"
    assert second == {"identity": {}}, "Secrets that were stored before stay readable"
    return str(first["secretbox"]["keys"][0]["secret"])


def test_all_masters_encrypt_with_the_key_of_the_bundle() -> None:
    world, masters = cluster_of_three()
    kept = json.loads(world.secrets.text(CA_SECRET))[encryption.KEY_NAME]
    assert len(base64.b64decode(kept)) == 32
    for each in masters.values():
        assert key_of(each.files[encryption.CONFIGURATION_FILE]) == kept
        assert each.modes[encryption.CONFIGURATION_FILE] == 0o600
        assert not [path for path, text in each.volume().items() if kept in text]


def test_each_cluster_has_a_key_of_its_own() -> None:
    keys = [json.loads(cluster_of_three()[0].secrets.text(CA_SECRET))[encryption.KEY_NAME] for _ in range(2)]
    assert keys[0] != keys[1]


def test_key_is_stored_together_with_the_authorities() -> None:
    """Between two versions of the secret another master might take the authorities without a key."""
    world = World()
    boot(master_of(world, several=False))
    versions = [json.loads(text) for _, text in world.secrets.versions[CA_SECRET]]
    assert [(encryption.KEY_NAME in version, INITIALISED_AT in version) for version in versions] == [
        (True, False),
        (True, True),
    ]


def test_replaced_master_reads_what_the_old_one_wrote() -> None:
    master = master_of(World(), several=False)
    boot(master)
    after = successor(master)
    boot(after)
    assert after.files[encryption.CONFIGURATION_FILE] == master.files[encryption.CONFIGURATION_FILE]


def test_of_two_masters_that_find_no_key_one_makes_it() -> None:
    world = World(**{CA_SECRET: json.dumps({**BUNDLE, INITIALISED_AT: "2026-08-01T00:00:00Z"})})
    first, second = master_of(world, "a"), master_of(world, "b")
    read = world.secrets.get
    data = world.etcd.restored("ours", ["172.20.0.9"], "172.20.0.9")
    first.files["/mnt/master/etcd/member/snap/db"] = data
    overtaken = False

    def slow(SecretId: str) -> dict[str, str]:  # noqa: N803
        nonlocal overtaken
        answer = read(SecretId)
        if not overtaken:
            overtaken = True
            boot(second_writer)
        return answer

    second_writer = master_of(world, "a")
    second_writer.files["/mnt/master/etcd/member/snap/db"] = data
    first.cloud["secretsmanager.get_secret_value"] = slow
    boot(first)
    boot(second)
    kept = json.loads(world.secrets.text(CA_SECRET))[encryption.KEY_NAME]
    assert {key_of(machine.files[encryption.CONFIGURATION_FILE]) for machine in (first, second, second_writer)} == {
        kept
    }

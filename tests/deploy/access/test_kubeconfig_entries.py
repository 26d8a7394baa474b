"""kubeconfig documents: entries put in and taken out, and everything else as it was."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
import yaml

from cfngen.deploy.access.certificates import KeyPair
from cfngen.deploy.access.kubeconfig import (
    EntryOwner,
    ForeignEntryError,
    KubeconfigContent,
    KubeconfigError,
    build_kubeconfig,
    merge_entries,
    remove_entries,
    to_yaml,
)

OURS = EntryOwner("123456789012", "us-west-2", "prod")
ACCESS = KubeconfigContent("prod", OURS, "https://203.0.113.9", "AUTHORITY", KeyPair("CERTIFICATE", "KEY"))
OTHERS = """\
# what the company gives out
apiVersion: v1
kind: Config
preferences:
  colors: true
current-context: work
clusters:
- name: work
  cluster:
    server: 'https://work.example.com'
    insecure-skip-tls-verify: yes
    extensions:
    - name: minikube.sigs.k8s.io
      extension:
        last-update: 2026-01-02 03:04:05
        version: 1.10
users:
- name: work
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: "aws", args: [eks, get-token]}
    x-unknown: 0123
contexts:
- name: work
  context: {cluster: work, user: work, namespace: "on"}
x-company:
  department: 12e3
"""


def entries(text: str, plural: str) -> dict[str, dict]:
    return {each["name"]: each[plural[:-1]] for each in yaml.safe_load(text)[plural]}


def test_a_new_kubeconfig_says_all_that_kubectl_needs():
    content = yaml.safe_load(merge_entries("", ACCESS, set_current=True))
    assert (content["apiVersion"], content["kind"], content["current-context"]) == ("v1", "Config", "prod")
    text = to_yaml(content)
    cluster, user, context = (entries(text, plural)["prod"] for plural in ("clusters", "users", "contexts"))
    assert cluster["server"] == "https://203.0.113.9"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"AUTHORITY"
    assert base64.b64decode(user["client-certificate-data"]) == b"CERTIFICATE"
    assert base64.b64decode(user["client-key-data"]) == b"KEY"
    assert (context["cluster"], context["user"]) == ("prod", "prod")
    assert "tls-server-name" not in cluster


def test_a_kubeconfig_of_its_own_names_its_context():
    assert build_kubeconfig(ACCESS)["current-context"] == "prod"
    assert build_kubeconfig(replace(ACCESS, tls_name="k8s"))["clusters"][0]["cluster"]["tls-server-name"] == "k8s"


def test_other_entries_stay_as_they_were_written():
    text = merge_entries(OTHERS, ACCESS, set_current=True)
    for plural in ("clusters", "users", "contexts"):
        before, after = entries(OTHERS, plural), entries(text, plural)
        assert list(after) == ["work", "prod"]
        assert after["work"] == before["work"]
    # Not only the values: a program of another YAML version must read what it read before.
    for line in (
        "server: 'https://work.example.com'",
        "insecure-skip-tls-verify: yes",
        "last-update: 2026-01-02 03:04:05",
        "version: 1.10",
        "x-unknown: 0123",
        'namespace: "on"',
        "department: 12e3",
    ):
        assert line in text
    assert yaml.safe_load(text)["preferences"] == {"colors": True}
    assert list(yaml.safe_load(text)) == list(yaml.safe_load(OTHERS))


def test_the_current_context_is_switched_only_if_asked():
    assert yaml.safe_load(merge_entries(OTHERS, ACCESS, set_current=True))["current-context"] == "prod"
    assert yaml.safe_load(merge_entries(OTHERS, ACCESS, set_current=False))["current-context"] == "work"


def test_a_refreshed_entry_keeps_what_others_added_to_it():
    text = merge_entries(OTHERS, ACCESS, set_current=True)
    text = text.replace("    user: prod\n", "    user: prod\n    namespace: shop\n")
    text = text.replace(
        "    server: https://203.0.113.9\n", "    server: https://203.0.113.9\n    proxy-url: http://p\n"
    )
    newer = replace(ACCESS, server="https://203.0.113.10", client=KeyPair("NEWER", "NEWER KEY"))
    after = merge_entries(text, newer, set_current=True)
    assert entries(after, "contexts")["prod"]["namespace"] == "shop"
    assert entries(after, "clusters")["prod"]["proxy-url"] == "http://p"
    assert entries(after, "clusters")["prod"]["server"] == "https://203.0.113.10"
    assert base64.b64decode(entries(after, "users")["prod"]["client-key-data"]) == b"NEWER KEY"
    assert list(entries(after, "users")) == ["work", "prod"]


def test_a_name_for_tls_goes_when_it_is_no_longer_needed():
    text = merge_entries("", replace(ACCESS, tls_name="203.0.113.9"), set_current=True)
    assert "tls-server-name" not in entries(merge_entries(text, ACCESS, set_current=True), "clusters")["prod"]


def test_an_entry_of_somebody_else_is_not_overwritten():
    with pytest.raises(ForeignEntryError, match="'work' of the kubeconfig was not written by cfngen") as refused:
        merge_entries(OTHERS, replace(ACCESS, name="work"), set_current=True)
    assert "--context" in refused.value.hint


def test_the_same_name_in_another_account_is_not_overwritten():
    text = merge_entries("", ACCESS, set_current=True)
    elsewhere = replace(ACCESS, owner=replace(OURS, account="999999999999"))
    with pytest.raises(ForeignEntryError, match="stack prod in us-west-2 of account 123456789012"):
        merge_entries(text, elsewhere, set_current=True)


def test_removal_takes_our_entries_and_leaves_the_others():
    text, names = remove_entries(merge_entries(OTHERS, ACCESS, set_current=True), OURS)
    assert names == ("prod",)
    content, before = yaml.safe_load(text), yaml.safe_load(OTHERS)
    assert content == {**before, "current-context": ""}


def test_removal_leaves_another_current_context():
    text, _ = remove_entries(merge_entries(OTHERS, ACCESS, set_current=False), OURS)
    assert yaml.safe_load(text) == yaml.safe_load(OTHERS)


def test_removal_can_be_of_one_context_only():
    both = merge_entries(merge_entries("", ACCESS, set_current=True), replace(ACCESS, name="again"), set_current=True)
    text, names = remove_entries(both, OURS, name="again")
    assert names == ("again",)
    assert list(entries(text, "contexts")) == ["prod"]


@pytest.mark.parametrize("text", [OTHERS, "", "# nothing but a comment\n"])
def test_nothing_to_remove_changes_nothing(text):
    assert remove_entries(text, OURS) == (text, ())


def test_removal_without_an_account_takes_the_only_one():
    text, names = remove_entries(merge_entries("", ACCESS, set_current=True), replace(OURS, account=""))
    assert names == ("prod",)
    assert yaml.safe_load(text)["users"] == []


def test_removal_without_an_account_does_not_guess():
    elsewhere = replace(ACCESS, name="prod-b", owner=replace(OURS, account="999999999999"))
    both = merge_entries(merge_entries("", ACCESS, set_current=True), elsewhere, set_current=True)
    with pytest.raises(KubeconfigError, match="123456789012, 999999999999") as refused:
        remove_entries(both, replace(OURS, account=""))
    assert "--account" in refused.value.hint
    assert remove_entries(both, OURS)[1] == ("prod",)


def test_a_kubeconfig_in_json_is_one():
    before = json.dumps(yaml.safe_load(OTHERS.replace("2026-01-02 03:04:05", "now")))
    after = yaml.safe_load(merge_entries(before, ACCESS, set_current=False))
    assert [cluster["name"] for cluster in after["clusters"]] == ["work", "prod"]
    assert after["clusters"][0] == json.loads(before)["clusters"][0]


@pytest.mark.parametrize("text", ["clusters:\ncontexts: []\nusers: null\n", "apiVersion: v1\nkind: Config\n"])
def test_empty_lists_are_filled(text):
    assert list(entries(merge_entries(text, ACCESS, set_current=True), "users")) == ["prod"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("clusters: [", "is not valid YAML in line 1"),
        ("users:\n- name: a\n  user: {client-key-data: U0VDUkVU\n", "is not valid YAML in line 4"),
        ("- a\n- b\n", "is not a mapping"),
        ("just words\n", "is not a mapping"),
        ("kind: Secret\n", "is a Secret, not a Config"),
        ("clusters: none\n", "has clusters that are not a list"),
        ("users:\n- work\n", "has an entry in users that is not a mapping"),
        ("---\na: 1\n---\nb: 2\n", "is not valid YAML"),
        ("users: \x07\n", "is not valid YAML"),
    ],
)
def test_what_is_no_kubeconfig_is_refused(text, reason):
    for change in (lambda: merge_entries(text, ACCESS, set_current=True), lambda: remove_entries(text, OURS)):
        with pytest.raises(KubeconfigError, match=reason) as refused:
            change()
        assert "U0VDUkVU" not in str(refused.value)
        assert refused.value.hint


def test_an_owners_mark_holds_no_secret():
    assert "KEY" not in repr(ACCESS).replace("KeyPair", "")

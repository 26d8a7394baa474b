"""A kubeconfig letter by letter: what an earlier cfngen has written, and what kubectl reads, must stay what it is."""

from __future__ import annotations

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
)

OURS = EntryOwner("123456789012", "us-west-2", "prod")
ACCESS = KubeconfigContent(
    "prod", OURS, "https://203.0.113.9", "AUTHORITY", KeyPair("CERTIFICATE", "KEY"), "k8s.example"
)
MARK = """\
    extensions:
    - name: cfngen
      extension:
        account: '123456789012'
        region: us-west-2
        stack: prod
"""
WRITTEN = f"""\
apiVersion: v1
kind: Config
current-context: prod
clusters:
- name: prod
  cluster:
    server: https://203.0.113.9
    tls-server-name: k8s.example
    certificate-authority-data: QVVUSE9SSVRZ
{MARK}contexts:
- name: prod
  context:
    cluster: prod
    user: prod
{MARK}users:
- name: prod
  user:
    client-certificate-data: Q0VSVElGSUNBVEU=
    client-key-data: S0VZ
{MARK}"""
EMPTIED = "apiVersion: v1\nkind: Config\ncurrent-context: ''\nclusters: []\ncontexts: []\nusers: []\n"


@pytest.mark.parametrize("text", ["", "# only a comment\n", "null\n"])
def test_a_new_kubeconfig_is_written_letter_by_letter(text: str) -> None:
    assert merge_entries(text, ACCESS, set_current=True) == WRITTEN


def test_what_is_written_again_is_the_same() -> None:
    assert merge_entries(WRITTEN, ACCESS, set_current=True) == WRITTEN


def test_what_was_written_is_taken_out_again() -> None:
    assert remove_entries(WRITTEN, OURS) == (EMPTIED, ("prod",))
    assert merge_entries(EMPTIED, ACCESS, set_current=True) == WRITTEN


@pytest.mark.parametrize(
    "owner",
    [
        replace(OURS, account="999999999999"),
        replace(OURS, region="eu-west-1"),
        replace(OURS, stack="test"),
        replace(OURS, account="", stack="test"),
    ],
)
def test_what_is_another_clusters_stays(owner: EntryOwner) -> None:
    assert remove_entries(WRITTEN, owner) == (WRITTEN, ())
    if owner.account:
        with pytest.raises(ForeignEntryError, match="belongs to the stack prod in us-west-2 of account 123456789012"):
            merge_entries(WRITTEN, replace(ACCESS, owner=owner), set_current=True)


def test_without_a_switch_the_context_is_nobodys() -> None:
    assert build_kubeconfig(ACCESS, set_current=False)["current-context"] == ""
    assert build_kubeconfig(ACCESS)["current-context"] == "prod"
    assert merge_entries("", ACCESS, set_current=False) == WRITTEN.replace(
        "current-context: prod", "current-context: ''"
    )
    without_context = WRITTEN.replace("current-context: prod\n", "")
    assert merge_entries(without_context, ACCESS, set_current=False) == without_context
    assert merge_entries(without_context, ACCESS, set_current=True) == without_context + "current-context: prod\n"


def test_another_name_for_tls_takes_the_place_of_the_former() -> None:
    newer = replace(ACCESS, tls_name="other.example", server="https://203.0.113.10")
    expected = WRITTEN.replace("k8s.example", "other.example").replace("203.0.113.9", "203.0.113.10")
    assert merge_entries(WRITTEN, newer, set_current=True) == expected


def test_an_entry_is_ours_by_its_mark_beside_others() -> None:
    theirs = "    extensions:\n    - name: minikube\n      extension: {provider: x}\n"
    text = WRITTEN.replace("    extensions:\n", theirs)
    assert remove_entries(text, OURS)[1] == ("prod",)
    with pytest.raises(ForeignEntryError, match="was not written by cfngen"):
        merge_entries(WRITTEN.replace("name: cfngen", "name: other"), ACCESS, set_current=True)


@pytest.mark.parametrize("name", ["", "prod", "other"])
def test_only_the_named_context_goes(name: str) -> None:
    assert remove_entries(WRITTEN, OURS, name=name)[1] == (() if name == "other" else ("prod",))


def test_the_current_context_stays_while_only_a_user_of_its_name_goes() -> None:
    """An entry of ours that is no context decides nothing about the current one."""
    only_user = WRITTEN[: WRITTEN.index("contexts:")] + WRITTEN[WRITTEN.index("users:") :]
    assert "current-context: prod" in remove_entries(only_user, OURS)[0]


def test_long_lines_and_letters_of_all_languages_stay_as_they_are() -> None:
    text = f"kind: Config\nx-note: {'word ' * 60}end\nx-name: Zürich\n"
    after = merge_entries(text, ACCESS, set_current=True)
    assert f"x-note: {'word ' * 60}end\n" in after
    assert "x-name: Zürich\n" in after


def test_an_empty_list_in_brackets_becomes_lines() -> None:
    after = merge_entries("clusters: []\nusers:\ncontexts: [{name: work, context: {}}]\n", ACCESS, set_current=False)
    assert "clusters:\n- name: prod\n" in after
    assert [context["name"] for context in yaml.safe_load(after)["contexts"]] == ["work", "prod"]
    assert [user["name"] for user in yaml.safe_load(after)["users"]] == ["prod"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("clusters: {}\n", r"has clusters that are not a list \(line 1\)"),
        ("kind: Config\nusers: [work]\n", r"has an entry in users that is not a mapping \(line 2\)"),
        ("a: b: c\n", "is not valid YAML in line 1: "),
        ("x: 1\ny: [\n", "is not valid YAML in line 3: "),
        ("users: \x07\n", "is not valid YAML: ReaderError"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(KubeconfigError, match=reason) as refused:
        merge_entries(text, ACCESS, set_current=True)
    assert "nothing was changed" in str(refused.value)


def test_an_entry_of_ours_that_was_broken_is_told_with_its_line() -> None:
    broken = "users:\n- name: prod\n  user: none\n"
    with pytest.raises(ForeignEntryError, match="the user 'prod' of the kubeconfig was not written by cfngen"):
        merge_entries(broken, ACCESS, set_current=True)

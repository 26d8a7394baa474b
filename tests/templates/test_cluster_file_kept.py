"""The cluster file in the templates: readable, the same in every byte, and out of the instances' reach."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from cfngen import lint
from cfngen.cluster.load import parse
from cfngen.permissions.grants import grants, scope_of
from cfngen.templates import Document, generate
from cfngen.templates.kept_file import kept_file, with_cluster_file
from cfngen.templates.standalone import MAX_BYTES

CONTENT = "\ufeffname: a # 100% größer, %41\r\n\tb: ${AWS::Region} {{resolve:ssm:x}} $}{ {{{{ ''\"\\\n\n".encode()


def by_name(documents: Sequence[Document]) -> dict[str, Document]:
    return {document.name: document for document in documents}


@pytest.fixture(scope="module")
def documents() -> tuple[Document, ...]:
    return generate(parse({}))


def test_the_root_and_standalone_keep_it_and_no_other_template_does(documents: tuple[Document, ...]) -> None:
    changed = by_name(with_cluster_file(documents, CONTENT))
    assert {name for name, document in changed.items() if kept_file(document.body)} == {"cluster", "standalone"}
    assert {kept_file(changed[name].body) for name in ("cluster", "standalone")} == {CONTENT}
    assert [name for name, document in by_name(documents).items() if document != changed[name]] == [
        "cluster",
        "standalone",
    ]


def test_what_get_template_would_change_is_not_in_it(documents: tuple[Document, ...]) -> None:
    text = json.dumps(by_name(with_cluster_file(documents, CONTENT))["cluster"].body["Metadata"], ensure_ascii=False)
    assert text.isascii()
    assert "{{resolve" not in text
    assert "${AWS" not in text


def test_what_is_ascii_can_be_read_line_by_line(documents: tuple[Document, ...]) -> None:
    root = by_name(with_cluster_file(documents, b"name: a  # why\nregion: us-west-2\n"))["cluster"]
    assert root.body["Metadata"]["cfngen"]["clusterFile"] == ["name: a  # why", "region: us-west-2", ""]


def test_an_empty_resource_changes_with_the_file_and_the_rest_stays(documents: tuple[Document, ...]) -> None:
    first, second = (
        by_name(with_cluster_file(documents, content))["cluster"].body["Resources"]
        for content in (b"name: a\n", b"name: a # b\n")
    )
    changed = {name: resource for name, resource in first.items() if name not in second}
    assert list(changed.values()) == [{"Type": "AWS::CloudFormation::WaitConditionHandle"}]
    assert {name: second[name] for name in first.keys() & second.keys()} == by_name(documents)["cluster"].body[
        "Resources"
    ]


def test_templates_with_it_pass_lint(documents: tuple[Document, ...], tmp_path: Path) -> None:
    assert lint.lint(with_cluster_file(documents, CONTENT), region="us-west-2", cache=tmp_path) == ()


def test_a_template_that_would_become_too_large_is_left_as_it_is(documents: tuple[Document, ...]) -> None:
    size = len(json.dumps(by_name(documents)["standalone"].body, indent=2))
    kept = by_name(with_cluster_file(documents, b"#" * (MAX_BYTES - size)))
    assert {name for name, document in kept.items() if kept_file(document.body)} == {"cluster"}


def test_no_instance_may_read_a_template() -> None:
    cluster = parse({})
    text = " ".join(
        json.dumps(grant.statements)
        for grant in grants(cluster, scope_of(cluster, stack="kubernetes", account="123456789012"))
        if grant.name == "master" or grant.name.startswith(("nodes-", "pod-"))
    )
    assert "cloudformation:SignalResource" in text
    assert not re.search(r'cloudformation:(Get|\*)|"\*"\], "Action"|"Action": \[?"\*"', text)


def test_no_file_is_kept_if_there_is_none(documents: tuple[Document, ...]) -> None:
    assert with_cluster_file(documents, b"") == documents
    assert kept_file({}) == b""

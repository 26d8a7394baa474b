"""The workflows of "From a push to a pod": each signs in as the cluster file of the page lets it, and keeps no key."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from cfngen.cluster.iam.push_roles import push_audience, push_subject
from cfngen.cluster.load import parse
from cfngen.cluster.sections.registry import Push
from cfngen.templates import generate

PAGE = (Path(__file__).parents[2] / "docs/build/push-to-pod.md").read_text("utf-8")
BLOCKS = [textwrap.dedent(block).strip() for block in re.findall(r"(?m)(?:^    .*\n|^\n(?=    ))+", PAGE)]


def block(start: str) -> str:
    [text] = [text for text in BLOCKS if text.startswith(start)]
    return text


def test_the_role_has_the_name_and_the_trust_that_the_page_says() -> None:
    cluster = parse(yaml.safe_load(block("registry:")))
    root = next(document for document in generate(cluster) if document.name == "cluster")
    assert "PushWebRoleArn" in root.body["Outputs"]
    [push] = cluster.registry.push
    assert f"`{push_subject(push)}`" in PAGE
    assert f"`{push_audience(push)}`" in PAGE


def test_github_asks_for_a_token_and_pushes_to_a_repository_of_the_file() -> None:
    workflow = yaml.safe_load(block("name: deploy"))
    assert workflow["permissions"] == {"contents": "read", "id-token": "write"}
    assert workflow[True] == {"push": {"branches": ["main"]}}  # YAML 1.1 takes `on` for true
    assert "environment" not in workflow["jobs"]["push"]
    names = {repository.name for repository in parse(yaml.safe_load(block("registry:"))).registry.repositories}
    assert workflow["env"]["IMAGE"].partition("/")[2].partition(":")[0] in names


def test_gitlab_asks_for_the_audience_that_its_role_compares() -> None:
    jobs: dict[str, Any] = yaml.safe_load(block("variables:"))
    gitlab = Push.model_validate({"name": "web", "provider": "gitlab", "project": "example/shop"})
    assert jobs["push"]["id_tokens"]["AWS_TOKEN"]["aud"] == push_audience(gitlab) == "https://gitlab.com"
    assert f"`{push_subject(gitlab)}`" in PAGE


@pytest.mark.parametrize("start", ["name: deploy", "variables:", "pipeline {"])
def test_no_workflow_has_a_key_that_lasts(start: str) -> None:
    assert not re.search(r"(?i)access_?key|secret_access|docker_password|AKIA", block(start))
    assert "kubectl --namespace shop" in block(start)


def test_the_role_of_the_pipeline_is_of_one_namespace_and_reads_no_secret() -> None:
    objects = list(yaml.safe_load_all(block("apiVersion: v1")))
    assert [item["kind"] for item in objects] == ["Namespace", "Role", "RoleBinding"]
    resources = [name for rule in objects[1]["rules"] for name in (*rule["resources"], *rule["verbs"])]
    assert not {"secrets", "*", "roles", "rolebindings", "pods/exec", "impersonate", "escalate"} & set(resources)
    assert {item["metadata"].get("namespace", item["metadata"]["name"]) for item in objects} == {"shop"}

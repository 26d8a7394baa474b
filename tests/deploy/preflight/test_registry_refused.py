"""Repositories that are taken or missing, and OIDC providers that are there or not: said before anything is created."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from answers import Answers
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.cluster.naming.identity_ids import RegistryId
from cfngen.deploy.aws.stacks import ResourceView, StackResource, StackTree
from cfngen.deploy.preflight.existing.registry import find_push_problems, find_repository_problems

GITHUB = "token.actions.githubusercontent.com"
ARN = f"arn:aws:iam::123456789012:oidc-provider/{GITHUB}"
PUSH: dict[str, Any] = {"name": "web", "provider": "github", "project": "example/shop"}


def tree(kind: Any, name: str, physical_id: str, status: str = "CREATE_COMPLETE") -> StackTree:
    """The deployed stacks, with one repository or provider in a status."""
    view = ResourceView(str(RegistryId.of(kind, name)), physical_id, "", status)
    return cast("StackTree", SimpleNamespace(resources=[StackResource("id", ("RegistryStack",), view)]))


def told_of_repositories(aws: Answers, repository: dict[str, Any], *existing: str, stack: Any = None) -> list[str]:
    def answer(arguments: dict[str, Any]) -> Any:
        described = [{"repositoryName": name} for name in arguments["repositoryNames"] if name in existing]
        return {"repositories": described} if described else RefusedError("RepositoryNotFoundException")

    aws.given["ecr:DescribeRepositories"] = answer
    cluster = parse({"registry": {"repositories": [{"name": "shop/web"}, repository]}})
    return list(map(str, find_repository_problems(aws.account, cluster, stack)))


def test_a_repository_that_exists_is_taken_over_by_a_key(aws: Answers) -> None:
    [problem] = told_of_repositories(aws, {"name": "base"}, "base")
    assert problem.startswith("registry.repositories[1].name: there is a repository base in account 123456789012 and")
    assert "set existing: true to use it with its images" in problem
    assert told_of_repositories(aws, {"name": "base", "existing": True}, "base") == []
    [problem] = told_of_repositories(aws, {"name": "base", "existing": True})
    assert problem.startswith("registry.repositories[1].name: there is no repository base")


def test_the_stacks_own_repository_is_in_nobodys_way_until_it_lets_go_of_it(aws: Answers) -> None:
    own = tree("Repository", "base", "base")
    assert told_of_repositories(aws, {"name": "base"}, "base", stack=own) == []
    let_go = tree("Repository", "base", "base", "DELETE_SKIPPED")
    assert len(told_of_repositories(aws, {"name": "base"}, "base", stack=let_go)) == 1


def told_of_push(aws: Answers, *entries: dict[str, Any], audiences: Any = None, stack: Any = None) -> list[str]:
    provider = RefusedError("NoSuchEntity") if audiences is None else {"ClientIDList": audiences}
    aws.given["iam:GetOpenIDConnectProvider"] = provider
    aws.given["iam:GetRole"] = RefusedError("NoSuchEntity")
    cluster = parse({"registry": {"repositories": [{"name": "web"}], "push": list(entries)}})
    return list(map(str, find_push_problems(aws.account, cluster, stack)))


@pytest.mark.parametrize(
    ("changes", "audiences", "words"),
    [
        ({}, None, f"account 123456789012 has no OIDC provider for {GITHUB}; set it to true"),
        ({"createProvider": True}, None, ""),
        ({}, ["sts.amazonaws.com"], ""),
        ({"createProvider": True}, ["sts.amazonaws.com"], f"has an OIDC provider for {GITHUB} already"),
        ({}, ["sigstore"], f"does not accept the audience sts.amazonaws.com .* --open-id-connect-provider-arn {ARN}"),
    ],
)
def test_whether_a_provider_is_to_be_made(aws: Answers, changes: dict[str, Any], audiences: Any, words: str) -> None:
    problems = told_of_push(aws, {**PUSH, **changes}, audiences=audiences)
    assert len(problems) == bool(words)
    for problem in problems:
        assert problem.startswith("registry.push[0]")
        assert re.search(words, problem)


def test_the_stacks_own_provider_is_in_nobodys_way(aws: Answers) -> None:
    own = tree("OidcProvider", GITHUB, ARN)
    assert told_of_push(aws, {**PUSH, "createProvider": True}, audiences=["sts.amazonaws.com"], stack=own) == []
    assert told_of_push(aws, PUSH, audiences=["sts.amazonaws.com"], stack=own) == []


def test_an_existing_role_exists(aws: Answers) -> None:
    role = "arn:aws:iam::{}:role/ci/jenkins"
    [problem] = told_of_push(aws, {"name": "web", "role": role.format("123456789012")})
    assert problem == "registry.push[0].role: there is no role jenkins in account 123456789012"
    assert told_of_push(aws, {"name": "web", "role": role.format("210987654321")}) == []

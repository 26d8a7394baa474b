"""Repositories for images through a cluster's life: made, changed, left behind, taken over, and who pushes to them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cloud import Cloud
from deleting import Operator as Remover
from deployments import Operator, groups

from cfngen.deploy.aws.account import connect
from cfngen.deploy.messages.message import Danger
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError

pytestmark = pytest.mark.drill

GITHUB = "token.actions.githubusercontent.com"
ARN = f"arn:aws:iam::123456789012:oidc-provider/{GITHUB}"
PUSH = {"name": "web", "provider": "github", "project": "example/shop"}


def file(repositories: list[dict[str, Any]], *push: dict[str, Any]) -> dict[str, Any]:
    """A cluster file with a registry."""
    registry = {"repositories": repositories, "push": list(push)}
    return {"nodeGroups": groups("nodes", minSize=1, maxSize=1), "registry": registry}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def repositories(cloud: Cloud) -> dict[str, dict[str, Any]]:
    described = cloud.client("ecr").describe_repositories()["repositories"]
    return {repository["repositoryName"]: repository for repository in described}


def push_image(cloud: Cloud, name: str) -> None:
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "layers": []}
    cloud.client("ecr").put_image(repositoryName=name, imageManifest=json.dumps(manifest), imageTag="1")


def deletes(cloud: Cloud) -> Any:
    return Remover(connect(cloud.session, cloud.cluster.region, clock=cloud.clock))


def test_images_outlive_the_cluster_unless_told_otherwise(cloud: Cloud, operator: Operator) -> None:
    kept, gone = {"name": "shop/web", "keepImages": 50}, {"name": "shop/cache", "deleteWithCluster": True}
    first = file([kept, gone], {**PUSH, "createProvider": True})
    plan = operator.plan(first)
    assert plan.creation is not None
    assert {"repository for images", "OIDC provider of who pushes images"} <= {i.what for i in plan.creation.items}
    assert operator.deploy(first).succeeded
    assert repositories(cloud)["shop/web"]["imageTagMutability"] == "IMMUTABLE"
    role = next(
        role for role in cloud.client("iam").list_roles(MaxItems=1000)["Roles"] if "PushWebRole" in role["RoleName"]
    )
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Condition"]["StringEquals"] == {
        f"{GITHUB}:aud": "sts.amazonaws.com",
        f"{GITHUB}:sub": "repo:example/shop:ref:refs/heads/main",
    }
    for name in ("shop/web", "shop/cache"):
        push_image(cloud, name)

    changed = file([{**kept, "immutableTags": False, "pullAccounts": ["210987654321"]}, gone], PUSH)
    plan = operator.plan(changed)
    assert plan.danger is Danger.NONE
    assert operator.deploy(changed).succeeded
    assert repositories(cloud)["shop/web"]["imageTagMutability"] == "MUTABLE"
    policy = json.loads(cloud.client("ecr").get_repository_policy(repositoryName="shop/web")["policyText"])
    assert policy["Statement"][0]["Principal"] == {"AWS": ["arn:aws:iam::210987654321:root"]}
    # The provider is no longer the stack's, and the role trusts it as before.
    assert operator.plan(changed).is_empty
    for less in (file([kept]), file([])):
        plan = operator.plan(less)
        assert plan.danger is Danger.DANGEROUS
        assert any("shop/cache is removed with all images in it" in impact.text for impact in plan.consequences)

    deleted = deletes(cloud).deletes()
    assert deleted.succeeded
    assert set(repositories(cloud)) == {"shop/web"}
    [left] = [resource for resource in deleted.retained if resource.kind == "repository for images"]
    assert left.id == "shop/web"
    assert left.command == "aws ecr delete-repository --force --repository-name shop/web --region us-west-2"

    with pytest.raises(ForeignObjectsError, match=r"repository shop/web .*; set existing: true to use it"):
        operator.plan(first)
    existing = {"name": "shop/web", "existing": True}
    with pytest.raises(ForeignObjectsError, match=r"has an OIDC provider .* already.*; remove the key"):
        operator.plan(file([existing], {**PUSH, "createProvider": True}))
    assert operator.deploy(file([existing], PUSH)).succeeded
    assert deletes(cloud).deletes().succeeded
    assert set(repositories(cloud)) == {"shop/web"}

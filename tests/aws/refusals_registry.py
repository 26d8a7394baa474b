"""Amazon ECR."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ec2_parts import CONDITION, seen
from refusal import Creation, Refusal, Resources, ServiceCall
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation, client

ECR = "https://docs.aws.amazon.com/AmazonECR/latest/APIReference"


def repository(**properties: Any) -> dict[str, Any]:
    """A repository, as the templates have it."""
    common = {
        "EncryptionConfiguration": {"EncryptionType": "AES256"},
        "ImageScanningConfiguration": {"ScanOnPush": True},
        "ImageTagMutability": "IMMUTABLE",
        "RepositoryName": "shop/web",
    }
    return {"Type": "AWS::ECR::Repository", "Properties": {**common, **properties}}


def only(**properties: Any) -> Callable[[], Resources]:
    return lambda: {"It": repository(**properties)}


def _pulled_by(accounts: int) -> dict[str, Any]:
    """A policy by which this many accounts may pull."""
    roots = [f"arn:aws:iam::{number:012}:root" for number in range(accounts)]
    statement = {"Effect": "Allow", "Principal": {"AWS": roots}, "Action": "ecr:BatchGetImage"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _beside_another() -> Resources:
    client("ecr", REGION).create_repository(repositoryName="shop/web")
    return {"It": repository()}


def _delete_with_image(_: CloudFormation) -> None:
    ecr = client("ecr", REGION)
    ecr.create_repository(repositoryName="shop/web")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "layers": []}
    ecr.put_image(repositoryName="shop/web", imageManifest=json.dumps(manifest), imageTag="1")
    ecr.delete_repository(repositoryName="shop/web")


ROWS = [
    Refusal(
        "AWS::ECR::Repository",
        "a name that another one has",
        "already exists",
        seen("stratospheric#204", "https://github.com/stratospheric-dev/stratospheric/issues/204"),
        "seen",
        Creation(_beside_another, fails="It"),
    ),
    Refusal(
        "AWS::ECR::Repository",
        "a name with capital letters",
        "#/RepositoryName",
        seen("runs-on#334", "https://github.com/runs-on/runs-on/issues/334"),
        "seen",
        Creation(only(RepositoryName="Shop/Web"), fails="It"),
    ),
    Refusal(
        "AWS::ECR::Repository",
        "a lifecycle policy without rules",
        "Lifecycle policy validation failure",
        f"[PutLifecyclePolicy]({ECR}/API_PutLifecyclePolicy.html)",
        CONDITION,
        Creation(only(LifecyclePolicy={"LifecyclePolicyText": "{}" + " " * 100}), fails="It"),
    ),
    Refusal(
        "AWS::ECR::Repository",
        "a policy that is none",
        "Invalid repository policy provided",
        f"[SetRepositoryPolicy]({ECR}/API_SetRepositoryPolicy.html)",
        CONDITION,
        Creation(only(RepositoryPolicyText={"Statement": [{"Effect": "Allow"}]}), fails="It"),
    ),
    Refusal(
        "AWS::ECR::Repository",
        "a policy of more than 10,240 characters",
        "Member must have length less than or equal to 10240",
        f"[SetRepositoryPolicy]({ECR}/API_SetRepositoryPolicy.html), "
        "[containers-roadmap#1064](https://github.com/aws/containers-roadmap/issues/1064)",
        CONDITION,
        Creation(only(RepositoryPolicyText=_pulled_by(300)), fails="It"),
    ),
    Refusal(
        "ecr:DeleteRepository",
        "images in it, without force",
        "cannot be deleted because it still contains images",
        seen("appmeshworkshop#31", "https://github.com/brentley/appmeshworkshop/issues/31"),
        "seen",
        ServiceCall(_delete_with_image),
    ),
]

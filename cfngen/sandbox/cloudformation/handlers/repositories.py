"""Handler of AWS::ECR::Repository."""

from __future__ import annotations

import json
from collections.abc import Collection

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    Tag,
    client,
    leave_to_rollback_on_failure,
)
from cfngen.sandbox.json_types import AwsClient, Properties


def _ecr(call: HandlerCall) -> AwsClient:
    return client("ecr", call.region)


class Repository(Handler):
    """A repository for images: its name and its encryption replace it, the rest is updated in place."""

    supported_properties = frozenset({
        "EmptyOnDelete", "EncryptionConfiguration.EncryptionType", "ImageScanningConfiguration.ScanOnPush",
        "ImageTagMutability", "LifecyclePolicy.LifecyclePolicyText", "RepositoryName", "RepositoryPolicyText", "Tags",
    })  # fmt: skip

    def create(self, call: HandlerCall) -> CreatedResource:
        repository = _ecr(call).create_repository(
            repositoryName=call["RepositoryName"],
            encryptionConfiguration={"encryptionType": call["EncryptionConfiguration"]["EncryptionType"]},
            imageScanningConfiguration=self._scanning(call),
            imageTagMutability=call["ImageTagMutability"],
            tags=call.properties.get("Tags", []),
        )["repository"]
        name = repository["repositoryName"]
        created = CreatedResource(
            name, {"Arn": repository["repositoryArn"], "RepositoryUri": repository["repositoryUri"]}
        )
        with leave_to_rollback_on_failure(created):
            self._apply_policies(call, name, call.properties.keys())
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        ecr, name = _ecr(call), call.physical_id
        if "ImageScanningConfiguration" in changed:
            ecr.put_image_scanning_configuration(repositoryName=name, imageScanningConfiguration=self._scanning(call))
        if "ImageTagMutability" in changed:
            ecr.put_image_tag_mutability(repositoryName=name, imageTagMutability=call["ImageTagMutability"])
        self._apply_policies(call, name, changed)
        return {}

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        _ecr(call).tag_resource(resourceArn=call.attributes["Arn"], tags=tags)

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        _ecr(call).untag_resource(resourceArn=call.attributes["Arn"], tagKeys=keys)

    def read_actual(self, call: HandlerCall) -> Properties | None:
        try:
            [repository] = _ecr(call).describe_repositories(repositoryNames=[call.physical_id])["repositories"]
        except ClientError:
            return None
        return {
            "ImageScanningConfiguration": {"ScanOnPush": repository["imageScanningConfiguration"]["scanOnPush"]},
            "ImageTagMutability": repository["imageTagMutability"],
        }

    def delete(self, call: HandlerCall) -> None:
        """Delete the repository, which ECR refuses if images are in it, unless it is to be emptied."""
        empties = str(call.properties.get("EmptyOnDelete", False)).lower() == "true"
        _ecr(call).delete_repository(repositoryName=call.physical_id, force=empties)

    def _scanning(self, call: HandlerCall) -> Properties:
        return {"scanOnPush": call["ImageScanningConfiguration"]["ScanOnPush"]}

    def _apply_policies(self, call: HandlerCall, name: str, changed: Collection[str]) -> None:
        """Apply the changed policies to the repository, and delete those that the template no longer has."""
        ecr, properties = _ecr(call), call.properties
        if "LifecyclePolicy" in changed:
            if policy := properties.get("LifecyclePolicy"):
                ecr.put_lifecycle_policy(repositoryName=name, lifecyclePolicyText=policy["LifecyclePolicyText"])
            else:
                ecr.delete_lifecycle_policy(repositoryName=name)
        if "RepositoryPolicyText" in changed:
            if policy := properties.get("RepositoryPolicyText"):
                ecr.set_repository_policy(repositoryName=name, policyText=json.dumps(policy))
            else:
                ecr.delete_repository_policy(repositoryName=name)

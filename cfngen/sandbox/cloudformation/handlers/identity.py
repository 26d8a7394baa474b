"""IAM, KMS and Secrets Manager types."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from cfngen.sandbox.cloudformation.handlers.handler import Call, Created, Handler, client, completing
from cfngen.sandbox.services import iam_propagation

ROLE_NAME = 64  # characters, IAM user guide, "IAM object identifiers and quotas"
PROFILE_NAME = 128


class Role(Handler):
    properties = frozenset(
        {"AssumeRolePolicyDocument", "Policies", "ManagedPolicyArns", "PermissionsBoundary", "Description", "Tags"}
    )
    changeable = properties

    def create(self, call: Call) -> Created:
        name = call.name(limit=ROLE_NAME)
        role = call.iam.create_role(
            RoleName=name,
            AssumeRolePolicyDocument=_text(call["AssumeRolePolicyDocument"]),
            **call.only("Description", "PermissionsBoundary", "Tags"),
        )["Role"]
        created = Created(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})
        with completing(created):
            for policy in call.properties.get("Policies", []):
                document = _text(policy["PolicyDocument"])
                call.iam.put_role_policy(RoleName=name, PolicyName=policy["PolicyName"], PolicyDocument=document)
            for arn in call.properties.get("ManagedPolicyArns", []):
                call.iam.attach_role_policy(RoleName=name, PolicyArn=arn)
        return created

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        iam, role = call.iam, {"RoleName": call.physical_id}
        if "AssumeRolePolicyDocument" in changed:
            iam.update_assume_role_policy(**role, PolicyDocument=_text(call["AssumeRolePolicyDocument"]))
        if "Policies" in changed:
            old, new = (
                {policy["PolicyName"]: _text(policy["PolicyDocument"]) for policy in which.get("Policies", [])}
                for which in (before, call.properties)
            )
            for name in [each for each in old if each not in new]:
                iam.delete_role_policy(**role, PolicyName=name)
            for name, document in new.items():
                iam.put_role_policy(**role, PolicyName=name, PolicyDocument=document)
        if "ManagedPolicyArns" in changed:
            had, has = (set(each.get("ManagedPolicyArns", [])) for each in (before, call.properties))
            for arn in sorted(had - has):
                iam.detach_role_policy(**role, PolicyArn=arn)
            for arn in sorted(has - had):
                iam.attach_role_policy(**role, PolicyArn=arn)
        if "Description" in changed:
            iam.update_role_description(**role, Description=call.properties.get("Description", ""))
        if "PermissionsBoundary" in changed:
            if boundary := call.only("PermissionsBoundary"):
                iam.put_role_permissions_boundary(**role, **boundary)
            else:
                iam.delete_role_permissions_boundary(**role)
        return {}

    def retag(self, call: Call, before: Mapping[str, Any]) -> None:
        if gone := _gone(call, before):
            call.iam.untag_role(RoleName=call.physical_id, TagKeys=gone)
        call.iam.tag_role(RoleName=call.physical_id, Tags=call.properties.get("Tags", []))

    def delete(self, call: Call) -> None:
        """Delete the role; what somebody else has attached to it is in the way, as in IAM."""
        for policy in call.properties.get("Policies", []):
            with contextlib.suppress(call.iam.exceptions.NoSuchEntityException):
                call.iam.delete_role_policy(RoleName=call.physical_id, PolicyName=policy["PolicyName"])
        for arn in call.properties.get("ManagedPolicyArns", []):
            with contextlib.suppress(call.iam.exceptions.NoSuchEntityException):
                call.iam.detach_role_policy(RoleName=call.physical_id, PolicyArn=arn)
        call.iam.delete_role(RoleName=call.physical_id)


class ManagedPolicy(Handler):
    """A new document is a new version; the one before it goes, since a policy has five at most."""

    properties = frozenset({"Description", "PolicyDocument", "Roles"})
    changeable = frozenset({"PolicyDocument", "Roles"})

    def create(self, call: Call) -> Created:
        made = call.iam.create_policy(
            PolicyName=call.name(limit=PROFILE_NAME), PolicyDocument=self._document(call), **call.only("Description")
        )["Policy"]
        created = Created(made["Arn"], {"PolicyArn": made["Arn"], "PolicyId": made["PolicyId"]})
        with completing(created):
            for role in call.properties.get("Roles", []):
                call.iam.attach_role_policy(RoleName=role, PolicyArn=made["Arn"])
        return created

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        arn = call.physical_id
        if "PolicyDocument" in changed:
            call.iam.create_policy_version(PolicyArn=arn, PolicyDocument=self._document(call), SetAsDefault=True)
            self._prune(call)
        had, has = (set(each.get("Roles", [])) for each in (before, call.properties))
        for role in sorted(had - has):
            call.iam.detach_role_policy(RoleName=role, PolicyArn=arn)
        for role in sorted(has - had):
            call.iam.attach_role_policy(RoleName=role, PolicyArn=arn)
        return {}

    def delete(self, call: Call) -> None:
        for role in call.properties.get("Roles", []):
            with contextlib.suppress(call.iam.exceptions.NoSuchEntityException):
                call.iam.detach_role_policy(RoleName=role, PolicyArn=call.physical_id)
        self._prune(call)
        call.iam.delete_policy(PolicyArn=call.physical_id)

    def _prune(self, call: Call) -> None:
        for version in call.iam.list_policy_versions(PolicyArn=call.physical_id)["Versions"]:
            if not version["IsDefaultVersion"]:
                call.iam.delete_policy_version(PolicyArn=call.physical_id, VersionId=version["VersionId"])

    def _document(self, call: Call) -> str:
        return _text(call["PolicyDocument"])


class InstanceProfile(Handler):
    """CloudFormation waits until a profile can be used before it is complete."""

    properties = frozenset({"Roles"})
    changeable = properties

    def create(self, call: Call) -> Created:
        name = call.name(limit=PROFILE_NAME)
        profile = call.iam.create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        created = Created(name, {"Arn": profile["Arn"]})
        with completing(created):
            for role in call["Roles"]:
                call.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        iam_propagation.awaited(call.region, name)
        return created

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        for role in before["Roles"]:
            call.iam.remove_role_from_instance_profile(InstanceProfileName=call.physical_id, RoleName=role)
        for role in call["Roles"]:
            call.iam.add_role_to_instance_profile(InstanceProfileName=call.physical_id, RoleName=role)
        iam_propagation.awaited(call.region, call.physical_id)
        return {}

    def delete(self, call: Call) -> None:
        profile = call.iam.get_instance_profile(InstanceProfileName=call.physical_id)["InstanceProfile"]
        for role in profile["Roles"]:
            call.iam.remove_role_from_instance_profile(InstanceProfileName=call.physical_id, RoleName=role["RoleName"])
        call.iam.delete_instance_profile(InstanceProfileName=call.physical_id)


class Key(Handler):
    """A deleted key stays for its waiting period."""

    properties = frozenset({"Description", "EnableKeyRotation", "PendingWindowInDays", "KeyPolicy", "Tags"})
    changeable = properties

    def create(self, call: Call) -> Created:
        kms = client("kms", call.region)
        tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in call.properties.get("Tags", [])]
        # Without a policy a key has that of KMS, which leaves it to IAM.
        policy = {"Policy": json.dumps(call["KeyPolicy"])} if "KeyPolicy" in call.properties else {}
        made = kms.create_key(Tags=tags, **policy, **call.only("Description"))["KeyMetadata"]
        created = Created(made["KeyId"], {"Arn": made["Arn"], "KeyId": made["KeyId"]})
        with completing(created):
            if call.properties.get("EnableKeyRotation"):
                kms.enable_key_rotation(KeyId=made["KeyId"])
        return created

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        kms, key = client("kms", call.region), {"KeyId": call.physical_id}
        if "Description" in changed:
            kms.update_key_description(**key, Description=call.properties.get("Description", ""))
        if "EnableKeyRotation" in changed:
            rotate = kms.enable_key_rotation if call.properties.get("EnableKeyRotation") else kms.disable_key_rotation
            rotate(**key)
        if "KeyPolicy" in changed:
            kms.put_key_policy(**key, PolicyName="default", Policy=json.dumps(call["KeyPolicy"]))
        return {}

    def retag(self, call: Call, before: Mapping[str, Any]) -> None:
        kms, key = client("kms", call.region), {"KeyId": call.physical_id}
        if gone := _gone(call, before):
            kms.untag_resource(**key, TagKeys=gone)
        tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in call.properties.get("Tags", [])]
        if tags:
            kms.tag_resource(**key, Tags=tags)

    def delete(self, call: Call) -> None:
        days = call.properties.get("PendingWindowInDays", 30)
        kms = client("kms", call.region)
        if kms.describe_key(KeyId=call.physical_id)["KeyMetadata"]["KeyState"] != "PendingDeletion":
            kms.schedule_key_deletion(KeyId=call.physical_id, PendingWindowInDays=days)


class Secret(Handler):
    """Ref gives the ARN, as for no other type here. Deletion skips the recovery window."""

    properties = frozenset({"Description", "KmsKeyId", "Tags"})
    changeable = properties

    def create(self, call: Call) -> Created:
        made = client("secretsmanager", call.region).create_secret(Name=call.name(stack_name=False), **call.properties)
        return Created(made["ARN"], {"Id": made["ARN"]})

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        if changed & {"Description", "KmsKeyId"}:
            described = {"Description": "", **call.only("Description", "KmsKeyId")}
            client("secretsmanager", call.region).update_secret(SecretId=call.physical_id, **described)
        return {}

    def retag(self, call: Call, before: Mapping[str, Any]) -> None:
        secrets = client("secretsmanager", call.region)
        if gone := _gone(call, before):
            secrets.untag_resource(SecretId=call.physical_id, TagKeys=gone)
        secrets.tag_resource(SecretId=call.physical_id, Tags=call.properties.get("Tags", []))

    def delete(self, call: Call) -> None:
        client("secretsmanager", call.region).delete_secret(SecretId=call.physical_id, ForceDeleteWithoutRecovery=True)


def _text(document: object) -> str:
    """A document as a request carries it: with its characters as they are, since IAM takes only some."""
    return json.dumps(document, ensure_ascii=False)


def _gone(call: Call, before: Mapping[str, Any]) -> list[str]:
    had, has = ({tag["Key"] for tag in each.get("Tags", [])} for each in (before, call.properties))
    return sorted(had - has)

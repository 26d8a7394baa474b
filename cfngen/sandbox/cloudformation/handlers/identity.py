"""IAM, KMS and Secrets Manager types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import Call, Created, Handler, client

ROLE_NAME = 64  # characters, IAM user guide, "IAM object identifiers and quotas"
PROFILE_NAME = 128
MANAGED_POLICY = 6_144  # characters without white space, same page
INLINE_POLICIES = 10_240  # characters without white space, all inline policies of a role together, same page


class Role(Handler):
    properties = frozenset(
        {"AssumeRolePolicyDocument", "Policies", "ManagedPolicyArns", "PermissionsBoundary", "Description", "Tags"}
    )
    changeable = properties

    def create(self, call: Call) -> Created:
        name = call.name(limit=ROLE_NAME)
        _check_size(call, name)
        role = call.iam.create_role(
            RoleName=name,
            AssumeRolePolicyDocument=json.dumps(call["AssumeRolePolicyDocument"]),
            **call.only("Description", "PermissionsBoundary", "Tags"),
        )["Role"]
        for policy in call.properties.get("Policies", []):
            document = json.dumps(policy["PolicyDocument"])
            call.iam.put_role_policy(RoleName=name, PolicyName=policy["PolicyName"], PolicyDocument=document)
        for arn in call.properties.get("ManagedPolicyArns", []):
            call.iam.attach_role_policy(RoleName=name, PolicyArn=arn)
        return Created(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        _check_size(call, call.physical_id)
        iam, role = call.iam, {"RoleName": call.physical_id}
        if "AssumeRolePolicyDocument" in changed:
            iam.update_assume_role_policy(**role, PolicyDocument=json.dumps(call["AssumeRolePolicyDocument"]))
        if "Policies" in changed:
            old, new = (
                {each["PolicyName"]: json.dumps(each["PolicyDocument"]) for each in which.get("Policies", [])}
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
        for policy in call.properties.get("Policies", []):
            call.iam.delete_role_policy(RoleName=call.physical_id, PolicyName=policy["PolicyName"])
        for arn in call.properties.get("ManagedPolicyArns", []):
            call.iam.detach_role_policy(RoleName=call.physical_id, PolicyArn=arn)
        call.iam.delete_role(RoleName=call.physical_id)


def _check_size(call: Call, name: str) -> None:
    if sum(_size(each["PolicyDocument"]) for each in call.properties.get("Policies", [])) > INLINE_POLICIES:
        raise ResourceError(f"Maximum policy size of {INLINE_POLICIES} bytes exceeded for role {name}")


def _size(document: object) -> int:
    return len("".join(json.dumps(document, separators=(",", ":")).split()))


class ManagedPolicy(Handler):
    """A new document is a new version; the one before it goes, since a policy has five at most."""

    properties = frozenset({"Description", "PolicyDocument", "Roles"})
    changeable = frozenset({"PolicyDocument", "Roles"})

    def create(self, call: Call) -> Created:
        made = call.iam.create_policy(
            PolicyName=call.name(limit=PROFILE_NAME), PolicyDocument=self._document(call), **call.only("Description")
        )["Policy"]
        for role in call.properties.get("Roles", []):
            call.iam.attach_role_policy(RoleName=role, PolicyArn=made["Arn"])
        return Created(made["Arn"], {"PolicyArn": made["Arn"], "PolicyId": made["PolicyId"]})

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
            call.iam.detach_role_policy(RoleName=role, PolicyArn=call.physical_id)
        self._prune(call)
        call.iam.delete_policy(PolicyArn=call.physical_id)

    def _prune(self, call: Call) -> None:
        for version in call.iam.list_policy_versions(PolicyArn=call.physical_id)["Versions"]:
            if not version["IsDefaultVersion"]:
                call.iam.delete_policy_version(PolicyArn=call.physical_id, VersionId=version["VersionId"])

    def _document(self, call: Call) -> str:
        if _size(call["PolicyDocument"]) > MANAGED_POLICY:
            raise ResourceError(f"Cannot exceed quota for PolicySize: {MANAGED_POLICY}")
        return json.dumps(call["PolicyDocument"])


class InstanceProfile(Handler):
    properties = frozenset({"Roles"})
    changeable = properties

    def create(self, call: Call) -> Created:
        name = call.name(limit=PROFILE_NAME)
        profile = call.iam.create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        [role] = call["Roles"]
        call.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        return Created(name, {"Arn": profile["Arn"]})

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        [old], [new] = before["Roles"], call["Roles"]
        call.iam.remove_role_from_instance_profile(InstanceProfileName=call.physical_id, RoleName=old)
        call.iam.add_role_to_instance_profile(InstanceProfileName=call.physical_id, RoleName=new)
        return {}

    def delete(self, call: Call) -> None:
        [role] = call["Roles"]
        call.iam.remove_role_from_instance_profile(InstanceProfileName=call.physical_id, RoleName=role)
        call.iam.delete_instance_profile(InstanceProfileName=call.physical_id)


class Key(Handler):
    """A deleted key stays for its waiting period."""

    properties = frozenset({"Description", "EnableKeyRotation", "PendingWindowInDays", "KeyPolicy", "Tags"})
    changeable = properties

    def create(self, call: Call) -> Created:
        kms = client("kms", call.region)
        tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in call.properties.get("Tags", [])]
        made = kms.create_key(Policy=json.dumps(call["KeyPolicy"]), Tags=tags, **call.only("Description"))[
            "KeyMetadata"
        ]
        if call.properties.get("EnableKeyRotation"):
            kms.enable_key_rotation(KeyId=made["KeyId"])
        return Created(made["KeyId"], {"Arn": made["Arn"], "KeyId": made["KeyId"]})

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
        client("kms", call.region).schedule_key_deletion(KeyId=call.physical_id, PendingWindowInDays=days)


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


def _gone(call: Call, before: Mapping[str, Any]) -> list[str]:
    had, has = ({tag["Key"] for tag in each.get("Tags", [])} for each in (before, call.properties))
    return sorted(had - has)

"""Handlers of IAM, KMS and Secrets Manager types."""

from __future__ import annotations

import contextlib
import json

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    Tag,
    leave_to_rollback_on_failure,
)
from cfngen.sandbox.services.iam import mark_propagated
from cfngen.sandbox.untyped import Properties

# IAM user guide, "IAM object identifiers and quotas".
MAX_ROLE_NAME_LENGTH = 64
MAX_POLICY_NAME_LENGTH = 128
DEFAULT_SESSION_SECONDS = 3_600
MAX_PROFILE_NAME_LENGTH = 128


class Role(Handler):
    supported_properties = frozenset({
        "AssumeRolePolicyDocument", "Description", "ManagedPolicyArns", "MaxSessionDuration", "Path",
        "PermissionsBoundary", "Policies", "RoleName", "Tags",
    })  # fmt: skip

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.properties.get("RoleName") or call.generate_name(limit=MAX_ROLE_NAME_LENGTH)
        role = call.iam.create_role(
            RoleName=name,
            AssumeRolePolicyDocument=_to_json(call["AssumeRolePolicyDocument"]),
            **call.pick("Description", "MaxSessionDuration", "Path", "PermissionsBoundary", "Tags"),
        )["Role"]
        created = CreatedResource(name, {"Arn": role["Arn"], "RoleId": role["RoleId"]})
        with leave_to_rollback_on_failure(created):
            for policy in call.properties.get("Policies", []):
                document = _to_json(policy["PolicyDocument"])
                call.iam.put_role_policy(RoleName=name, PolicyName=policy["PolicyName"], PolicyDocument=document)
            for arn in call.properties.get("ManagedPolicyArns", []):
                call.iam.attach_role_policy(RoleName=name, PolicyArn=arn)
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        iam, role_name = call.iam, call.physical_id
        if "AssumeRolePolicyDocument" in changed:
            iam.update_assume_role_policy(RoleName=role_name, PolicyDocument=_to_json(call["AssumeRolePolicyDocument"]))
        if "Policies" in changed:
            old_policies, new_policies = _inline_policies(old_properties), _inline_policies(call.properties)
            for policy_name in old_policies:
                if policy_name not in new_policies:
                    iam.delete_role_policy(RoleName=role_name, PolicyName=policy_name)
            for policy_name, document in new_policies.items():
                iam.put_role_policy(RoleName=role_name, PolicyName=policy_name, PolicyDocument=document)
        if "ManagedPolicyArns" in changed:
            old_arns = set(old_properties.get("ManagedPolicyArns", []))
            new_arns = set(call.properties.get("ManagedPolicyArns", []))
            for arn in sorted(old_arns - new_arns):
                iam.detach_role_policy(RoleName=role_name, PolicyArn=arn)
            for arn in sorted(new_arns - old_arns):
                iam.attach_role_policy(RoleName=role_name, PolicyArn=arn)
        if "Description" in changed:
            iam.update_role_description(RoleName=role_name, Description=call.properties.get("Description", ""))
        if "MaxSessionDuration" in changed:
            seconds = call.properties.get("MaxSessionDuration", DEFAULT_SESSION_SECONDS)
            # UpdateRole without a description would remove it.
            description = call.properties.get("Description", "")
            iam.update_role(RoleName=role_name, Description=description, MaxSessionDuration=seconds)
        if "PermissionsBoundary" in changed:
            if "PermissionsBoundary" in call.properties:
                iam.put_role_permissions_boundary(RoleName=role_name, PermissionsBoundary=call["PermissionsBoundary"])
            else:
                iam.delete_role_permissions_boundary(RoleName=role_name)

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        call.iam.tag_role(RoleName=call.physical_id, Tags=tags)

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        call.iam.untag_role(RoleName=call.physical_id, TagKeys=keys)

    def delete(self, call: HandlerCall) -> None:
        """Delete the role; as in IAM, this fails if other policies are attached to it."""
        for policy in call.properties.get("Policies", []):
            with contextlib.suppress(call.iam.exceptions.NoSuchEntityException):
                call.iam.delete_role_policy(RoleName=call.physical_id, PolicyName=policy["PolicyName"])
        for arn in call.properties.get("ManagedPolicyArns", []):
            with contextlib.suppress(call.iam.exceptions.NoSuchEntityException):
                call.iam.detach_role_policy(RoleName=call.physical_id, PolicyArn=arn)
        call.iam.delete_role(RoleName=call.physical_id)


class ManagedPolicy(Handler):
    """A changed document becomes a new version; old versions are deleted, because a policy can have only five."""

    supported_properties = frozenset({"Description", "Path", "PolicyDocument", "Roles"})

    def create(self, call: HandlerCall) -> CreatedResource:
        policy = call.iam.create_policy(
            PolicyName=call.generate_name(limit=MAX_POLICY_NAME_LENGTH),
            PolicyDocument=self._document(call),
            **call.pick("Description", "Path"),
        )["Policy"]
        created = CreatedResource(policy["Arn"], {"PolicyArn": policy["Arn"], "PolicyId": policy["PolicyId"]})
        with leave_to_rollback_on_failure(created):
            for role in call.properties.get("Roles", []):
                call.iam.attach_role_policy(RoleName=role, PolicyArn=policy["Arn"])
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        arn = call.physical_id
        if "PolicyDocument" in changed:
            call.iam.create_policy_version(PolicyArn=arn, PolicyDocument=self._document(call), SetAsDefault=True)
            self._delete_old_versions(call)
        old_roles, new_roles = set(old_properties.get("Roles", [])), set(call.properties.get("Roles", []))
        for role in sorted(old_roles - new_roles):
            call.iam.detach_role_policy(RoleName=role, PolicyArn=arn)
        for role in sorted(new_roles - old_roles):
            call.iam.attach_role_policy(RoleName=role, PolicyArn=arn)

    def delete(self, call: HandlerCall) -> None:
        for role in call.properties.get("Roles", []):
            with contextlib.suppress(call.iam.exceptions.NoSuchEntityException):
                call.iam.detach_role_policy(RoleName=role, PolicyArn=call.physical_id)
        self._delete_old_versions(call)
        call.iam.delete_policy(PolicyArn=call.physical_id)

    def _delete_old_versions(self, call: HandlerCall) -> None:
        """Delete all versions of the policy except the default one, which is in effect."""
        for version in call.iam.list_policy_versions(PolicyArn=call.physical_id)["Versions"]:
            if not version["IsDefaultVersion"]:
                call.iam.delete_policy_version(PolicyArn=call.physical_id, VersionId=version["VersionId"])

    def _document(self, call: HandlerCall) -> str:
        return _to_json(call["PolicyDocument"])


class InstanceProfile(Handler):
    """An instance profile; as in CloudFormation, it is complete only after it has propagated to EC2."""

    supported_properties = frozenset({"Path", "Roles"})

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.generate_name(limit=MAX_PROFILE_NAME_LENGTH)
        profile = call.iam.create_instance_profile(InstanceProfileName=name, **call.pick("Path"))["InstanceProfile"]
        created = CreatedResource(name, {"Arn": profile["Arn"]})
        with leave_to_rollback_on_failure(created):
            for role in call["Roles"]:
                call.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        mark_propagated(call.region, name)
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        for role in old_properties["Roles"]:
            call.iam.remove_role_from_instance_profile(InstanceProfileName=call.physical_id, RoleName=role)
        for role in call["Roles"]:
            call.iam.add_role_to_instance_profile(InstanceProfileName=call.physical_id, RoleName=role)
        mark_propagated(call.region, call.physical_id)

    def delete(self, call: HandlerCall) -> None:
        profile = call.iam.get_instance_profile(InstanceProfileName=call.physical_id)["InstanceProfile"]
        for role in profile["Roles"]:
            call.iam.remove_role_from_instance_profile(InstanceProfileName=call.physical_id, RoleName=role["RoleName"])
        call.iam.delete_instance_profile(InstanceProfileName=call.physical_id)


class Key(Handler):
    """A KMS key. As in KMS, it is not deleted at once: its deletion is scheduled for the end of a waiting period."""

    supported_properties = frozenset({"Description", "EnableKeyRotation", "PendingWindowInDays", "KeyPolicy", "Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        kms = call.client("kms")
        # Without a key policy, KMS sets its default one, which leaves access to IAM.
        policy = {"Policy": json.dumps(call["KeyPolicy"])} if "KeyPolicy" in call.properties else {}
        key = kms.create_key(Tags=_kms_tags(call.properties.get("Tags", [])), **policy, **call.pick("Description"))[
            "KeyMetadata"
        ]
        created = CreatedResource(key["KeyId"], {"Arn": key["Arn"], "KeyId": key["KeyId"]})
        with leave_to_rollback_on_failure(created):
            if call.properties.get("EnableKeyRotation"):
                kms.enable_key_rotation(KeyId=key["KeyId"])
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        kms, key_id = call.client("kms"), call.physical_id
        if "Description" in changed:
            kms.update_key_description(KeyId=key_id, Description=call.properties.get("Description", ""))
        if "EnableKeyRotation" in changed:
            if call.properties.get("EnableKeyRotation"):
                kms.enable_key_rotation(KeyId=key_id)
            else:
                kms.disable_key_rotation(KeyId=key_id)
        if "KeyPolicy" in changed:
            # "default" is the name of every key policy (API, PutKeyPolicy).
            kms.put_key_policy(KeyId=key_id, PolicyName="default", Policy=json.dumps(call["KeyPolicy"]))

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        call.client("kms").tag_resource(KeyId=call.physical_id, Tags=_kms_tags(tags))

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        call.client("kms").untag_resource(KeyId=call.physical_id, TagKeys=keys)

    def delete(self, call: HandlerCall) -> None:
        kms = call.client("kms")
        key_state = kms.describe_key(KeyId=call.physical_id)["KeyMetadata"]["KeyState"]
        if key_state != "PendingDeletion":
            waiting_days = call.properties.get("PendingWindowInDays", 30)
            kms.schedule_key_deletion(KeyId=call.physical_id, PendingWindowInDays=waiting_days)


class Secret(Handler):
    """A secret, whose physical id is its ARN; it is deleted at once, without a recovery window."""

    supported_properties = frozenset({"Description", "KmsKeyId", "Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        secret = call.client("secretsmanager").create_secret(
            Name=call.generate_name(with_stack_name=False), **call.properties
        )
        return CreatedResource(secret["ARN"], {"Id": secret["ARN"]})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        if changed & {"Description", "KmsKeyId"}:
            settings = {"Description": "", **call.pick("Description", "KmsKeyId")}
            call.client("secretsmanager").update_secret(SecretId=call.physical_id, **settings)

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        call.client("secretsmanager").tag_resource(SecretId=call.physical_id, Tags=tags)

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        call.client("secretsmanager").untag_resource(SecretId=call.physical_id, TagKeys=keys)

    def delete(self, call: HandlerCall) -> None:
        call.client("secretsmanager").delete_secret(SecretId=call.physical_id, ForceDeleteWithoutRecovery=True)


def _kms_tags(tags: list[Tag]) -> list[dict[str, str]]:
    return [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in tags]


def _inline_policies(properties: Properties) -> dict[str, str]:
    """The inline policies of a role: policy documents as JSON, by the names of the policies."""
    return {policy["PolicyName"]: _to_json(policy["PolicyDocument"]) for policy in properties.get("Policies", [])}


def _to_json(document: object) -> str:
    """A policy document as JSON, without escaping non-ASCII characters, because IAM checks the characters.

    A template may hold a document as JSON text instead of an object, which IAM gets as it is.
    """
    return document if isinstance(document, str) else json.dumps(document, ensure_ascii=False)


class OidcProvider(Handler):
    """An identity provider: another URL replaces it, the rest is updated in place.

    Ref and GetAtt of `Arn` are its ARN.
    """

    supported_properties = frozenset({"ClientIdList", "Tags", "ThumbprintList", "Url"})
    # IAM lets roles keep their trust in it (API: DeleteOpenIDConnectProvider).
    deletion = ("iam", "delete_open_id_connect_provider", "OpenIDConnectProviderArn")

    def create(self, call: HandlerCall) -> CreatedResource:
        if "Url" not in call.properties:
            raise ResourceError(
                "1 validation error detected: Value null at 'url' failed to satisfy constraint: Member must not be null"
            )
        renamed = {"ClientIDList": call.properties.get("ClientIdList", [])}
        arn = call.iam.create_open_id_connect_provider(**call.pick("Tags", "ThumbprintList", "Url"), **renamed)[
            "OpenIDConnectProviderArn"
        ]
        return CreatedResource(arn, {"Arn": arn})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        """Update the provider; CloudFormation sends the thumbprints in every update, and fails if there are none.

        So a provider without thumbprints can be created, but not updated, not even its tags (seen:
        aws-cloudformation/cloudformation-coverage-roadmap#2092, March 2025; assumed: that this goes for all updates).
        """
        if not call.properties.get("ThumbprintList"):
            raise ResourceError(
                "1 validation error detected: Value null at 'thumbprintList' failed to satisfy constraint: Member must "
                "not be null"
            )
        iam, arn = call.iam, call.physical_id
        iam.update_open_id_connect_provider_thumbprint(
            OpenIDConnectProviderArn=arn, ThumbprintList=call["ThumbprintList"]
        )
        old_ids, new_ids = set(old_properties.get("ClientIdList", [])), set(call.properties.get("ClientIdList", []))
        for client_id in sorted(new_ids - old_ids):
            iam.add_client_id_to_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID=client_id)
        for client_id in sorted(old_ids - new_ids):
            iam.remove_client_id_from_open_id_connect_provider(OpenIDConnectProviderArn=arn, ClientID=client_id)

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        call.iam.tag_open_id_connect_provider(OpenIDConnectProviderArn=call.physical_id, Tags=tags)

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        call.iam.untag_open_id_connect_provider(OpenIDConnectProviderArn=call.physical_id, TagKeys=keys)

    def read_actual(self, call: HandlerCall) -> Properties | None:
        arns = [item["Arn"] for item in call.iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]]
        if call.physical_id not in arns:
            return None
        actual = call.iam.get_open_id_connect_provider(OpenIDConnectProviderArn=call.physical_id)
        return {"ClientIdList": actual["ClientIDList"], **({"Tags": actual["Tags"]} if actual["Tags"] else {})}

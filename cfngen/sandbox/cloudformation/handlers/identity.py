"""IAM, KMS and Secrets Manager types."""

from __future__ import annotations

import json

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import Call, Created, Handler, client

ROLE_NAME = 64  # characters, IAM user guide, "IAM object identifiers and quotas"
PROFILE_NAME = 128
INLINE_POLICIES = 10_240  # characters without white space, all inline policies of a role together, same page


class Role(Handler):
    properties = frozenset(
        {"AssumeRolePolicyDocument", "Policies", "ManagedPolicyArns", "PermissionsBoundary", "Description", "Tags"}
    )

    def create(self, call: Call) -> Created:
        name = call.name(limit=ROLE_NAME)
        if sum(_size(each["PolicyDocument"]) for each in call.properties.get("Policies", [])) > INLINE_POLICIES:
            raise ResourceError(f"Maximum policy size of {INLINE_POLICIES} bytes exceeded for role {name}")
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

    def delete(self, call: Call) -> None:
        for policy in call.properties.get("Policies", []):
            call.iam.delete_role_policy(RoleName=call.physical_id, PolicyName=policy["PolicyName"])
        for arn in call.properties.get("ManagedPolicyArns", []):
            call.iam.detach_role_policy(RoleName=call.physical_id, PolicyArn=arn)
        call.iam.delete_role(RoleName=call.physical_id)


def _size(document: object) -> int:
    return len("".join(json.dumps(document, separators=(",", ":")).split()))


class InstanceProfile(Handler):
    properties = frozenset({"Roles"})

    def create(self, call: Call) -> Created:
        name = call.name(limit=PROFILE_NAME)
        profile = call.iam.create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        [role] = call["Roles"]
        call.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        return Created(name, {"Arn": profile["Arn"]})

    def delete(self, call: Call) -> None:
        [role] = call["Roles"]
        call.iam.remove_role_from_instance_profile(InstanceProfileName=call.physical_id, RoleName=role)
        call.iam.delete_instance_profile(InstanceProfileName=call.physical_id)


class Key(Handler):
    """A deleted key stays for its waiting period."""

    properties = frozenset({"Description", "EnableKeyRotation", "PendingWindowInDays", "KeyPolicy", "Tags"})

    def create(self, call: Call) -> Created:
        kms = client("kms", call.region)
        tags = [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in call.properties.get("Tags", [])]
        made = kms.create_key(Policy=json.dumps(call["KeyPolicy"]), Tags=tags, **call.only("Description"))[
            "KeyMetadata"
        ]
        if call.properties.get("EnableKeyRotation"):
            kms.enable_key_rotation(KeyId=made["KeyId"])
        return Created(made["KeyId"], {"Arn": made["Arn"], "KeyId": made["KeyId"]})

    def delete(self, call: Call) -> None:
        days = call.properties.get("PendingWindowInDays", 30)
        client("kms", call.region).schedule_key_deletion(KeyId=call.physical_id, PendingWindowInDays=days)


class Secret(Handler):
    """Ref gives the ARN, as for no other type here. Deletion skips the recovery window."""

    properties = frozenset({"Description", "KmsKeyId", "Tags"})

    def create(self, call: Call) -> Created:
        made = client("secretsmanager", call.region).create_secret(Name=call.name(stack_name=False), **call.properties)
        return Created(made["ARN"], {"Id": made["ARN"]})

    def delete(self, call: Call) -> None:
        client("secretsmanager", call.region).delete_secret(SecretId=call.physical_id, ForceDeleteWithoutRecovery=True)

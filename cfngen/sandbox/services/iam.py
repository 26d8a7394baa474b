"""IAM: documents, principals and quotas of roles, managed policies and instance profiles, and when others see them.

Quotas: IAM user guide, "IAM and AWS STS quotas", as they are before anybody asks for more.

"Changes that I make are not always immediately visible" (IAM user guide, Troubleshoot IAM: eventual consistency). The
delay is not documented; `PROPAGATION_SECONDS` is an assumption. EC2 and Auto Scaling refuse an instance profile that
they do not see yet with the error for one that does not exist (seen: hashicorp/terraform#1885), or for one without a
role (seen: hashicorp/terraform#4306). CloudFormation waits two minutes until an instance profile is complete, so that
instances can be launched with it: the emulator's handler calls `mark_propagated`. Profiles that are created outside of
CloudFormation propagate later.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy

from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.rules import (
    PendingCall,
    Refused,
    invalid_value,
    rule,
    time_in,
    times_by_region,
    validation_error,
)
from cfngen.sandbox.untyped import JsonDict, MotoBackend, MotoModel

# The characters of policies count without white space.
MAX_INLINE_POLICY_CHARACTERS = 10_240  # all inline policies of a role together
MAX_MANAGED_POLICY_CHARACTERS = 6_144
MAX_TRUST_POLICY_CHARACTERS = 2_048
MAX_MANAGED_POLICIES_PER_ROLE = 10
PROPAGATION_SECONDS = 15.0  # simulated time until other services see a change
_changed_at: WeakKeyDictionary[MotoBackend, dict[str, Mapping[str, float]]] = WeakKeyDictionary()
"""By moto's IAM backend and by name of the instance profile: the time of its last change on each region's clock."""


@rule("iam", "CreateRole", "UpdateAssumeRolePolicy")
def check_trust_policy(call: PendingCall) -> None:
    """Refuse a trust policy that is malformed, names a principal that does not exist, or is too long."""
    text = call.get("AssumeRolePolicyDocument") or call.get("PolicyDocument", "")
    if fault := policy_documents.grammar_fault(text, is_trust_policy=True):
        raise Refused("MalformedPolicyDocument", fault)
    for kind, name in policy_documents.missing_principals(policy_documents.parse(text), call.region):
        if kind == "*":
            raise Refused(
                "MalformedPolicyDocument", f'AssumeRolepolicy contained an invalid principal: "STAR":"{name}".'
            )
        if kind == "Federated":
            raise Refused(
                "MalformedPolicyDocument", "Federated principals must be valid domain names or SAML metadata ARNs"
            )
        principal_type = "SERVICE" if kind == "Service" else kind
        raise Refused("MalformedPolicyDocument", f'Invalid principal in policy: "{principal_type}":"{name}"')
    if policy_documents.size_in_characters(text) > MAX_TRUST_POLICY_CHARACTERS:
        raise Refused("LimitExceeded", f"Cannot exceed quota for ACLSizePerRole: {MAX_TRUST_POLICY_CHARACTERS}")


@rule("iam", "PutRolePolicy", "CreatePolicy", "CreatePolicyVersion")
def check_permissions_policy(call: PendingCall) -> None:
    """Refuse a permissions policy that breaks IAM's grammar, or is too long."""
    text = call.get("PolicyDocument", "")
    if fault := policy_documents.grammar_fault(text):
        raise Refused("MalformedPolicyDocument", fault)
    size = policy_documents.size_in_characters(text)
    if call.operation == "PutRolePolicy":
        role = _get_role(call, call.get("RoleName"))
        other_policies = [policy for name, policy in role.policies.items() if name != call.get("PolicyName")]
        total_size = size + sum(policy_documents.size_in_characters(policy) for policy in other_policies)
        if total_size > MAX_INLINE_POLICY_CHARACTERS:
            message = f"Maximum policy size of {MAX_INLINE_POLICY_CHARACTERS} bytes exceeded for role {role.name}"
            raise Refused("LimitExceeded", message)
    elif size > MAX_MANAGED_POLICY_CHARACTERS:
        raise Refused("LimitExceeded", f"Cannot exceed quota for PolicySize: {MAX_MANAGED_POLICY_CHARACTERS}")


@rule("iam", "CreateRole", "PutRolePermissionsBoundary", "AttachRolePolicy")
def load_aws_managed_policies(call: PendingCall) -> None:
    """Load an AWS managed policy into moto when it is first used, as moto loads none by default; refuses nothing."""
    arn = call.get("PermissionsBoundary") or call.get("PolicyArn") or ""
    name = arn.rpartition("/")[2]
    data = _aws_managed_policies().get(name)
    # Such an ARN has the policy's path, which begins and ends with a slash: arn:aws:iam::aws:policy/service-role/NAME.
    if data and arn.endswith(f":iam::aws:policy{data['Path']}{name}") and arn not in call.backend.managed_policies:
        policy = AWSManagedPolicy.from_data(name, call.backend.account_id, call.backend.region_name, data)
        call.backend.managed_policies[arn] = policy


@functools.cache
def _aws_managed_policies() -> dict[str, JsonDict]:
    policies: dict[str, JsonDict] = json.loads(aws_managed_policies_data)
    return policies


@rule("iam", "CreateRole", "PutRolePermissionsBoundary")
def check_permissions_boundary(call: PendingCall) -> None:
    """Refuse a permissions boundary that does not exist as a policy of the account or of AWS."""
    arn = call.get("PermissionsBoundary")
    if arn and arn not in {policy.arn for policy in call.backend.managed_policies.values()}:
        raise Refused("NoSuchEntity", f"Scope ARN: {arn} does not exist or is not attachable.")


@rule("iam", "AttachRolePolicy")
def check_quota_of_attached_policies(call: PendingCall) -> None:
    """Refuse to attach more managed policies than a role can have."""
    attached = _get_role(call, call.get("RoleName")).managed_policies
    if len(attached) >= MAX_MANAGED_POLICIES_PER_ROLE and call.get("PolicyArn") not in attached:
        raise Refused("LimitExceeded", f"Cannot exceed quota for PoliciesPerRole: {MAX_MANAGED_POLICIES_PER_ROLE}")


@rule("iam", "PutRolePolicy", "AttachRolePolicy", "AddRoleToInstanceProfile", "DeleteRole")
def check_role_exists(call: PendingCall) -> None:
    """Refuse calls for a role that does not exist, with IAM's error message."""
    _get_role(call, call.get("RoleName"))


@rule("iam", "DeletePolicy")
def check_attached_policy(call: PendingCall) -> None:
    """Refuse to delete a managed policy that is attached to a role, or that has further versions."""
    policy = call.backend.managed_policies.get(call.get("PolicyArn"))
    if policy is None:
        return
    boundaries = [role.permissions_boundary_arn for role in call.backend.get_roles()]
    if policy.attachment_count or policy.arn in boundaries:
        raise Refused("DeleteConflict", "Cannot delete a policy attached to entities.")
    if len(policy.versions) > 1:
        message = (
            "This policy has more than one version. Before you delete a policy, you must delete the policy's versions."
        )
        raise Refused("DeleteConflict", f"{message} The default version is deleted with the policy.")


@rule("iam", "CreateRole", "CreateInstanceProfile")
def check_name_unique_ignoring_case(call: PendingCall) -> None:
    """Refuse a name that differs from an existing one only in case."""
    if call.operation == "CreateRole":
        name = call.get("RoleName", "")
        existing_names = [role.name for role in call.backend.get_roles()]
        entity = f"Role with name {name}"
    else:
        name = call.get("InstanceProfileName", "")
        existing_names = [profile.name for profile in call.backend.get_instance_profiles()]
        entity = f"Instance Profile {name}"
    if name.casefold() in [existing_name.casefold() for existing_name in existing_names]:
        raise Refused("EntityAlreadyExists", f"{entity} already exists.")


@rule("iam", "CreateRole", "UpdateAssumeRolePolicy", "PutRolePolicy", "CreatePolicy", "CreatePolicyVersion")
def check_policy_characters(call: PendingCall) -> None:
    """Refuse a document with characters outside of Latin-1 ("IAM name requirements")."""
    name = "AssumeRolePolicyDocument" if call.operation == "CreateRole" else "PolicyDocument"
    if not re.fullmatch(r"[\t\n\r -\xff]+", call.get(name, "")):
        raise validation_error(
            f"1 validation error detected: Value at '{name[0].lower()}{name[1:]}' failed to satisfy constraint: Member "
            "must satisfy regular expression pattern: [\\u0009\\u000A\\u000D\\u0020-\\u00FF]+"
        )


def _get_role(call: PendingCall, name: str) -> MotoModel:
    for role in call.backend.get_roles():
        if role.name == name:
            return role
    raise Refused("NoSuchEntity", f"The role with name {name} cannot be found.")


@rule("iam", "CreateInstanceProfile", "AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile")
def record_change(call: PendingCall) -> None:
    """Record the time of a change of an instance profile; refuses nothing."""
    _changed_at.setdefault(call.backend, {})[call.get("InstanceProfileName")] = times_by_region()


def mark_propagated(region: str, profile: str) -> None:
    """Mark a change of an instance profile as propagated, after CloudFormation has waited for it."""
    _changed_at.get(policy_documents.iam_backend(region), {}).pop(profile, None)


def check_profile(region: str, reference: Mapping[str, str], *, must_be_seen: bool = False) -> None:
    """Refuse an instance profile that does not exist or has no role.

    Args:
        reference: the instance profile's `Arn` or its `Name`, as in RunInstances and in launch templates; may be empty.
        must_be_seen: refuse it, too, while other services do not see its last change.
    """
    names = [(key, value) for key, value in reference.items() if value]
    if not names:
        return
    if len(names) > 1:
        raise Refused(
            "InvalidParameterCombination",
            "The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'",
        )
    [(key, identifier)] = names
    backend = policy_documents.iam_backend(region)
    profile = _find_profile(region, key, identifier)
    if profile is None or (must_be_seen and not _has_propagated(region, backend, profile.name)):
        raise invalid_value(
            f"Value ({identifier}) for parameter iamInstanceProfile.{key.lower()} is invalid. Invalid IAM Instance "
            f"Profile {'ARN' if key == 'Arn' else 'name'}"
        )
    if not profile.roles:
        raise invalid_value(f'IAM Instance Profile "{profile.arn}" has no associated IAM Roles')


def role_of_profile(region: str, reference: Mapping[str, str]) -> str:
    """Return the ARN of the role in an instance profile, named as in `check_profile`; empty if there is none."""
    profiles = [_find_profile(region, key, value) for key, value in reference.items() if value]
    return next((str(role.arn) for profile in profiles if profile for role in profile.roles), "")


def _find_profile(region: str, key: str, identifier: str) -> MotoModel | None:
    profiles = policy_documents.iam_backend(region).get_instance_profiles()
    return next((item for item in profiles if identifier == (item.arn if key == "Arn" else item.name)), None)


@rule("ec2", "RunInstances")
def check_profile_of_instances(call: PendingCall) -> None:
    """Refuse to launch instances with an instance profile that EC2 does not see yet."""
    check_profile(call.region, call.get("IamInstanceProfile") or {}, must_be_seen=True)


def _has_propagated(region: str, backend: MotoBackend, name: str) -> bool:
    changed_at = _changed_at.get(backend, {}).get(name)
    if changed_at is None or region not in changed_at:
        return True
    # A negative age means that another test has replaced the region's clock since the change.
    age = time_in(region) - changed_at[region]
    return age < 0 or age >= PROPAGATION_SECONDS

"""IAM's eventual consistency: other services see a change of an instance profile only some time later.

"Changes that I make are not always immediately visible" (IAM user guide, Troubleshoot IAM: eventual consistency). The
delay is not documented; `PROPAGATION_SECONDS` is an assumption. EC2 and Auto Scaling refuse an instance profile that
they do not see yet with the error for one that does not exist (seen: hashicorp/terraform#1885), or for one without a
role (seen: hashicorp/terraform#4306).

CloudFormation waits two minutes until an instance profile is complete, so that instances can be launched with it: the
emulator's handler calls `mark_propagated`. Profiles that are created outside of CloudFormation propagate later.
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from cfngen.sandbox.moto_types import MotoBackend
from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.rules import PendingCall, invalid_value, rule, time_in, times_by_region

PROPAGATION_SECONDS = 15.0  # simulated time until other services see a change

_changed_at: WeakKeyDictionary[MotoBackend, dict[str, Mapping[str, float]]] = WeakKeyDictionary()
"""By moto's IAM backend and by name of the instance profile: the time of its last change on each region's clock."""


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
    key, identifier = next(((key, value) for key, value in reference.items() if value), ("", ""))
    if not key:
        return
    backend = policy_documents.iam_backend(region)
    profiles = backend.get_instance_profiles()
    profile = next((item for item in profiles if identifier == (item.arn if key == "Arn" else item.name)), None)
    if profile is None or (must_be_seen and not _has_propagated(region, backend, profile.name)):
        raise invalid_value(
            f"Value ({identifier}) for parameter iamInstanceProfile.{key.lower()} is invalid. Invalid IAM Instance "
            f"Profile {'ARN' if key == 'Arn' else 'name'}"
        )
    if not profile.roles:
        raise invalid_value(f'IAM Instance Profile "{profile.arn}" has no associated IAM Roles')


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

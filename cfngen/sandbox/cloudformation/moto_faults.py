"""The faults of moto that the double cannot live with, put right where they are."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def repair() -> None:
    """Put them right, for as long as the process lasts."""
    _user_data_of_versions()
    _transport()


def _transport() -> None:
    """Let buckets be used whose policy refuses connections without TLS.

    moto 5.2.5 reads no condition of a bucket's policy: the refusal would hold for every request.
    """
    from moto.iam.access_control import IAMPolicyStatement, PermissionResult

    original = IAMPolicyStatement.is_action_permitted

    def is_action_permitted(self: Any, *arguments: Any, **options: Any) -> PermissionResult:
        if self._statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}:
            return PermissionResult.NEUTRAL
        return original(self, *arguments, **options)

    setattr(IAMPolicyStatement, "is_action_permitted", is_action_permitted)  # noqa: B010


def _user_data_of_versions() -> None:
    """Let versions of launch templates that have user data launch instances.

    moto 5.2.5 parses the user data of CreateLaunchTemplate but not of CreateLaunchTemplateVersion; a group that then
    launches from the version fails with an AssertionError (moto/ec2/models/launch_templates.py, `user_data`).
    """
    from moto.ec2.models.launch_templates import LaunchTemplate
    from moto.ec2.utils import parse_user_data

    original = LaunchTemplate.create_version

    def create_version(self: Any, data: dict[str, Any], description: str) -> Any:
        if isinstance(data.get("UserData"), str):
            data = {**data, "UserData": parse_user_data(data["UserData"])}
        return original(self, data, description)

    setattr(LaunchTemplate, "create_version", create_version)  # noqa: B010

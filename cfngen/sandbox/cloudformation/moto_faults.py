"""The one fault of moto that the double cannot live with, put right where it is."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def repair() -> None:
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

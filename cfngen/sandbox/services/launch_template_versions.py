"""CreateLaunchTemplateVersion with `SourceVersion`, which moto 5.2.5 ignores.

"The new version inherits the same launch parameters as the source version, except for parameters that you specify"
(EC2 API, CreateLaunchTemplateVersion).
"""

from __future__ import annotations

import functools

from moto.core.responses import ActionResult

from cfngen.sandbox.moto_types import MotoResponse
from cfngen.sandbox.services.launch import from_template
from cfngen.sandbox.services.rules import PendingCall, rule


@functools.cache
def apply() -> None:
    """Patch moto's launch templates, for the rest of the process."""
    from moto.ec2.models.launch_templates import LaunchTemplate, LaunchTemplateVersion
    from moto.ec2.responses.launch_templates import LaunchTemplates

    original = LaunchTemplates.create_launch_template_version

    def create_launch_template_version(self: MotoResponse) -> ActionResult:
        result: ActionResult = original(self)
        source = self._get_param("SourceVersion")
        if source:
            template_id = self._get_param("LaunchTemplateId")
            template: LaunchTemplate = self.ec2_backend.get_launch_template(template_id)
            version = template.versions[-1]
            # The new version is the latest one by now, so `$Latest` is the one before.
            source_version = template.versions[-2] if str(source) == "$Latest" else template.get_version(source)
            data = {**source_version.data, **version.data}
            template.versions[-1] = LaunchTemplateVersion(template, version.number, data, version.description)
        return result

    setattr(LaunchTemplates, "create_launch_template_version", create_launch_template_version)  # noqa: B010


@rule("ec2", "CreateLaunchTemplateVersion")
def check_source(call: PendingCall) -> None:
    """Refuse a launch template or a source version that does not exist."""
    if call.get("SourceVersion"):
        reference = {"LaunchTemplateId": call.get("LaunchTemplateId"), "Version": call.get("SourceVersion")}
        from_template(call.backend, reference)

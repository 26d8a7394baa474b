"""The faults of moto that the double cannot live with, put right where they are."""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def repair() -> None:
    """Put them right, for as long as the process lasts."""
    _user_data_of_versions()
    _versions_of_instances()
    _default_vpc()
    _transport()
    _keys()
    _actions()


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


def _keys() -> None:
    """Let a symmetric key come into being at once.

    moto 5.2.5 gives it an RSA key that nothing ever uses (moto/kms/models.py, `Key`), a twentieth of a second each.
    """
    from moto.kms import models, utils

    setattr(models, "generate_private_key", functools.cache(utils.generate_private_key))  # noqa: B010


def _actions() -> None:
    """Let a service look up its actions once.

    moto 5.2.5 lists all methods of a service's class anew for each request (moto/core/responses.py, `call_action`); of
    EC2 there are a thousand.
    """
    from moto.core import responses, utils

    setattr(responses, "method_names_from_class", functools.cache(utils.method_names_from_class))  # noqa: B010


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


def _versions_of_instances() -> None:
    """Let an instance of a group tell the version of the launch template that it was launched from.

    moto 5.2.5 names the template's default version, which stays the first (moto/autoscaling/models.py,
    `InstanceState.launch_template`): after an update that replaced them, all instances would seem outdated.
    """
    from moto.autoscaling.models import InstanceState

    original = InstanceState.__init__
    described: Any = vars(InstanceState)["launch_template"]

    def __init__(self: Any, *arguments: Any, **options: Any) -> None:  # noqa: N807
        original(self, *arguments, **options)
        group = self.auto_scaling_group
        template = group.ec2_launch_template
        self.version = template.get_version(group.launch_template_version).number if template else None

    def launch_template(self: Any) -> dict[str, Any] | None:
        found: dict[str, Any] | None = described.fget(self)
        return found and {**found, "Version": self.version}

    setattr(InstanceState, "__init__", __init__)  # noqa: B010
    setattr(InstanceState, "launch_template", property(launch_template))  # noqa: B010


def _default_vpc() -> None:
    """Let a group launch on the interface that its launch template names where there is no default VPC.

    "AvailabilityZones: Used for launching into the default VPC subnet in each Availability Zone when not using the
    VPCZoneIdentifier property, or for attaching a network interface when an existing network interface ID is specified
    in a launch template" (AWS::AutoScaling::AutoScalingGroup, CloudFormation reference): that the second takes no
    default VPC is assumed. moto 5.2.5 asks for one in either case (moto/ec2/models/instances.py, `prep_nics`).
    """
    from moto.ec2.models.instances import InstanceBackend

    original = InstanceBackend.run_instances

    def run_instances(self: Any, *arguments: Any, **options: Any) -> Any:
        if options.get("launch_template") and not options.get("subnet_id") and self.get_default_vpc() is None:
            data = self._get_template_from_args(options["launch_template"]).data
            named = [each.get("NetworkInterfaceId") for each in data.get("NetworkInterfaces", [])]
            if named and named[0] in self.enis:
                options["subnet_id"] = self.enis[named[0]].subnet.id
        return original(self, *arguments, **options)

    setattr(InstanceBackend, "run_instances", run_instances)  # noqa: B010

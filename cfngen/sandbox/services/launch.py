"""A launch of instances, as a request or a launch template describes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moto.ec2.models.launch_templates import LaunchTemplateVersion

from cfngen.sandbox.moto_patches.registry import patches_property
from cfngen.sandbox.services.rules import Refused
from cfngen.sandbox.untyped import JsonObject, MotoBackend, MotoModel, Original

DEFAULT_TYPE = "m1.small"  # EC2 API, RunInstances
IMAGE_PARAMETER = "resolve:ssm:"  # EC2 API, RequestLaunchTemplateData: before the name of a parameter with the AMI id
_STORED_VALUES: dict[str, Callable[[str], str | None]] = {}  # by region


@dataclass(frozen=True)
class Launch:
    """A request to launch instances, by RunInstances or by an Auto Scaling group.

    Attributes:
        data: as in RequestLaunchTemplateData: the launch template's data, overridden by the request's parameters; in
            place of a parameter the AMI id that it has now.
        subnets: ids of the subnets in which the instances may be launched; empty for the default VPC's.
        zones: names of the zones in which they may be launched; empty if the subnets determine the zones, or EC2 may
            choose any.
    """

    backend: MotoBackend
    data: JsonObject
    subnets: Sequence[str] = ()
    zones: Sequence[str] = ()
    count: int = 1

    def __post_init__(self) -> None:
        image = str(self.data.get("ImageId", ""))
        if image.startswith(IMAGE_PARAMETER):
            object.__setattr__(self, "data", {**self.data, "ImageId": resolved_image(self.region, image)})

    @property
    def interfaces(self) -> Sequence[JsonObject]:
        """The network interfaces in `data`."""
        return self.data.get("NetworkInterfaces") or []

    @property
    def region(self) -> str:
        """The region's name."""
        return str(self.backend.region_name)

    @property
    def type(self) -> str:
        """The instance type."""
        return str(self.data.get("InstanceType", DEFAULT_TYPE))

    @property
    def existing_interfaces(self) -> list[MotoModel]:
        """The existing network interfaces that the request names."""
        interface_ids = [
            interface["NetworkInterfaceId"] for interface in self.interfaces if interface.get("NetworkInterfaceId")
        ]
        return [self.backend.get_network_interface(interface_id) for interface_id in interface_ids]

    @property
    def candidate_zones(self) -> list[str]:
        """The zones in which the instances may be launched; empty for any."""
        subnet_zones = [self.backend.get_subnet(subnet).availability_zone for subnet in self.subnets]
        return (
            subnet_zones
            or list(self.zones)
            or [interface.subnet.availability_zone for interface in self.existing_interfaces]
        )

    @property
    def is_spot(self) -> bool:
        """Whether Spot Instances are requested; otherwise On-Demand Instances."""
        market = self.data.get("InstanceMarketOptions") or {}
        return bool(market.get("MarketType") == "spot")

    @property
    def max_price(self) -> float | None:
        """The maximum price of a Spot Instance in dollars per hour; infinite by default, None for On-Demand Instances.

        Raises:
            ValueError: the requested maximum price is not a number.
        """
        if not self.is_spot:
            return None
        text = (self.data["InstanceMarketOptions"].get("SpotOptions") or {}).get("MaxPrice")
        return math.inf if text is None else float(text)


def set_stored_values(region: str, stored_value: Callable[[str], str | None]) -> None:
    """Set how the value of a parameter of Parameter Store is read in a region, by its name; replaces an earlier way."""
    _STORED_VALUES[region] = stored_value


def resolved_image(region: str, image: str) -> str:
    """Return the AMI id that a launch template's ImageId stands for; itself if it is one, or no parameter has one."""
    stored_value = _STORED_VALUES.get(region)
    if not image.startswith(IMAGE_PARAMETER) or stored_value is None:
        return image
    return stored_value(image.removeprefix(IMAGE_PARAMETER)) or image


@patches_property(LaunchTemplateVersion, "image_id")
def _resolve_image(original: Original, self: MotoModel) -> str:
    """Launch instances from the AMI of a parameter, which moto 5.2.5 takes for an AMI id."""
    return resolved_image(self.template.ec2_backend.region_name, original(self))


def launch_template_data(instance: MotoModel) -> JsonObject:
    """Return the data of the launch template that an instance was launched from; empty if there was none."""
    tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
    template = instance.ec2_backend.launch_templates.get(tags.get("aws:ec2launchtemplate:id", ""))
    data: JsonObject = template.get_version(tags["aws:ec2launchtemplate:version"]).data if template else {}
    return data


def from_template(
    backend: MotoBackend, reference: JsonObject, *, subnets: Sequence[str] = (), zones: Sequence[str] = ()
) -> Launch:
    """Return the launch that a launch template describes.

    Args:
        reference: names the template: `LaunchTemplateId` or `LaunchTemplateName`, and perhaps `Version`.

    Raises:
        Refused: there is no such template, or no such version of it.
    """
    identifier, name = reference.get("LaunchTemplateId"), reference.get("LaunchTemplateName")
    identifier = identifier or backend.launch_template_name_to_ids.get(name)
    if identifier not in backend.launch_templates:
        raise Refused(
            "InvalidLaunchTemplateId.NotFound",
            f"The specified launch template, with template ID {identifier or name}, does not exist.",
        )
    template, version = backend.launch_templates[identifier], str(reference.get("Version") or "$Default")
    existing_versions = {str(template_version.number) for template_version in template.versions}
    if version not in {"$Default", "$Latest", *existing_versions}:
        raise Refused(
            "InvalidLaunchTemplateId.VersionNotFound",
            f"Could not find launch template version {version} for launch template id {identifier}",
        )
    return Launch(backend, template.get_version(version).data, subnets, zones)

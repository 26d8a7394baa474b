"""What a cluster takes of an account, counted from its templates and the values they are given. Asks nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.publishing.publish import child_of
from cfngen.deploy.stacks import GROUP, NESTED
from cfngen.templates.document import Document


@dataclass(frozen=True)
class Instances:
    """The instances with which an Auto Scaling group starts.

    Attributes:
        type: instance type; empty where the templates do not tell.
        count: how many.
        spot: whether they are spot instances.
    """

    type: str
    count: int
    spot: bool


@dataclass(frozen=True)
class Needs:
    """What a cluster takes when it is created.

    Attributes:
        resources: how many resources there are of each CloudFormation type.
        instances: the instances of each Auto Scaling group.
        storage: GiB of EBS volumes by volume type.
    """

    resources: Mapping[str, int]
    instances: tuple[Instances, ...]
    storage: Mapping[str, int]


@dataclass(frozen=True)
class _Template:
    """A nested template with the values its parameters get; those that other stacks supply are not known."""

    resources: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, Any]

    def of_type(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """Yield the properties of each resource of a type."""
        yield from (each.get("Properties", {}) for each in self.resources.values() if each["Type"] == kind)

    def value(self, expression: Any) -> Any:
        """Return what a property is, or None where that is not known before the stacks exist."""
        if isinstance(expression, Mapping):
            return self.values.get(expression["Ref"]) if expression.keys() == {"Ref"} else None
        return expression

    def number(self, expression: Any) -> int:
        """Return a property as a number, 0 where it is not known."""
        value = str(self.value(expression))
        return int(value) if value.isdigit() else 0

    def launched(self, group: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the data of the launch template that an Auto Scaling group uses."""
        reference = group.get("LaunchTemplate", {}).get("LaunchTemplateId")
        name = reference.get("Ref", "") if isinstance(reference, Mapping) else ""
        data: Mapping[str, Any] = self.resources.get(name, {}).get("Properties", {}).get("LaunchTemplateData", {})
        return data

    def start(self, group: Mapping[str, Any]) -> int:
        """Return how many instances an Auto Scaling group starts with."""
        return self.number(group.get("DesiredCapacity", group.get("MinSize")))


def needs(documents: Sequence[Document], values: Mapping[str, str]) -> Needs:
    """Return what a cluster takes.

    Args:
        documents: its templates, the root among them.
        values: values of the root's parameters.
    """
    resources: Counter[str] = Counter()
    storage: Counter[str] = Counter()
    instances: list[Instances] = []
    for template in _templates(documents, values):
        resources.update(each["Type"] for each in template.resources.values())
        for group in template.of_type(GROUP):
            data, count = template.launched(group), template.start(group)
            spot = data.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
            instances.append(Instances(str(template.value(data.get("InstanceType")) or ""), count, spot))
            for device in data.get("BlockDeviceMappings", ()):
                volume = device.get("Ebs", {})
                kind = str(template.value(volume.get("VolumeType")) or "")
                storage[kind] += count * template.number(volume.get("VolumeSize"))
        for volume in template.of_type("AWS::EC2::Volume"):
            storage[str(template.value(volume.get("VolumeType")) or "")] += template.number(volume.get("Size"))
    return Needs(resources, tuple(instances), {kind: size for kind, size in storage.items() if kind and size})


def _templates(documents: Sequence[Document], values: Mapping[str, str]) -> Iterator[_Template]:
    root = next(each for each in documents if each.children)
    own = {**_defaults(root), **values}
    above = _Template(root.body["Resources"], own)
    by_name = {each.name: each for each in documents}
    for properties in above.of_type(NESTED):
        child = by_name[child_of(properties["TemplateURL"])]
        passed = {name: above.value(each) for name, each in properties.get("Parameters", {}).items()}
        known = {name: each for name, each in passed.items() if each is not None}
        yield _Template(child.body["Resources"], {**_defaults(child), **known})


def _defaults(document: Document) -> dict[str, Any]:
    parameters = document.body.get("Parameters", {})
    return {name: each["Default"] for name, each in parameters.items() if "Default" in each}

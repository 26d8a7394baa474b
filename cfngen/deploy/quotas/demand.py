"""The AWS resources that a cluster needs, counted from its templates and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.aws_types import TemplatePart
from cfngen.deploy.publishing.publish import nested
from cfngen.deploy.stacks import AUTO_SCALING_GROUP, StackView
from cfngen.deploy.stacks import resources as resources_of
from cfngen.deploy.stacks import template as template_of
from cfngen.templates.document import Document
from cfngen.templates.expressions import reference, resolve

LOAD_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"


@dataclass(frozen=True)
class Instances:
    """The instances of an Auto Scaling group.

    Attributes:
        type: instance type; empty if the templates do not specify it.
        count: initial number of instances.
        spot: whether they are spot instances.
        maximum: maximum number of instances.
    """

    type: str
    count: int
    spot: bool
    maximum: int = 0

    @property
    def at_maximum_size(self) -> Instances:
        """The same group at its maximum size."""
        return replace(self, count=max(self.maximum, self.count))


@dataclass(frozen=True)
class Demand:
    """The AWS resources that a cluster needs.

    Attributes:
        resources: number of resources by CloudFormation type.
        instances: the instances of each Auto Scaling group.
        storage: GiB of EBS volumes by volume type, with every group at its initial size.
        max_storage: the same with every group at its maximum size.
        addresses: number of public addresses of nodes and of a load balancer, without Elastic IPs.
        rules: ingress rules by the logical id of their security group: the rule's logical id, and the prefix list that
            the rule names, or an empty text.
        groups: number of security groups of the network interface that has the most.
        policies: number of managed policies of the role that has the most.
    """

    resources: Mapping[str, int] = field(default_factory=dict)
    instances: tuple[Instances, ...] = ()
    storage: Mapping[str, int] = field(default_factory=dict)
    max_storage: Mapping[str, int] = field(default_factory=dict)
    addresses: int = 0
    rules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    groups: int = 0
    policies: int = 0


@dataclass(frozen=True)
class _Template:
    """The resources of a nested template, and the values of its parameters except outputs of other stacks."""

    resources: Mapping[str, TemplatePart]
    values: Mapping[str, object]

    def of_type(self, kind: str) -> Iterator[TemplatePart]:
        """Yield the properties of each resource of a type."""
        yield from (resource.get("Properties", {}) for resource in self.resources.values() if resource["Type"] == kind)

    def value(self, expression: object) -> object:
        """Return the value of a property, or None if it is not known before the stacks exist."""
        return resolve(expression, self.values)

    def number(self, expression: object) -> int:
        """Return the value of a property as a number, or 0 if it is not known."""
        value = str(self.value(expression))
        return int(value) if value.isdigit() else 0

    def launch_template_data(self, group: TemplatePart) -> TemplatePart:
        """Return the LaunchTemplateData that an Auto Scaling group uses."""
        referenced = reference(group.get("LaunchTemplate", {}).get("LaunchTemplateId"))
        name = referenced.name if referenced else ""
        data: TemplatePart = self.resources.get(name, {}).get("Properties", {}).get("LaunchTemplateData", {})
        return data

    def initial_size(self, group: TemplatePart) -> int:
        """Return the initial number of instances of an Auto Scaling group."""
        return self.number(group.get("DesiredCapacity", group.get("MinSize")))

    def rules(self) -> Iterator[tuple[str, str, str]]:
        """Yield each ingress rule: logical ids of the security group and of the rule, and the prefix list it names."""
        for name, resource in self.resources.items():
            properties = resource.get("Properties", {})
            if resource["Type"] == "AWS::EC2::SecurityGroupIngress":
                group = reference(properties.get("GroupId"))
                yield group.name if group else "", name, str(properties.get("SourcePrefixListId", ""))

    def interface_groups(self) -> Iterator[Sequence[object]]:
        """Yield the security groups of each network interface, load balancer and launch template."""
        yield from (interface.get("GroupSet", ()) for interface in self.of_type("AWS::EC2::NetworkInterface"))
        yield from (load_balancer.get("SecurityGroups", ()) for load_balancer in self.of_type(LOAD_BALANCER))
        for launch_template in self.of_type("AWS::EC2::LaunchTemplate"):
            for interface in launch_template.get("LaunchTemplateData", {}).get("NetworkInterfaces", ()):
                yield interface.get("Groups", ())


def count_demand(documents: Sequence[Document], values: Mapping[str, str]) -> Demand:
    """Return the AWS resources that a cluster needs.

    Args:
        documents: its templates, including the root.
        values: values of the root's parameters.
    """
    resources: Counter[str] = Counter()
    storage: Counter[str] = Counter()
    max_storage: Counter[str] = Counter()
    instances: list[Instances] = []
    rules: dict[str, dict[str, str]] = {}
    addresses = max_groups = max_policies = 0
    for template in _nested_templates(documents, values):
        resources.update(resource["Type"] for resource in template.resources.values())
        for group in template.of_type(AUTO_SCALING_GROUP):
            data, count, max_count = (
                template.launch_template_data(group),
                template.initial_size(group),
                template.number(group.get("MaxSize")),
            )
            spot = data.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
            instances.append(Instances(str(template.value(data.get("InstanceType")) or ""), count, spot, max_count))
            has_public_address = any(
                network_interface.get("AssociatePublicIpAddress") is True
                for network_interface in data.get("NetworkInterfaces", ())
            )
            addresses += count if has_public_address else 0
            for block_device in data.get("BlockDeviceMappings", ()):
                volume = block_device.get("Ebs", {})
                volume_type = str(template.value(volume.get("VolumeType")) or "")
                storage[volume_type] += count * template.number(volume.get("VolumeSize"))
                max_storage[volume_type] += max(max_count, count) * template.number(volume.get("VolumeSize"))
        for volume in template.of_type("AWS::EC2::Volume"):
            for sizes in (storage, max_storage):
                sizes[str(template.value(volume.get("VolumeType")) or "")] += template.number(volume.get("Size"))
        for group_id, rule, prefix_list in template.rules():
            rules.setdefault(group_id, {})[rule] = prefix_list
        for balancer in template.of_type(LOAD_BALANCER):
            addresses += len(balancer.get("Subnets", ())) if balancer.get("Scheme") == "internet-facing" else 0
        max_groups = max((max_groups, *(len(interface_group) for interface_group in template.interface_groups())))
        # The managed policies of a template are attached to the masters' role.
        policy_counts = [len(role.get("ManagedPolicyArns", ())) for role in template.of_type("AWS::IAM::Role")]
        max_policies = max((max_policies, *(count + resources["AWS::IAM::ManagedPolicy"] for count in policy_counts)))
    nonzero_sizes = [
        {volume_type: size for volume_type, size in sizes.items() if volume_type and size}
        for sizes in (storage, max_storage)
    ]
    return Demand(
        resources, tuple(instances), nonzero_sizes[0], nonzero_sizes[1], addresses, rules, max_groups, max_policies
    )


def read_deployed_demand(account: Account, stack: StackView) -> Demand:
    """Return the AWS resources that a deployed cluster needs, from the templates and parameters of its stacks.

    Raises:
        cfngen.deploy.aws_errors.AwsError: the stacks cannot be read.
    """
    with translate_aws_errors():
        root = template_of(account, stack.id)
        physical_ids = {
            resource.logical_id: resource.physical_id
            for resource in resources_of(account, stack.id)
            if resource.physical_id
        }
        names = nested(root)
        documents = [
            Document("cluster", dict(root), "", tuple(logical_id for logical_id in names if logical_id in physical_ids))
        ]
        for logical_id, name in names.items():
            if logical_id in physical_ids:
                documents.append(Document(name, dict(template_of(account, physical_ids[logical_id])), ""))
    return count_demand(documents, stack.parameters) if len(documents) > 1 else Demand()


def _nested_templates(documents: Sequence[Document], values: Mapping[str, str]) -> Iterator[_Template]:
    root = next(document for document in documents if document.children)
    root_values = {**_defaults(root), **values}
    root_template = _Template(root.body["Resources"], root_values)
    by_name = {document.name: document for document in documents}
    for logical_id, name in nested(root.body).items():
        child, properties = by_name.get(name), root.body["Resources"][logical_id]["Properties"]
        if child is None:
            continue  # the stack was never created, since an earlier one failed
        passed_values = {name: root_template.value(value) for name, value in properties.get("Parameters", {}).items()}
        known_values = {name: value for name, value in passed_values.items() if value is not None}
        yield _Template(child.body["Resources"], {**_defaults(child), **known_values})


def _defaults(document: Document) -> TemplatePart:
    parameters = document.body.get("Parameters", {})
    return {name: definition["Default"] for name, definition in parameters.items() if "Default" in definition}

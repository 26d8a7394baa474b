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
from cfngen.deploy.stacks import list_resources as resources_of
from cfngen.deploy.stacks import read_template as template_of
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
        max_storage: GiB of EBS volumes by volume type, with every group at its maximum size.
        addresses: number of public addresses of nodes and of a load balancer, without Elastic IPs.
        rules: ingress rules by the logical id of their security group. The rules of a group are a mapping from the
            rule's logical id to the prefix list that is the rule's source, or to "" if the source is not a prefix list.
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
    """The resources of a nested stack's template, and the values of its parameters.

    Parameters that take outputs of other stacks have no values here, since outputs are unknown before a deployment.

    Attributes:
        resources: the resources by logical id.
        values: the known values of parameters by name.
    """

    resources: Mapping[str, TemplatePart]
    values: Mapping[str, object]

    def properties_of_type(self, resource_type: str) -> Iterator[TemplatePart]:
        """Yield the properties of each resource of this CloudFormation type."""
        for resource in self.resources.values():
            if resource["Type"] == resource_type:
                yield resource.get("Properties", {})

    def value(self, expression: object) -> object:
        """Return the value of a property, or None if it is not known before the stacks exist."""
        return resolve(expression, self.values)

    def number_or_zero(self, expression: object) -> int:
        """Return the value of a property as a number, or 0 if it is not known."""
        value = str(self.value(expression))
        return int(value) if value.isdigit() else 0

    def launch_template_data(self, group: TemplatePart) -> TemplatePart:
        """Return the LaunchTemplateData that an Auto Scaling group uses."""
        launch_template = reference(group.get("LaunchTemplate", {}).get("LaunchTemplateId"))
        logical_id = launch_template.name if launch_template else ""
        data: TemplatePart = self.resources.get(logical_id, {}).get("Properties", {}).get("LaunchTemplateData", {})
        return data

    def initial_size(self, group: TemplatePart) -> int:
        """Return the initial number of instances of an Auto Scaling group."""
        return self.number_or_zero(group.get("DesiredCapacity", group.get("MinSize")))

    def rules(self) -> Iterator[tuple[str, str, str]]:
        """Yield each ingress rule: logical ids of its security group and of the rule, and its prefix list or ""."""
        for logical_id, resource in self.resources.items():
            properties = resource.get("Properties", {})
            if resource["Type"] == "AWS::EC2::SecurityGroupIngress":
                group = reference(properties.get("GroupId"))
                yield group.name if group else "", logical_id, str(properties.get("SourcePrefixListId", ""))

    def interface_groups(self) -> Iterator[Sequence[object]]:
        """Yield the security groups of each network interface, load balancer and launch template."""
        yield from (
            interface.get("GroupSet", ()) for interface in self.properties_of_type("AWS::EC2::NetworkInterface")
        )
        yield from (load_balancer.get("SecurityGroups", ()) for load_balancer in self.properties_of_type(LOAD_BALANCER))
        for launch_template in self.properties_of_type("AWS::EC2::LaunchTemplate"):
            for interface in launch_template.get("LaunchTemplateData", {}).get("NetworkInterfaces", ()):
                yield interface.get("Groups", ())


def count_demand(documents: Sequence[Document], values: Mapping[str, str]) -> Demand:
    """Return the AWS resources that a cluster needs.

    Args:
        documents: the cluster's templates, including the root.
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
        for group in template.properties_of_type(AUTO_SCALING_GROUP):
            data = template.launch_template_data(group)
            count = template.initial_size(group)
            max_count = template.number_or_zero(group.get("MaxSize"))
            instance_type = str(template.value(data.get("InstanceType")) or "")
            is_spot = data.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
            instances.append(Instances(instance_type, count, spot=is_spot, maximum=max_count))
            has_public_address = any(
                network_interface.get("AssociatePublicIpAddress") is True
                for network_interface in data.get("NetworkInterfaces", ())
            )
            if has_public_address:
                addresses += count
            for block_device in data.get("BlockDeviceMappings", ()):
                volume = block_device.get("Ebs", {})
                volume_type = str(template.value(volume.get("VolumeType")) or "")
                gibibytes = template.number_or_zero(volume.get("VolumeSize"))
                storage[volume_type] += count * gibibytes
                max_storage[volume_type] += max(max_count, count) * gibibytes
        for volume in template.properties_of_type("AWS::EC2::Volume"):
            volume_type = str(template.value(volume.get("VolumeType")) or "")
            gibibytes = template.number_or_zero(volume.get("Size"))
            storage[volume_type] += gibibytes
            max_storage[volume_type] += gibibytes
        for group_id, rule, prefix_list in template.rules():
            rules.setdefault(group_id, {})[rule] = prefix_list
        for balancer in template.properties_of_type(LOAD_BALANCER):
            # A load balancer that faces the internet has one public address in each of its subnets.
            if balancer.get("Scheme") == "internet-facing":
                addresses += len(balancer.get("Subnets", ()))
        group_counts = [len(security_groups) for security_groups in template.interface_groups()]
        max_groups = max((max_groups, *group_counts))
        # The managed policies of a template are attached to the masters' role.
        policy_counts = [
            len(role.get("ManagedPolicyArns", ())) for role in template.properties_of_type("AWS::IAM::Role")
        ]
        max_policies = max((max_policies, *(count + resources["AWS::IAM::ManagedPolicy"] for count in policy_counts)))
    return Demand(
        resources=resources,
        instances=tuple(instances),
        storage=_known_storage(storage),
        max_storage=_known_storage(max_storage),
        addresses=addresses,
        rules=rules,
        groups=max_groups,
        policies=max_policies,
    )


def _known_storage(storage: Mapping[str, int]) -> dict[str, int]:
    """Return the storage by volume type without unknown volume types and sizes."""
    return {volume_type: gibibytes for volume_type, gibibytes in storage.items() if volume_type and gibibytes}


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
        # Nested stacks that were never created have no physical id.
        names_by_stack = {logical_id: name for logical_id, name in nested(root).items() if logical_id in physical_ids}
        documents = [Document("cluster", dict(root), module="", children=tuple(names_by_stack))]
        for logical_id, name in names_by_stack.items():
            documents.append(Document(name, dict(template_of(account, physical_ids[logical_id])), module=""))
    return count_demand(documents, stack.parameters) if len(documents) > 1 else Demand()


def _nested_templates(documents: Sequence[Document], values: Mapping[str, str]) -> Iterator[_Template]:
    """Yield the template of each nested stack, with the values that the root passes to the stack."""
    root = next(document for document in documents if document.children)
    root_values = {**_defaults(root), **values}
    root_template = _Template(root.body["Resources"], root_values)
    documents_by_name = {document.name: document for document in documents}
    for logical_id, name in nested(root.body).items():
        child = documents_by_name.get(name)
        if child is None:
            continue  # the stack was never created, since an earlier one failed
        known_values = dict(_defaults(child))
        for parameter, expression in root.body["Resources"][logical_id]["Properties"].get("Parameters", {}).items():
            value = root_template.value(expression)
            if value is not None:
                known_values[parameter] = value
        yield _Template(child.body["Resources"], known_values)


def _defaults(document: Document) -> TemplatePart:
    """Return the default values of a template's parameters by name."""
    parameters = document.body.get("Parameters", {})
    return {name: definition["Default"] for name, definition in parameters.items() if "Default" in definition}

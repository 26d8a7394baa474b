"""A stack under construction: its parameters, resources, outputs and region, and how the root stack nests it.

Functions that add a resource return the troposphere object, so that other resources can refer to that object instead of
repeating its logical id. There are two kinds of parameters. A parameter from another stack takes the value of an
earlier stack's output of the same name. The value of any other parameter is chosen by the user who deploys the stack;
its default comes from the cluster file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import troposphere
from troposphere import AWSHelperFn, Ref, Template
from troposphere.policies import CreationPolicy

from cfngen.cluster.model import Cluster
from cfngen.templates.acknowledgements import acknowledge
from cfngen.templates.document import Document, TemplateBody
from cfngen.templates.expressions import protect_placeholders

Resource = TypeVar("Resource")
PropertyValue: TypeAlias = AWSHelperFn | str | int
"""Value of a resource's property: a text, a number, or an expression such as a reference to a parameter."""

# Parameter groups: the headings under which the console shows parameters. Each node group has a heading of its own too.
NETWORK = "Network"
ACCESS = "Access"
MASTERS = "Masters"
NODES = "All nodes"
BASTION = "Bastion"
TEMPLATES = "Location of the templates"

# Attributes of resources that contain data, but are deleted together with the stack.
DELETED_WITH_STACK = {"DeletionPolicy": "Delete", "UpdateReplacePolicy": "Delete"}
# Attributes of a resource that CloudFormation keeps: always, or unless the stack's creation fails.
ALWAYS_RETAINED = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
RETAINED_ONCE_CREATED = {"DeletionPolicy": "RetainExceptOnCreate", "UpdateReplacePolicy": "Retain"}


@dataclass(frozen=True)
class Parameter:
    """A stack parameter.

    Attributes:
        name: logical id of the parameter, the same in every stack that has it.
        type: CloudFormation type, e.g. `String` or `AWS::EC2::VPC::Id`.
        label: text that the console shows in place of the name.
        parameter_group: heading under which the console shows the parameter.
        description: explanation that the console shows below the label.
        default: default value, or None if the user must enter a value.
        constraints: further keys of the parameter's definition and their values, e.g. `AllowedPattern`.
        is_from_other_stack: whether an earlier stack's output, or the root stack itself, supplies the value.
        is_looked_up_by_root: whether the value is the name of a parameter of Parameter Store that the root looks up;
            the nested stacks take what it finds.
        value_of_root: the expression that the root passes if it has no parameter for the value, as JSON-ready data;
            None if the value comes from a parameter of the root or from an earlier stack.
    """

    name: str
    type: str
    label: str
    parameter_group: str
    description: str
    default: str | int | None = None
    constraints: Mapping[str, object] = field(default_factory=dict)
    is_from_other_stack: bool = False
    is_looked_up_by_root: bool = False
    value_of_root: object = None

    @property
    def in_nested_stack(self) -> Parameter:
        """The parameter as the nested stacks have it."""
        if not self.is_looked_up_by_root:
            return self
        return replace(self, type="String", default=None, constraints={})


@dataclass(frozen=True)
class Output:
    """An output of a nested stack.

    Attributes:
        name: logical id of the output, also the name of the parameters that take its value.
        value: the expression that CloudFormation evaluates to the output's value, as JSON-ready data.
        also_output_of_root: whether the root stack has this output too, so that users need not open the nested stack.
    """

    name: str
    value: object
    description: str
    also_output_of_root: bool


@dataclass(frozen=True)
class RootWaitCondition:
    """A wait condition that the root stack has for the instances of a nested stack.

    Attributes:
        policy: creation policy of the wait condition: how many signals it waits for, and how long.
        launched_by_group: logical id of the Auto Scaling group in the nested stack whose instances send the signal.
    """

    policy: CreationPolicy
    launched_by_group: str


@dataclass(eq=False)
class Stack:
    """A nested stack, whose template is under construction.

    Attributes:
        name: the stack's name within the cluster, also the file name without `.json`, e.g. `vpc` or `nodes-gpu`.
        logical_id: logical id of the nested stack in the root, e.g. `VpcStack`.
        source_module: the Python module that builds the stack, e.g. `cfngen.templates.vpc`; lint errors name it.
        uses_defaults_only: whether the template has default values in place of the parameters that only this nested
            stack would have, to stay below the root's maximum number of parameters.
        depends_on_in_standalone_template: for each logical id of a resource, the logical ids of the resources of other
            stacks on which the resource depends. Only the standalone template has these dependencies; between nested
            stacks, the order of the stacks already implies them.
        depends_on: logical ids of nested stacks that must be complete before this stack. Stacks whose outputs this
            stack takes need not be listed.
        root_wait_conditions: wait conditions for instances of this stack, by logical id. They are in the root stack, so
            that this stack is complete, and the next stacks can start, before the instances have signalled.
    """

    cluster: Cluster
    name: str
    logical_id: str
    source_module: str
    description: InitVar[str]
    uses_defaults_only: bool = False
    parameters: dict[str, Parameter] = field(default_factory=dict, init=False)
    outputs: dict[str, Output] = field(default_factory=dict, init=False)
    depends_on_in_standalone_template: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)
    depends_on: tuple[str, ...] = field(default=(), init=False)
    root_wait_conditions: dict[str, RootWaitCondition] = field(default_factory=dict, init=False)
    _template: Template = field(default_factory=Template, init=False)

    def __post_init__(self, description: str) -> None:
        self._template.set_version()
        self._template.set_description(description)

    def parameter(
        self,
        name: str,
        *,
        label: str,
        parameter_group: str,
        description: str,
        type: str = "String",  # noqa: A002 - CloudFormation's own word
        default: str | int | None = None,
        only_in_this_nested_stack: bool = False,
        is_looked_up_by_root: bool = False,
        **constraints: object,
    ) -> PropertyValue:
        """Add a parameter whose value the user chooses at deployment; return a reference to it, or to what it leads to.

        Args:
            is_looked_up_by_root: whether the value is the name of a parameter of Parameter Store, the parameter's type
                `AWS::SSM::Parameter::Value<…>`. The root looks it up once for all nested stacks; those get what it
                finds, as a `String`, and have no default. The constraints apply to the name.
            only_in_this_nested_stack: whether no other nested stack has the parameter. If this stack has
                `uses_defaults_only`, such a parameter is not added; the result is the default value itself.
        """
        if only_in_this_nested_stack and self.uses_defaults_only and default is not None:
            return default
        return self._add_parameter(
            Parameter(
                name,
                type=type,
                label=label,
                parameter_group=parameter_group,
                description=description,
                default=default,
                constraints=constraints,
                is_looked_up_by_root=is_looked_up_by_root,
            )
        )

    def parameter_from_other_stack(
        self, name: str, *, description: str, value_of_root: PropertyValue | None = None
    ) -> PropertyValue:
        """Add a parameter that takes the output of the same name from an earlier stack; return a reference to it.

        In a change set created before the earlier stack exists, CloudFormation passes a placeholder in place of the
        output's value. The placeholder is not a valid id, so the parameter's type is `String`, without a pattern. The
        value may only be passed on unchanged, since `Fn::Select`, `Fn::Split` and `Fn::Cidr` cannot parse the
        placeholder. The lint rule E9019 rejects templates in which a parameter has another type or its value is parsed.

        Args:
            value_of_root: an expression that the root resolves, once for all nested stacks, in place of an output; it
                refers to nothing in the template. In the standalone template it is in place of the references.
        """
        return self._add_parameter(
            Parameter(
                name,
                type="String",
                label=name,
                parameter_group="From other stacks",
                description=description,
                is_from_other_stack=True,
                value_of_root=None if value_of_root is None else as_json(value_of_root),
            )
        )

    def _add_parameter(self, parameter: Parameter) -> PropertyValue:
        """Add a parameter, unless the stack has one of that name; return a reference to it."""
        if parameter.name not in self.parameters:
            self.parameters[parameter.name] = parameter
            add_parameter(self._template, parameter.in_nested_stack)
        return Ref(parameter.name)

    def add(self, resource: Resource, *, depends_on_in_standalone_template: Sequence[str] = ()) -> Resource:
        """Add a resource and return it.

        Args:
            depends_on_in_standalone_template: logical ids of resources of other stacks on which the resource depends;
                only the standalone template has these dependencies.
        """
        self._template.add_resource(resource)
        if depends_on_in_standalone_template:
            self.depends_on_in_standalone_template[resource.title] = tuple(depends_on_in_standalone_template)  # type: ignore[attr-defined]
        return resource

    def add_root_wait_condition(self, logical_id: str, policy: CreationPolicy, *, launched_by_group: str) -> None:
        """Add a wait condition for instances of this stack to the root stack.

        The creation of the root stack, and so of the cluster, waits for the signals. The creation of this nested stack
        does not, so that the stacks after it can start.
        """
        self.root_wait_conditions[logical_id] = RootWaitCondition(policy, launched_by_group)

    @property
    def resource_ids(self) -> Collection[str]:
        """Logical ids of the resources added so far."""
        return set(self._template.resources)

    def output(self, name: str, value: PropertyValue, description: str, *, also_output_of_root: bool = False) -> None:
        """Add an output; with `also_output_of_root` the root stack gets the same output."""
        self._template.add_output(troposphere.Output(name, Description=description, Value=value))
        self.outputs[name] = Output(
            name, value=as_json(value), description=description, also_output_of_root=also_output_of_root
        )

    def document(self) -> Document:
        """Return the stack's complete template."""
        body = complete_template(self._template, self.cluster, self.name, self.parameters.values())
        return Document(self.name, body, module=self.source_module)


def add_parameter(template: Template, parameter: Parameter, *, type: str | None = None) -> None:  # noqa: A002
    """Add a parameter to a troposphere template, with its own type or with another CloudFormation type, `type`."""
    definition = {"Type": type or parameter.type, "Description": parameter.description, **parameter.constraints}
    if parameter.default is not None:
        definition["Default"] = parameter.default
    template.add_parameter(troposphere.Parameter(parameter.name, **definition))


def complete_template(
    template: Template,
    cluster: Cluster,
    name: str,
    parameters: Iterable[Parameter],
    settings_to_record: Mapping[str, str] | None = None,
) -> TemplateBody:
    """Return a template as JSON-ready data, with metadata and a rule that fails in other regions than the cluster's.

    Args:
        name: the stack's name; it is written into the metadata, from which cfngen recognizes templates it generated.
        parameters: the template's parameters, in the order in which the console shows them below each heading.
        settings_to_record: the immutable settings, by their keys in the cluster file, for the metadata of the root and
            standalone templates.
    """
    cfngen_metadata: dict[str, object] = {"cluster": cluster.name, "stack": name}
    if settings_to_record:
        cfngen_metadata["immutableSettings"] = dict(settings_to_record)
    metadata: dict[str, object] = {
        "cfngen": cfngen_metadata,
        # cfn-lint then checks the template for this region, also when the user runs it without options.
        "cfn-lint": {"config": {"regions": [cluster.region]}},
    }
    if parameters := list(parameters):
        metadata["AWS::CloudFormation::Interface"] = _console_interface(parameters)
    template.set_metadata(metadata)
    body: TemplateBody = as_json(template.to_dict())
    for resource in body.get("Resources", {}).values():
        if "Properties" in resource:
            resource["Properties"] = protect_placeholders(resource["Properties"])
    acknowledge(body.get("Resources", {}), is_backed_up=cluster.etcd.backups.enabled)
    body["Rules"] = {"Region": {"Assertions": [_region_assertion(cluster.region)]}}
    return body


def _console_interface(parameters: Sequence[Parameter]) -> dict[str, object]:
    """Return the metadata that tells the console how to group and label the parameters."""
    names_by_parameter_group: dict[str, list[str]] = {}
    # Within a group, what has no default comes first.
    for parameter in sorted(parameters, key=lambda parameter: parameter.default is not None):
        names_by_parameter_group.setdefault(parameter.parameter_group, []).append(parameter.name)
    # The headings of node groups are not listed; they come between NODES and TEMPLATES.
    # Access is first, since it has the question without a default in a new cluster: who may reach the API.
    heading_order = {ACCESS: 0, NETWORK: 1, BASTION: 2, MASTERS: 3, NODES: 4, TEMPLATES: 6}
    node_group_order = 5
    headings = sorted(names_by_parameter_group, key=lambda heading: heading_order.get(heading, node_group_order))
    return {
        "ParameterGroups": [
            {"Label": {"default": heading}, "Parameters": names_by_parameter_group[heading]} for heading in headings
        ],
        "ParameterLabels": {parameter.name: {"default": parameter.label} for parameter in parameters},
    }


def _region_assertion(region: str) -> dict[str, object]:
    """Return what a rule asserts before CloudFormation creates anything: that the stack is in the cluster's region.

    The zones, the images and the DHCP domain belong to that region; elsewhere the creation would fail half-way.
    """
    return {
        "Assert": {"Fn::Equals": [{"Ref": "AWS::Region"}, region]},
        "AssertDescription": f"This template was generated for {region}; "
        "switch the console to that region, or generate templates for this one",
    }


def as_json(value: object) -> Any:
    """Return an expression as JSON-ready data, in which troposphere objects are dicts and tuples are lists."""
    # Most values are of the first types; to ask for attributes, or for an abstract class, takes long.
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if hasattr(value, "to_dict"):
        return as_json(value.to_dict())
    if hasattr(value, "JSONrepr"):
        return as_json(value.JSONrepr())
    return {str(key): as_json(item) for key, item in value.items()} if isinstance(value, Mapping) else value

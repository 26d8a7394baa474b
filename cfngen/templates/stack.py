"""One stack under construction: its parameters, resources and outputs, and what the root needs to know of them.

Functions that add a resource return it, so that later resources refer to the object and not to a name in a string.
Wiring is by name: a *wired* parameter takes the output of the same name from an earlier stack. The value of any other
parameter is chosen by the person who deploys; its default is the cluster file's value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import troposphere
from troposphere import Ref, Template
from troposphere.policies import CreationPolicy

from cfngen.cluster.model import Cluster
from cfngen.templates.document import Document, TemplateBody
from cfngen.templates.literal import literal
from cfngen.templates.property_value import Value

Resource = TypeVar("Resource")

# Groups of parameters in the order in which the console shows them; a node group's own follow.
NETWORK, ACCESS, MASTERS, NODES, TEMPLATES = "Network", "Access", "Masters", "All nodes", "Where the templates are"

# Explicit policies of resources that hold state and are deleted with the stack; masters' data volumes leave a snapshot.
WITH_THE_STACK = {"DeletionPolicy": "Delete", "UpdateReplacePolicy": "Delete"}


@dataclass(frozen=True)
class Parameter:
    """A stack parameter.

    Attributes:
        name: its logical id, the same in every stack that has it.
        type: CloudFormation type, e.g. `String` or `AWS::EC2::VPC::Id`.
        label: what the console shows in place of the name.
        group: heading under which the console shows it.
        description: what it means.
        default: default value, or None when a value must be given.
        constraints: further keys of the definition, e.g. `AllowedPattern`.
        wired: whether an earlier stack (or the root itself) supplies it.
    """

    name: str
    type: str
    label: str
    group: str
    description: str
    default: str | int | None = None
    constraints: Mapping[str, object] = field(default_factory=dict)
    wired: bool = False


@dataclass(frozen=True)
class Output:
    """A stack output.

    Attributes:
        name: its logical id, the name of the parameters it supplies.
        value: the expression behind it, as JSON-ready data.
        description: what it is.
        in_root: whether the root stack repeats it, because people need it.
    """

    name: str
    value: object
    description: str
    in_root: bool


@dataclass(frozen=True)
class OuterWaitCondition:
    """A wait condition that belongs to a stack but is created in the stack that nests it.

    Attributes:
        policy: its creation policy, as troposphere's object.
        launched_by: logical id of the stack's resource whose instances send the signal.
    """

    policy: CreationPolicy
    launched_by: str


class Stack:
    """A template under construction.

    Attributes:
        name: name within the cluster and file stem, e.g. `vpc` or `nodes-gpu`.
        logical_id: logical id of the nested stack in the root, e.g. `VpcStack`.
        module: the module that builds it.
        parameters: its parameters by name.
        outputs: its outputs by name.
        fixed_parameters: whether the parameters that only this stack has are replaced by their defaults.
        standalone_depends_on: DependsOn between resources of different stacks, by logical id: used in the standalone
            template only. Between nested stacks the order of the stacks does the same.
        depends_on: logical ids of nested stacks that must be complete before this one, besides those whose outputs it
            takes.
        outer_wait_conditions: wait conditions for instances of this stack, by logical id. They are created in the root
            stack after this one, so that stacks that depend on this one do not wait for them.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        logical_id: str,
        module: str,
        description: str,
        *,
        fixed_parameters: bool = False,
    ) -> None:
        self.name = name
        self.logical_id = logical_id
        self.module = module
        self.fixed_parameters = fixed_parameters
        self.parameters: dict[str, Parameter] = {}
        self.outputs: dict[str, Output] = {}
        self.standalone_depends_on: dict[str, tuple[str, ...]] = {}
        self.depends_on: tuple[str, ...] = ()
        self.outer_wait_conditions: dict[str, OuterWaitCondition] = {}
        self._cluster = cluster
        self._template = Template()
        self._template.set_version()
        self._template.set_description(description)

    def parameter(
        self,
        name: str,
        *,
        label: str,
        group: str,
        description: str,
        type: str = "String",  # noqa: A002 - CloudFormation's own word
        default: str | int | None = None,
        only_in_this_stack: bool = False,
        **constraints: object,
    ) -> Value:
        """Add a parameter whose value the person who deploys chooses; return the reference to it.

        Args:
            name: see `Parameter`, as for the others.
            label: what the console shows in place of the name.
            group: heading under which the console shows it.
            description: what it means.
            type: CloudFormation type.
            default: default value.
            only_in_this_stack: whether no other stack has it; with `fixed_parameters` the default is returned instead.
            constraints: further keys of the definition.
        """
        if only_in_this_stack and self.fixed_parameters and default is not None:
            return default
        return self._add(Parameter(name, type, label, group, description, default, constraints))

    def wired_parameter(self, name: str, *, description: str) -> Value:
        """Add a parameter that takes the output of the same name from an earlier stack; return the reference to it.

        It is a `String` without a pattern, and may only be passed on unchanged: in a change set made before the earlier
        stack exists, its value is a placeholder, which EC2 does not accept as an id and which `Fn::Select`, `Fn::Split`
        and `Fn::Cidr` cannot take apart. The lint rule E9019 refuses both.
        """
        return self._add(Parameter(name, "String", name, "From the other stacks", description, wired=True))

    def _add(self, parameter: Parameter) -> Value:
        if parameter.name not in self.parameters:
            self.parameters[parameter.name] = parameter
            add_parameter(self._template, parameter)
        return Ref(parameter.name)

    def add(self, resource: Resource, *, standalone_depends_on: Sequence[str] = ()) -> Resource:
        """Add a resource and return it.

        Args:
            resource: a troposphere resource.
            standalone_depends_on: logical ids of other stacks' resources that it depends on (see the class).
        """
        self._template.add_resource(resource)
        if standalone_depends_on:
            self.standalone_depends_on[resource.title] = tuple(standalone_depends_on)  # type: ignore[attr-defined]
        return resource

    def add_outer_wait_condition(self, title: str, policy: CreationPolicy, *, launched_by: str) -> None:
        """Let the creation of the cluster, but not of this stack, wait for signals (see `outer_wait_conditions`).

        Args:
            title: logical id of the wait condition.
            policy: its creation policy.
            launched_by: logical id of this stack's resource whose instances send the signal.
        """
        self.outer_wait_conditions[title] = OuterWaitCondition(policy, launched_by)

    @property
    def resources(self) -> Collection[str]:
        """Logical ids of the resources that were added so far."""
        return set(self._template.resources)

    def output(self, name: str, value: Value, description: str, *, in_root: bool = False) -> None:
        """Add an output; with `in_root` the root stack repeats it for people."""
        self._template.add_output(troposphere.Output(name, Description=description, Value=value))
        self.outputs[name] = Output(name, plain(value), description, in_root)

    def document(self) -> Document:
        """Return the finished template."""
        body = finish(self._template, self._cluster, self.name, self.parameters.values())
        return Document(self.name, body, self.module)


def add_parameter(template: Template, parameter: Parameter, *, type: str | None = None) -> None:  # noqa: A002
    """Add a parameter to a troposphere template, with another type if one is given."""
    definition = {"Type": type or parameter.type, "Description": parameter.description, **parameter.constraints}
    if parameter.default is not None:
        definition["Default"] = parameter.default
    template.add_parameter(troposphere.Parameter(parameter.name, **definition))


def finish(
    template: Template,
    cluster: Cluster,
    name: str,
    parameters: Iterable[Parameter],
    settings: Mapping[str, str] | None = None,
) -> TemplateBody:
    """Return a template as JSON-ready data, with the console's parameter groups and the rule on the region.

    Args:
        template: the troposphere template.
        cluster: the cluster; its templates are made for its region.
        name: name of the stack, kept in the metadata so that cfngen knows its own files.
        parameters: the `Parameter`s, in the order in which the console shows them within a group.
        settings: what `immutable_settings` returns; only in templates of a whole cluster.
    """
    groups: dict[str, list[str]] = {}
    labels: dict[str, dict[str, str]] = {}
    for parameter in parameters:
        groups.setdefault(parameter.group, []).append(parameter.name)
        labels[parameter.name] = {"default": parameter.label}
    rank = {NETWORK: 0, ACCESS: 1, MASTERS: 2, NODES: 3, TEMPLATES: 9}
    recorded = {"immutableSettings": dict(settings)} if settings else {}
    metadata: dict[str, object] = {
        "cfngen": {"cluster": cluster.name, "stack": name, **recorded},
        # cfn-lint checks the template for this region, whoever runs it.
        "cfn-lint": {"config": {"regions": [cluster.region]}},
    }
    if groups:
        metadata["AWS::CloudFormation::Interface"] = {
            "ParameterGroups": [
                {"Label": {"default": group}, "Parameters": groups[group]}
                for group in sorted(groups, key=lambda heading: rank.get(heading, 5))
            ],
            "ParameterLabels": labels,
        }
    template.set_metadata(metadata)
    body: TemplateBody = plain(template.to_dict())
    for resource in body.get("Resources", {}).values():
        if "Properties" in resource:
            resource["Properties"] = literal(resource["Properties"])
    # Zones, image parameters and the DHCP domain are those of this region; in another one the stack would fail later.
    body["Rules"] = {
        "Region": {
            "Assertions": [
                {
                    "Assert": {"Fn::Equals": [{"Ref": "AWS::Region"}, cluster.region]},
                    "AssertDescription": f"This template was generated for {cluster.region}; "
                    "switch the console to that region, or generate templates for this one",
                }
            ]
        }
    }
    return body


def plain(value: object) -> Any:
    """Return an expression as JSON-ready data: troposphere objects become dicts, tuples become lists."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if hasattr(value, "JSONrepr"):
        return plain(value.JSONrepr())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value

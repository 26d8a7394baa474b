"""One stack while it is being built: parameters, resources and outputs, and what the root needs to know of them.

Functions that add a resource return it, so that later resources refer to objects and not to names typed as text.
Wiring is by name: a *wired* parameter takes the output of the same name of an earlier stack; any other parameter is
asked of the person who deploys, and has the cluster file's value as its default.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import troposphere
from troposphere import Ref

from cfngen.cluster.model import Cluster
from cfngen.templates.document import Document
from cfngen.templates.literal import literal

Resource = TypeVar("Resource")

# Groups of parameters in the order in which the console shows them; a node group's own follow.
NETWORK, ACCESS, MASTERS, NODES, TEMPLATES = "Network", "Access", "Masters", "All nodes", "Where the templates are"

# Said aloud on what holds state and yet goes with its stack; masters' data volumes leave a snapshot instead.
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
    constraints: Mapping[str, Any] = field(default_factory=dict)
    wired: bool = False


@dataclass(frozen=True)
class Output:
    """A stack output.

    Attributes:
        name: its logical id, the name of the parameters it supplies.
        value: the expression behind it, as JSON-ready data.
        description: what it is.
        shown: whether a person needs it, so that the root repeats it.
    """

    name: str
    value: Any
    description: str
    shown: bool


@dataclass(frozen=True)
class Awaited:
    """A wait condition beside a stack.

    Attributes:
        policy: its creation policy, troposphere's.
        after: logical id of the stack's resource that launches what signals it.
    """

    policy: Any
    after: str


class Stack:
    """A template under construction.

    Attributes:
        name: name within the cluster and file stem, e.g. `vpc` or `nodes-gpu`.
        logical_id: logical id of the nested stack in the root, e.g. `VpcStack`.
        module: the module that builds it.
        parameters: its parameters by name.
        outputs: its outputs by name.
        settled: whether values that only this stack asks for are written into the template instead.
        after: logical ids of other stacks' resources that a resource must wait for once all stacks are flattened into
            one template. Nested, the order of the stacks already sees to it.
        follows: logical ids of the nested stacks that this one comes after although it takes nothing from them.
        awaited: wait conditions for what this stack has begun, by logical id. They are not in it, but in what nests it,
            after it, so that whoever follows the stack need not wait for them.
    """

    def __init__(
        self, cluster: Cluster, name: str, logical_id: str, module: str, description: str, *, settled: bool = False
    ) -> None:
        self.name = name
        self.logical_id = logical_id
        self.module = module
        self.settled = settled
        self.parameters: dict[str, Parameter] = {}
        self.outputs: dict[str, Output] = {}
        self.after: dict[str, tuple[str, ...]] = {}
        self.follows: tuple[str, ...] = ()
        self.awaited: dict[str, Awaited] = {}
        self._cluster = cluster
        self._template = troposphere.Template()
        self._template.set_version()
        self._template.set_description(description)

    def ask(
        self,
        name: str,
        *,
        label: str,
        group: str,
        description: str,
        type: str = "String",  # noqa: A002 - CloudFormation's own word
        default: str | int | None = None,
        own: bool = False,
        **constraints: Any,
    ) -> Any:
        """Add a parameter whose value the person who deploys may choose; return the reference to it.

        Args:
            name: see `Parameter`, as for the others.
            label: what the console shows in place of the name.
            group: heading under which the console shows it.
            description: what it means.
            type: CloudFormation type.
            default: default value.
            own: whether no other stack asks for it; a settled stack then takes the default for good and returns it.
            constraints: further keys of the definition.
        """
        if own and self.settled and default is not None:
            return default
        return self._add(Parameter(name, type, label, group, description, default, constraints))

    def wire(self, name: str, *, description: str) -> Any:
        """Add a parameter that takes the output of the same name of an earlier stack; return the reference to it.

        It is a `String` without a pattern, and must be handed on as it is: before the earlier stack exists, a nested
        change set gives it a placeholder, which is no id that EC2 knows and nothing that `Fn::Select`, `Fn::Split` or
        `Fn::Cidr` could look into. The rule E9019 refuses both.
        """
        return self._add(Parameter(name, "String", name, "From the other stacks", description, wired=True))

    def _add(self, parameter: Parameter) -> Any:
        if parameter.name not in self.parameters:
            self.parameters[parameter.name] = parameter
            add_parameter(self._template, parameter)
        return Ref(parameter.name)

    def add(self, resource: Resource, *, after: Sequence[str] = ()) -> Resource:
        """Add a resource and return it.

        Args:
            resource: a troposphere resource.
            after: logical ids of other stacks' resources it must wait for (see the class).
        """
        self._template.add_resource(resource)
        if after:
            self.after[resource.title] = tuple(after)  # type: ignore[attr-defined]
        return resource

    def await_outside(self, title: str, policy: Any, *, after: str) -> None:
        """Let the creation of the cluster, and not that of this stack, wait for signals (see `awaited`).

        Args:
            title: logical id of the wait condition.
            policy: its creation policy.
            after: logical id of the resource of this stack that launches what signals it.
        """
        self.awaited[title] = Awaited(policy, after)

    @property
    def resources(self) -> Collection[str]:
        """Logical ids of the resources that were added so far."""
        return set(self._template.resources)

    def output(self, name: str, value: Any, description: str, *, shown: bool = False) -> None:
        """Add an output; `shown` ones are repeated by the root because a person needs them."""
        self._template.add_output(troposphere.Output(name, Description=description, Value=value))
        self.outputs[name] = Output(name, plain(value), description, shown)

    def document(self) -> Document:
        """Return the finished template."""
        body = finish(self._template, self._cluster, self.name, self.parameters.values())
        return Document(self.name, body, self.module)


def add_parameter(template: Any, parameter: Parameter, *, type: str | None = None) -> None:  # noqa: A002
    """Add a parameter to a troposphere template, with another type if one is given."""
    definition = {"Type": type or parameter.type, "Description": parameter.description, **parameter.constraints}
    if parameter.default is not None:
        definition["Default"] = parameter.default
    template.add_parameter(troposphere.Parameter(parameter.name, **definition))


def finish(
    template: Any, cluster: Cluster, name: str, parameters: Any, notes: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a template as JSON-ready data, with the console's parameter groups and the rule on the region.

    Args:
        template: the troposphere template.
        cluster: the cluster; its templates are made for its region.
        name: name of the stack, kept in the metadata so that cfngen knows its own files.
        parameters: the `Parameter`s, in the order in which the console shows them within a group.
        notes: what a later deployment wants to know of the cluster; in the template of a whole cluster.
    """
    groups: dict[str, list[str]] = {}
    labels: dict[str, Any] = {}
    for parameter in parameters:
        groups.setdefault(parameter.group, []).append(parameter.name)
        labels[parameter.name] = {"default": parameter.label}
    rank = {NETWORK: 0, ACCESS: 1, MASTERS: 2, NODES: 3, TEMPLATES: 9}
    metadata: dict[str, Any] = {
        "cfngen": {"cluster": cluster.name, "stack": name, **({"immutableSettings": dict(notes)} if notes else {})},
        # Whoever lints the template by itself should have it judged for its own region.
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
    body: dict[str, Any] = plain(template.to_dict())
    for resource in body.get("Resources", {}).values():
        if "Properties" in resource:
            resource["Properties"] = literal(resource["Properties"])
    # Zones, image lookups and the DHCP domain were decided for this region; elsewhere the stack could only fail later.
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


def plain(value: Any) -> Any:
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

"""The root template, which nests the other stacks, passes parameters to them and has the outputs for users."""

from __future__ import annotations

from collections.abc import Sequence

import troposphere
from troposphere import GetAtt, Join, Ref, Sub, cloudformation

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import NodeGroupId
from cfngen.cluster.naming.network_ids import SecurityGroupId
from cfngen.cluster.security_groups.rules import LOAD_BALANCER_ROLES
from cfngen.templates.document import Document
from cfngen.templates.immutable_settings import settings_to_record
from cfngen.templates.references import reference_outputs
from cfngen.templates.stack import DELETED_WITH_STACK, TEMPLATES, Parameter, Stack, add_parameter, complete_template
from cfngen.templates.tagging import tags, tags_without_kubernetes_io_tag
from cfngen.templates.wiring import Wiring

_TEMPLATE_LOCATION_PARAMETERS = (
    Parameter(
        "TemplateBucket",
        type="String",
        label="S3 bucket of the templates",
        parameter_group=TEMPLATES,
        description="S3 bucket, in this region, that holds the templates of the nested stacks",
        constraints={
            "AllowedPattern": r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
            "ConstraintDescription": "must be the name of an S3 bucket",
        },
    ),
    Parameter(
        "TemplatePrefix",
        type="String",
        label="Folder of the templates",
        parameter_group=TEMPLATES,
        description="Folder in the bucket, ending in a slash; empty if the templates are at the top level",
        default="",
        constraints={
            "AllowedPattern": r"^([A-Za-z0-9!_.*'()-]+/)*$",
            "ConstraintDescription": "must be empty or end in a slash",
        },
    ),
)


def build(cluster: Cluster, stacks: Sequence[Stack], wiring: Wiring) -> Document:
    """Return the root template.

    Args:
        stacks: the stacks to nest, each after the stacks whose outputs it takes.
    """
    template = troposphere.Template()
    template.set_version()
    template.set_description(
        f"Kubernetes cluster {cluster.name}, version {cluster.kubernetes_version}: root stack, which nests the others"
    )
    parameters = [*wiring.root_parameters.values(), *_TEMPLATE_LOCATION_PARAMETERS]
    for parameter in parameters:
        add_parameter(template, parameter, type=_type_in_root(parameter))
    for stack in stacks:
        template.add_resource(_nested_stack(cluster, stack, wiring))
        for wait_condition_id, wait_condition in stack.root_wait_conditions.items():
            template.add_resource(
                cloudformation.WaitCondition(
                    wait_condition_id, DependsOn=[stack.logical_id], CreationPolicy=wait_condition.policy
                )
            )
        for output in stack.outputs.values():
            if output.also_output_of_root:
                value = GetAtt(stack.logical_id, f"Outputs.{output.name}")
                template.add_output(troposphere.Output(output.name, Description=output.description, Value=value))
    for reference_output in reference_outputs(cluster):
        template.add_output(reference_output)
    body = complete_template(
        template, cluster, name="cluster", parameters=parameters, settings_to_record=settings_to_record(cluster)
    )
    return Document("cluster", body, module=__name__, children=tuple(stack.name for stack in stacks))


def _type_in_root(parameter: Parameter) -> str:
    if parameter.is_looked_up_by_root:
        return parameter.type
    # The nested stack resolves the SSM parameter, so the root must pass on the parameter's name. If the parameter had
    # the same type in the root, CloudFormation would resolve it there, and the nested stack would get an AMI id.
    return "String" if parameter.type.startswith("AWS::SSM::Parameter::Value") else parameter.type


def _nested_stack(cluster: Cluster, stack: Stack, wiring: Wiring) -> cloudformation.Stack:
    passed_values = {parameter.name: _passed_value(parameter, wiring) for parameter in stack.parameters.values()}
    # The cloud controller manager fails if two security groups of an instance have the tag
    # `kubernetes.io/cluster/<name>`, so only the first group of masters and of nodes has it
    # (`cfngen.templates.security_groups`). Resources inherit the tags of their stack, so a stack that contains other
    # groups must not have the tag either.
    has_group_without_tag = any(map(_is_group_without_tag, stack.resource_ids))
    tag_function = tags_without_kubernetes_io_tag if has_group_without_tag else tags
    optional_properties: dict[str, object] = {}
    if passed_values:
        optional_properties["Parameters"] = passed_values
    if stack.depends_on:
        optional_properties["DependsOn"] = list(stack.depends_on)
    return cloudformation.Stack(
        stack.logical_id,
        TemplateURL=Sub(
            f"https://${{TemplateBucket}}.s3.${{AWS::Region}}.${{AWS::URLSuffix}}/${{TemplatePrefix}}{stack.name}.json"
        ),
        Tags=tag_function(cluster, f"{cluster.name}-{stack.name}"),
        **DELETED_WITH_STACK,
        **optional_properties,
    )


def _is_group_without_tag(logical_id: str) -> bool:
    """Return whether a logical id is that of a security group beside the first one of masters or nodes."""
    group_of_role, group_of_node_group = SecurityGroupId.parse(logical_id), NodeGroupId.parse(logical_id)
    return bool(
        (group_of_role and (group_of_role.role in LOAD_BALANCER_ROLES or group_of_role.number > 1))
        or (group_of_node_group and group_of_node_group.part == "SecurityGroup")
    )


def _passed_value(parameter: Parameter, wiring: Wiring) -> object:
    """Return the value that the root passes to a nested stack's parameter.

    It is a reference to the root's parameter of the same name, to an output of an earlier nested stack, or a value of
    the root stack itself.
    """
    if not parameter.is_from_other_stack:
        reference = Ref(parameter.name)
        # AWS::CloudFormation::Stack takes a list as text, with commas between the items.
        return Join(",", reference) if parameter.type.startswith(("List<", "CommaDelimitedList")) else reference
    if parameter.name in wiring.values_of_root:
        return wiring.values_of_root[parameter.name]
    stack, output = wiring.suppliers[parameter.name]
    return GetAtt(stack.logical_id, f"Outputs.{output.name}")

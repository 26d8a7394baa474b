"""The root template, which nests the other stacks, passes parameters to them and has the outputs for users."""

from __future__ import annotations

from collections.abc import Sequence

import troposphere
from troposphere import GetAtt, Join, Ref, Sub, cloudformation

from cfngen.cluster.model import Cluster
from cfngen.cluster.security_group_ids import SecurityGroupId
from cfngen.templates.document import Document
from cfngen.templates.immutable_settings import immutable_settings
from cfngen.templates.stack import DELETED_WITH_STACK, TEMPLATES, Parameter, Stack, add_parameter, complete_template
from cfngen.templates.tagging import tags, tags_without_cluster_tag
from cfngen.templates.wiring import ROOT_VALUES, Wiring

_TEMPLATE_LOCATION = (
    Parameter(
        "TemplateBucket",
        type="String",
        label="Bucket of the templates",
        group=TEMPLATES,
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
        group=TEMPLATES,
        description="Folder in the bucket, ending in a slash; empty if the templates lie at the top",
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
        cluster: the cluster.
        stacks: the stacks to nest, each after the stacks whose outputs it takes.
        wiring: the output that supplies each parameter.
    """
    template = troposphere.Template()
    template.set_version()
    template.set_description(f"Kubernetes cluster {cluster.name}: root of its nested stacks")
    parameters = [*wiring.root_parameters.values(), *_TEMPLATE_LOCATION]
    for parameter in parameters:
        add_parameter(template, parameter, type=_root_type(parameter))
    for stack in stacks:
        template.add_resource(_nested_stack(cluster, stack, wiring))
        for wait_condition_id, wait_condition in stack.root_wait_conditions.items():
            template.add_resource(
                cloudformation.WaitCondition(
                    wait_condition_id, DependsOn=[stack.logical_id], CreationPolicy=wait_condition.policy
                )
            )
        for output in stack.outputs.values():
            if output.in_root:
                value = GetAtt(stack.logical_id, f"Outputs.{output.name}")
                template.add_output(troposphere.Output(output.name, Description=output.description, Value=value))
    body = complete_template(template, cluster, "cluster", parameters, immutable_settings(cluster))
    return Document("cluster", body, __name__, tuple(stack.name for stack in stacks))


def _root_type(parameter: Parameter) -> str:
    """Return the type that a nested stack's parameter has in the root template."""
    # The nested stack resolves the SSM parameter, so the root must pass on the parameter's name. If the parameter had
    # the same type in the root, CloudFormation would resolve it there, and the nested stack would get an AMI id.
    return "String" if parameter.type.startswith("AWS::SSM::Parameter::Value") else parameter.type


def _nested_stack(cluster: Cluster, stack: Stack, wiring: Wiring) -> cloudformation.Stack:
    """Return the resource that nests a stack."""
    values = {parameter.name: _passed_value(parameter, wiring) for parameter in stack.parameters.values()}
    # The cloud controller manager fails if two security groups of an instance have the tag
    # `kubernetes.io/cluster/<name>`, so additional groups do not have the tag (`cfngen.templates.security_groups`).
    # Resources inherit the tags of their stack, so a stack that contains such groups must not have the tag either.
    security_groups = [group for logical_id in stack.resources if (group := SecurityGroupId.parse(logical_id))]
    omits_cluster_tag = any(group.role == "ApiLoadBalancer" or group.number > 1 for group in security_groups)
    tag_function = tags_without_cluster_tag if omits_cluster_tag else tags
    optional_properties: dict[str, object] = {}
    if values:
        optional_properties["Parameters"] = values
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


def _passed_value(parameter: Parameter, wiring: Wiring) -> object:
    """Return the value that the root passes to a nested stack's parameter."""
    if not parameter.is_from_other_stack:
        reference = Ref(parameter.name)
        # AWS::CloudFormation::Stack takes a list as text, with commas between the items.
        return Join(",", reference) if parameter.type.startswith(("List<", "CommaDelimitedList")) else reference
    if parameter.name in wiring.suppliers:
        stack, output = wiring.suppliers[parameter.name]
        return GetAtt(stack.logical_id, f"Outputs.{output.name}")
    return ROOT_VALUES[parameter.name]

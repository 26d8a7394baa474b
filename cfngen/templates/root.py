"""The root template, derived from the stacks that it nests: their parameters, their order and outputs for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import troposphere
from troposphere import GetAtt, Join, Ref, Sub, cloudformation

from cfngen.cluster.model import Cluster
from cfngen.templates.document import Document
from cfngen.templates.immutable_settings import immutable_settings
from cfngen.templates.security_groups import ACCESS_GROUP, LOAD_BALANCER_GROUP
from cfngen.templates.stack import TEMPLATES, WITH_THE_STACK, Parameter, Stack, add_parameter, finish
from cfngen.templates.tagging import private_tags, tags
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
        stacks: the stacks to nest, in the order of their dependencies.
        wiring: which stack supplies which parameter.
    """
    template = troposphere.Template()
    template.set_version()
    template.set_description(f"Kubernetes cluster {cluster.name}: root of its nested stacks")
    parameters = [*wiring.operator_parameters.values(), *_TEMPLATE_LOCATION]
    for parameter in parameters:
        add_parameter(template, parameter, type=_root_type(parameter))
    for stack in stacks:
        template.add_resource(_nested_stack(cluster, stack, wiring))
        for title, wait_condition in stack.outer_wait_conditions.items():
            template.add_resource(
                cloudformation.WaitCondition(title, DependsOn=[stack.logical_id], CreationPolicy=wait_condition.policy)
            )
        for output in stack.outputs.values():
            if output.in_root:
                value = GetAtt(stack.logical_id, f"Outputs.{output.name}")
                template.add_output(troposphere.Output(output.name, Description=output.description, Value=value))
    body = finish(template, cluster, "cluster", parameters, immutable_settings(cluster))
    return Document("cluster", body, __name__, tuple(stack.name for stack in stacks))


def _root_type(parameter: Parameter) -> str:
    # An SSM parameter's name is passed on as text: resolved here, the nested stack would get its value instead.
    return "String" if parameter.type.startswith("AWS::SSM::Parameter::Value") else parameter.type


def _nested_stack(cluster: Cluster, stack: Stack, wiring: Wiring) -> Any:
    values = {parameter.name: _value(parameter, wiring) for parameter in stack.parameters.values()}
    # Resources inherit the tags of their stack: a stack with resources that must not have the cluster's tag has none.
    is_private = any(resource == LOAD_BALANCER_GROUP or ACCESS_GROUP in resource for resource in stack.resources)
    make_tags = private_tags if is_private else tags
    return cloudformation.Stack(
        stack.logical_id,
        TemplateURL=Sub(
            f"https://${{TemplateBucket}}.s3.${{AWS::Region}}.${{AWS::URLSuffix}}/${{TemplatePrefix}}{stack.name}.json"
        ),
        Tags=make_tags(cluster, f"{cluster.name}-{stack.name}"),
        **WITH_THE_STACK,
        **({"Parameters": values} if values else {}),
        **({"DependsOn": list(stack.depends_on)} if stack.depends_on else {}),
    )


def _value(parameter: Parameter, wiring: Wiring) -> Any:
    if not parameter.wired:
        reference = Ref(parameter.name)
        return Join(",", reference) if parameter.type.startswith(("List<", "CommaDelimitedList")) else reference
    if parameter.name in wiring.suppliers:
        stack, output = wiring.suppliers[parameter.name]
        return GetAtt(stack.logical_id, f"Outputs.{output.name}")
    return ROOT_VALUES[parameter.name]

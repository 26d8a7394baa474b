"""The standalone template: all resources of a cluster in one template that the user can upload in the console.

It is derived from the nested stacks. Where a stack takes another stack's output as a parameter, the standalone template
has the output's value in place of the parameter. The order of the nested stacks becomes DependsOn between resources.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import troposphere
from troposphere import cloudformation

from cfngen.cluster.model import Cluster
from cfngen.templates.acknowledgements import acknowledge
from cfngen.templates.document import STANDALONE, Document, TemplateBody
from cfngen.templates.expressions import substitute
from cfngen.templates.immutable_settings import settings_to_record
from cfngen.templates.references import reference_outputs
from cfngen.templates.stack import Stack, add_parameter, as_json, complete_template
from cfngen.templates.wiring import VALUES_IN_STANDALONE_STACK, Wiring, WiringError

# Maximum size of a template that is read from S3, and maximum number of its resources (AWS CloudFormation quotas).
MAX_BYTES = 1_000_000
MAX_RESOURCES = 500


def build(cluster: Cluster, stacks: Sequence[Stack], documents: Sequence[Document], wiring: Wiring) -> Document | None:
    """Return the standalone template, or None if it would exceed CloudFormation's limits.

    Args:
        stacks: all nested stacks, each after the stacks whose outputs it takes.
        documents: their templates, in the same order.

    Raises:
        WiringError: two stacks use the same logical id.
    """
    resources: TemplateBody = {}
    outputs: dict[str, object] = {}
    # Values of the parameters from other stacks, by the parameter's name; they replace the references to them.
    values_from_other_stacks: dict[str, object] = {
        **wiring.values_of_root,
        **VALUES_IN_STANDALONE_STACK,
    }
    for stack, document in zip(stacks, documents, strict=True):
        for logical_id, resource in document.body["Resources"].items():
            if logical_id in resources or logical_id in wiring.root_parameters:
                raise WiringError(f"{stack.name} uses the logical id {logical_id} a second time")
            resources[logical_id] = substitute(resource, values_from_other_stacks)
            _add_dependencies(
                resources, logical_id, dependencies=stack.depends_on_in_standalone_template.get(logical_id, ())
            )
        resources.update(_wait_conditions(stack))
        values_from_other_stacks.update(
            {output.name: substitute(output.value, values_from_other_stacks) for output in stack.outputs.values()}
        )
        for output in stack.outputs.values():
            if output.also_output_of_root:
                outputs[output.name] = {
                    "Description": output.description,
                    "Value": values_from_other_stacks[output.name],
                }
    body = _body_without_resources(cluster, wiring)
    # Findings name what a statement refers to, which is no longer a parameter.
    acknowledge(resources, is_backed_up=cluster.etcd.backups.enabled)
    body["Resources"] = resources
    body["Outputs"] = {**outputs, **{output.title: as_json(output) for output in reference_outputs(cluster)}}
    # As the file is written (`cfngen.output.render`); in YAML it is smaller.
    if len(resources) > MAX_RESOURCES or len(json.dumps(body, indent=1)) > MAX_BYTES:
        return None
    return Document(STANDALONE, body, module=__name__)


def _body_without_resources(cluster: Cluster, wiring: Wiring) -> TemplateBody:
    template = troposphere.Template()
    template.set_version()
    template.set_description(
        f"Kubernetes cluster {cluster.name}, version {cluster.kubernetes_version}: the whole cluster in one template"
    )
    for parameter in wiring.root_parameters.values():
        add_parameter(template, parameter)
    return complete_template(
        template,
        cluster,
        name=STANDALONE,
        parameters=wiring.root_parameters.values(),
        settings_to_record=settings_to_record(cluster),
    )


def _wait_conditions(stack: Stack) -> TemplateBody:
    return {
        logical_id: as_json(
            cloudformation.WaitCondition(
                logical_id, DependsOn=[wait_condition.launched_by_group], CreationPolicy=wait_condition.policy
            )
        )
        for logical_id, wait_condition in stack.root_wait_conditions.items()
    }


def _add_dependencies(resources: TemplateBody, logical_id: str, dependencies: Sequence[str]) -> None:
    """Add logical ids to a resource's DependsOn, except those of resources that the template does not have.

    For example, the template of a cluster in existing subnets has no `InternetRoute`.
    """
    created_dependencies = [dependency for dependency in dependencies if dependency in resources]
    if created_dependencies:
        resource = resources[logical_id]
        depends_on = resource.get("DependsOn", [])
        # DependsOn is a single logical id or a list.
        current_dependencies = [depends_on] if isinstance(depends_on, str) else depends_on
        resource["DependsOn"] = sorted({*current_dependencies, *created_dependencies})

"""The same cluster as one flat template, for the console's upload button: no bucket, no nested stacks.

Each wired parameter is replaced by the value of the output that supplies it, so the wiring is not written twice. The
order of the nested stacks becomes DependsOn.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import troposphere
from troposphere import cloudformation

from cfngen.cluster.model import Cluster
from cfngen.templates.document import Document, TemplateBody
from cfngen.templates.expressions import substitute
from cfngen.templates.immutable_settings import immutable_settings
from cfngen.templates.stack import Stack, add_parameter, finish, plain
from cfngen.templates.wiring import ROOT_VALUES, Wiring, WiringError

# The size of a template in S3 (1 MB) and its resources (AWS CloudFormation quotas).
MAX_BYTES, MAX_RESOURCES = 1_000_000, 500


def build(cluster: Cluster, stacks: Sequence[Stack], wiring: Wiring) -> Document | None:
    """Return the flat template, or None where it would exceed CloudFormation's limits.

    Args:
        cluster: the cluster.
        stacks: all stacks, in the order of their dependencies.
        wiring: which stack supplies which parameter.

    Raises:
        WiringError: two stacks use the same logical id.
    """
    template = troposphere.Template()
    template.set_version()
    template.set_description(f"Kubernetes cluster {cluster.name}: all of it in one template")
    for parameter in wiring.root_parameters.values():
        add_parameter(template, parameter)
    body = finish(template, cluster, "standalone", wiring.root_parameters.values(), immutable_settings(cluster))
    resources: TemplateBody = {}
    outputs: dict[str, object] = {}
    expressions: dict[str, object] = dict(ROOT_VALUES)
    for stack in stacks:
        for logical_id, resource in stack.document().body["Resources"].items():
            if logical_id in resources or logical_id in wiring.root_parameters:
                raise WiringError(f"{stack.name} uses the logical id {logical_id} a second time")
            resources[logical_id] = substitute(resource, expressions)
            _add_dependencies(resources, logical_id, stack.standalone_depends_on.get(logical_id, ()))
        for title, wait_condition in stack.outer_wait_conditions.items():
            condition = cloudformation.WaitCondition(
                title, DependsOn=[wait_condition.launched_by], CreationPolicy=wait_condition.policy
            )
            resources[title] = plain(condition)
        expressions.update({output.name: substitute(output.value, expressions) for output in stack.outputs.values()})
        outputs.update(
            {
                output.name: {"Description": output.description, "Value": expressions[output.name]}
                for output in stack.outputs.values()
                if output.in_root
            }
        )
    body["Resources"], body["Outputs"] = resources, outputs
    if len(resources) > MAX_RESOURCES or len(json.dumps(body, indent=2)) > MAX_BYTES:
        return None
    return Document("standalone", body, __name__)


def _add_dependencies(resources: TemplateBody, logical_id: str, dependencies: Sequence[str]) -> None:
    present = [candidate for candidate in dependencies if candidate in resources]
    if present:
        resource = resources[logical_id]
        own = resource.get("DependsOn", [])
        resource["DependsOn"] = sorted({*([own] if isinstance(own, str) else own), *present})

"""The picture of a plan: the cluster with what a deployment adds, changes, replaces and removes in colours."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cfngen.cli import graph_output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cfngen.deploy.account import Account
    from cfngen.deploy.deployment_request import DeploymentRequest
    from cfngen.deploy.preview.plan import Plan
    from cfngen.graph.picture import Change
    from cfngen.templates.document import Document


def write_plan_graph(path: Path, account: Account, request: DeploymentRequest, plan: Plan) -> None:
    """Write the picture of a plan to a file, in the format that the suffix of its name says.

    What is removed is drawn from the deployed templates; if they cannot be read, it is missing in the picture.

    Raises:
        PictureFileError: the file cannot be written.
    """
    from cfngen.graph.cluster_templates import NotAClusterError, read, with_removed
    from cfngen.graph.drawing import draw

    changes = plan_changes(plan)
    templates = read(request.documents, request.flags)
    removed = [logical_id for logical_id, change in changes.items() if change == "removed"]
    if removed and (deployed := _deployed_documents(account, plan)):
        with suppress(NotAClusterError):  # a nested stack that was not created has no template
            templates = with_removed(templates, read(deployed), removed)
    picture = draw(templates, "all", changes)
    graph_output.write(path, graph_output.render(picture, graph_output.format_of(path)))


def plan_changes(plan: Plan) -> Mapping[str, Change]:
    """Return what a plan does to each resource, by logical id; logical ids are unique over the stacks of a cluster."""
    return dict(_changes(plan))


def _changes(plan: Plan) -> Iterator[tuple[str, Change]]:
    """Yield what a plan does to each resource."""
    from cfngen.deploy.preview.changes import Replacement

    for change in plan.changes:
        if change.action in ("add", "import"):
            yield change.logical_id, "added"
        elif change.action == "remove":
            yield change.logical_id, "removed"
        elif change.replacement is Replacement.NO:
            yield change.logical_id, "changed"
        else:
            yield change.logical_id, "replaced"


def _deployed_documents(account: Account, plan: Plan) -> Sequence[Document]:
    """Return the deployed templates; none if one of them cannot be read."""
    from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
    from cfngen.deploy.phasing.deployed import read_deployed
    from cfngen.deploy.stacks import read_template
    from cfngen.templates.document import Document

    try:
        with translate_aws_errors():
            root_template = read_template(account, plan.stack_id)
            deployed = read_deployed(account, plan.stack_id, root_template)
    except AwsError:
        return ()
    if not root_template:
        return ()
    nested = {stack.template_name: stack.template for stack in deployed.nested_stacks.values()}
    documents = [Document(name, dict(body), module="") for name, body in nested.items()]
    return [*documents, Document("cluster", dict(root_template), module="")]

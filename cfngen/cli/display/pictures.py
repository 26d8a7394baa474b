"""Pictures of a cluster and of a plan: their formats, and the files that they go to."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from cfngen.atomic_files import replace_file
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cfngen.deploy.aws.account import Account
    from cfngen.deploy.operations.deployment.preparation import DeploymentRequest, Preparation
    from cfngen.deploy.operations.interaction import Interaction
    from cfngen.deploy.plan.plan import Plan
    from cfngen.graph.picture import Change, Picture
    from cfngen.templates.document import Document


PictureFormat = Literal["svg", "html", "mermaid", "dot"]
FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)
SUFFIXES: dict[str, PictureFormat] = {
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
}
"""The format of a file, by the suffix of its name."""


class PictureFileError(CfngenError):
    """The file for a picture cannot be written, or its name says no format."""

    code = "picture-file"


def format_of(path: Path) -> PictureFormat:
    """Return the format that a file's name says."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise PictureFileError(
            f"the name {path} does not say which format the picture shall have",
            hint="choose a name that ends in .svg, .html, .mmd or .dot.",
        )
    return SUFFIXES[suffix]


def require_writable(path: Path) -> None:
    """Check that a picture can be written to a file, before anything else is done."""
    folder = path.absolute().parent
    if path.is_dir():
        raise PictureFileError(f"{path} is a folder", hint="give the name of a file.")
    if not folder.is_dir():
        raise PictureFileError(f"the folder {folder} of {path} does not exist", hint="make it, or give another file.")
    if not os.access(folder, os.W_OK):
        raise PictureFileError(f"nothing can be written into the folder {folder}", hint="give another file.")


def render(picture: Picture, picture_format: PictureFormat) -> str:
    """Return a picture in a format."""
    # Each format is imported only when it is asked for.
    if picture_format == "mermaid":
        from cfngen.graph.mermaid import mermaid

        return mermaid(picture)
    if picture_format == "dot":
        from cfngen.graph.dot import dot

        return dot(picture)
    if picture_format == "html":
        from cfngen.graph.html import html

        return html(picture)
    from cfngen.graph.svg import svg

    return svg(picture)


def write(path: Path, text: str) -> None:
    """Write a file so that it has either its old or its complete new content."""
    try:
        replace_file(path, text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PictureFileError(
            f"the picture cannot be written to {path}: {reason}", hint="give another file."
        ) from error


def write_plan_graph(
    path: Path, account: Account, request: DeploymentRequest, preparation: Preparation, interaction: Interaction
) -> None:
    """Write the picture of a plan to a file, in the format that the suffix of its name says.

    The picture shows the network at the end, and of all else what is different from the deployed cluster, which has
    colours: if that takes several updates, what all of them change together. What is removed is drawn from the deployed
    templates; if they cannot be read, it is missing in the picture. Of a new cluster it shows the network.

    Args:
        preparation: the plan of the deployment, or of its first update, and what it was made from.
        interaction: reports to the user while changes of several updates are computed.

    Raises:
        PictureFileError: the file cannot be written.
        CfngenError: the changes of several updates cannot be computed.
    """
    from cfngen.graph.changes import compare, focus
    from cfngen.graph.cluster_templates import NotAClusterError, read
    from cfngen.graph.drawing import draw, fold_node_groups

    plan = preparation.plan
    changes = plan_changes(_whole_plan(account, request, plan, interaction), request.documents)
    templates = read(request.documents, preparation.values)
    deployed_stack = preparation.deployed_stack
    picture = network = draw(templates, "network", changes, _notes(plan))
    if deployed_stack:
        picture = draw(templates, "all", changes, _notes(plan))
    if deployed_stack and (deployed := _deployed_documents(account, plan)):
        with suppress(NotAClusterError):  # a nested stack that was not created has no template
            before = draw(read(deployed, deployed_stack.values), "all", changes)
            picture = compare(before, picture)
    if deployed_stack:
        picture = focus(picture, {box.id for box in network.boxes})
    write(path, render(fold_node_groups(picture), format_of(path)))


def plan_changes(plan: Plan, documents: Sequence[Document] = ()) -> Mapping[str, Change]:
    """Return what a plan does to each resource, by logical id; logical ids are unique over the stacks of a cluster.

    Args:
        documents: the templates that it deploys, for the resources of new stacks that no change set lists.
    """
    return {**dict(_additions(plan, documents)), **dict(_changes(plan))}


def _changes(plan: Plan) -> Iterator[tuple[str, Change]]:
    from cfngen.deploy.plan.plan import Replacement

    for change in plan.changes:
        if change.action in ("add", "import"):
            yield change.logical_id, "added"
        elif change.action == "remove":
            yield change.logical_id, "removed"
        elif change.replacement is Replacement.NO:
            yield change.logical_id, "changed"
        else:
            yield change.logical_id, "replaced"


def _additions(plan: Plan, documents: Sequence[Document]) -> Iterator[tuple[str, Change]]:
    """Yield the resources of new nested stacks for which CloudFormation has made no change set."""
    from cfngen.deploy.aws.templates import nested_template_names

    bodies = {document.name: document.body for document in documents}
    names = nested_template_names(bodies.get("cluster", {}))
    for stack in plan.stacks:
        if stack.action == "create" and not stack.changes and stack.path:
            for logical_id in bodies.get(names.get(stack.path[-1], ""), {}).get("Resources", {}):
                yield logical_id, "added"


def _whole_plan(account: Account, request: DeploymentRequest, plan: Plan, interaction: Interaction) -> Plan:
    """Return the plan of the whole way to the wanted cluster."""
    if not plan.updates:
        return plan
    from cfngen.deploy.messages.message import Step
    from cfngen.deploy.operations.deployment.deploy import plan_all_updates

    interaction.report(Step(f"computing what all {len(plan.updates)} updates change together, for the picture"))
    # The checks, and their notices, are the same as for the plan before.
    return plan_all_updates(account, request, replace(interaction, report=lambda message: None))


def _notes(plan: Plan) -> Sequence[str]:
    if not plan.updates:
        return ()
    steps = "; ".join(f"{number}. {update.title}" for number, update in enumerate(plan.updates, 1))
    return (f"The deployment takes {len(plan.updates)} updates; colours show what they change together: {steps}.",)


def _deployed_documents(account: Account, plan: Plan) -> Sequence[Document]:
    """Return the deployed templates; none if one of them cannot be read."""
    from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
    from cfngen.deploy.aws.stacks import StackTree, find_stack
    from cfngen.deploy.aws.templates import read_deployed
    from cfngen.templates.document import Document

    try:
        with translate_aws_errors():
            stack = find_stack(account, plan.stack_id)
            deployed = read_deployed(StackTree(account, stack)) if stack else None
    except AwsError:
        return ()
    if not deployed or not deployed.root_template:
        return ()
    nested = {stack.template_name: stack.template for stack in deployed.nested_stacks.values()}
    documents = [Document(name, dict(body), module="") for name, body in nested.items()]
    return [*documents, Document("cluster", dict(deployed.root_template), module="")]

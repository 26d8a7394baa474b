"""Adds old boot programs to the uploaded templates, for groups that still use an old launch template version.

The generated templates contain only the new boot program. But after a failed operation, an Auto Scaling group may still
use an old version of its launch template, and its new instances download an older boot program. As long as such a group
exists, each deployment adds that program to the uploaded template, beside the new one. It is read from the stack's
template, or from one uploaded before, and is identified by its digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.launched_versions import StaleGroup, find_retyped_slots, find_stale_groups
from cfngen.deploy.aws.stacks import StackTree, read_template
from cfngen.deploy.aws.templates import read_uploaded
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.messages.message import Danger, Impact, Notice, Report
from cfngen.deploy.plan.publishing import bucket as buckets
from cfngen.templates.document import Document

_MAX_SEARCHED_TEMPLATES = 50
"""Maximum number of uploaded templates of one stack that are searched, newest first."""


_HINT = "the next change of its configuration replaces its instances, or set the launch template of {group} yourself."


@dataclass(frozen=True)
class TemplatesToUpload:
    """Templates to upload.

    Attributes:
        documents: the generated templates, with old boot programs added.
        impacts: which programs were added, and why.
    """

    documents: tuple[Document, ...]
    impacts: tuple[Impact, ...] = ()


def add_old_programs(
    account: Account,
    documents: Sequence[Document],
    deployed: StackTree | None,
    *,
    cluster: str,
    bucket: str = "",
    report: Report,
) -> TemplatesToUpload:
    """Return the templates with the boot programs of groups that use an old launch template version.

    Args:
        deployed: the cluster's stacks; None if they do not exist yet.
        bucket: the operator's bucket for templates; cfngen's own if empty.
        report: receives a notice for each group that uses an old launch template version.
    """
    stale_groups = _read_stale_groups(deployed, report) if deployed else []
    if not stale_groups:
        return TemplatesToUpload(tuple(documents))
    documents_to_upload = list(documents)
    impacts: list[Impact] = []
    for group, stack_id in stale_groups:
        hint = _HINT.format(group=group.id)
        report(Notice(group.text, hint))
        index = _index_of_template(documents_to_upload, group.group)
        if index is None or not group.program or _has_resource(documents_to_upload[index], group.program):
            continue
        document = documents_to_upload[index]
        program_resource = _find_program_resource(
            account, group, name=document.name, stack_id=stack_id, cluster=cluster, bucket=bucket
        )
        if program_resource is None:
            report(Notice(f"the boot program {group.program} is no longer in any uploaded template", hint))
            continue
        resources = {**document.body["Resources"], group.program: program_resource}
        documents_to_upload[index] = replace(document, body={**document.body, "Resources": resources})
        text = f"{group.text}. The stack contains this program until the group uses the stack's launch template version"
        impacts.append(Impact(text, Danger.DISRUPTIVE))
    return TemplatesToUpload(tuple(documents_to_upload), tuple(impacts))


def _read_stale_groups(deployed: StackTree, report: Report) -> list[tuple[StaleGroup, str]]:
    """Return the groups that use an old launch template version, each with the ARN of its stack.

    Empty if they cannot be read, which is reported, as are masters of another type than their stack's.
    """
    try:
        with translate_aws_errors():
            resources = deployed.resources
        views = [resource.view for resource in resources]
        stale = find_stale_groups(deployed.account, views)
        for slot in find_retyped_slots(deployed.account, views):
            report(Notice(slot.text))
    except AwsError as error:
        report(Notice(f"cannot find out which groups use an old launch template version: {error}", error.hint))
        return []
    stack_ids = {resource.view.logical_id: resource.stack_id for resource in resources}
    return [(group, stack_ids[group.group]) for group in stale]


def _index_of_template(documents: Sequence[Document], logical_id: str) -> int | None:
    """Return the position of the template that has a resource; None if none has it."""
    return next((index for index, document in enumerate(documents) if _has_resource(document, logical_id)), None)


def _has_resource(document: Document, logical_id: str) -> bool:
    return logical_id in document.body["Resources"]


def _find_program_resource(
    account: Account, group: StaleGroup, name: str, stack_id: str, cluster: str, bucket: str
) -> TemplatePart | None:
    """Return the resource with the boot program that a group uses; None if no template that can be read has it.

    Args:
        bucket: the operator's bucket for templates; cfngen's own if empty.
    """
    for body in _read_deployed_and_uploaded_templates(
        account, name, stack_id, cluster, bucket or buckets.default_name(account)
    ):
        definition: TemplatePart = body.get("Resources", {}).get(group.program, {})
        program = str(definition.get("Metadata", {}).get("cfngen", {}).get("program", ""))
        if hashlib.sha256(program.encode()).hexdigest() == group.sha256:
            return definition
    return None


def _read_deployed_and_uploaded_templates(
    account: Account, name: str, stack_id: str, cluster: str, bucket: str
) -> Iterator[TemplatePart]:
    """Yield the stack's current template, then templates of the same stack that were uploaded before, newest first."""
    try:
        with translate_aws_errors():
            yield read_template(account, stack_id)
            yield from islice(read_uploaded(account, bucket, cluster, name), _MAX_SEARCHED_TEMPLATES)
    except (AwsError, ValueError):
        return

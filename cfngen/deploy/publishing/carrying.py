"""Programs of groups that were left behind, carried over into the templates that are published.

What is generated depends on the cluster file alone. Which program the instances of a group ask for that CloudFormation
has left on an older version depends on the account. So the program is put into the published template, beside the one
that was generated, for as long as the group names it; then the next deployment leaves it out, and CloudFormation
removes it. It comes from the stack's own template, or from one that was uploaded before, and is known by its digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.messages import Notice, Report
from cfngen.deploy.preview.plan import Danger, Impact
from cfngen.deploy.publishing import bucket as buckets
from cfngen.deploy.stacks import StackView, template, tree
from cfngen.deploy.stale_groups import StaleGroup, stale_groups
from cfngen.templates.document import Document

_MAX_SEARCHED_TEMPLATES = 50
"""Uploaded templates of one stack that are searched, the newest first."""


@dataclass(frozen=True)
class Carried:
    """Templates to publish.

    Attributes:
        documents: the generated ones, with what was carried over into them.
        meanings: what was carried over, and why.
    """

    documents: tuple[Document, ...]
    meanings: tuple[Impact, ...] = ()


def carried(
    account: Account,
    documents: Sequence[Document],
    existing: StackView | None,
    *,
    cluster: str,
    bucket: str = "",
    report: Report,
) -> Carried:
    """Return the templates to publish, so that every group that was left behind can boot its instances.

    Args:
        account: where the cluster is.
        documents: the generated templates.
        existing: the root stack; None if it is to be created.
        cluster: name of the cluster, the folder in the bucket.
        bucket: the operator's bucket for templates; cfngen's own if empty.
        report: told of every group that was left behind.
    """
    if existing is None:
        return Carried(tuple(documents))
    try:
        with translate_aws_errors():
            resources = tree(account, existing.id)
        groups = stale_groups(account, [resource.view for resource in resources])
    except AwsError as error:
        report(Notice(f"whether groups were left behind by an earlier operation is not known: {error}", error.hint))
        return Carried(tuple(documents))
    stacks = {resource.view.logical_id: resource.stack_id for resource in resources}
    published, meanings = list(documents), []
    for group in groups:
        hint = f"the next change of its configuration rolls it, or set the launch template of {group.id} by hand."
        report(Notice(group.text, hint))
        index = next(
            (
                position
                for position, document in enumerate(published)
                if not document.children and _has(document, group.group)
            ),
            None,
        )
        if index is None or not group.program or _has(published[index], group.program):
            continue
        definition = _definition(account, group, published[index].name, stacks[group.group], cluster, bucket)
        if definition is None:
            report(Notice(f"the boot program {group.program} is in none of the uploaded templates any more", hint))
            continue
        body = {**published[index].body, "Resources": {**published[index].body["Resources"], group.program: definition}}
        published[index] = replace(published[index], body=body)
        text = f"{group.text}. The program stays, or comes back, until the group launches from the stack's version"
        meanings.append(Impact(text, Danger.DISRUPTIVE))
    return Carried(tuple(published), tuple(meanings))


def _has(document: Document, logical_id: str) -> bool:
    return document.name != "standalone" and logical_id in document.body["Resources"]


def _definition(
    account: Account, group: StaleGroup, name: str, stack_id: str, cluster: str, bucket: str
) -> Mapping[str, Any] | None:
    """Return the resource that bears the program; None if no template has it, or none that may be read."""
    for body in _bodies(account, name, stack_id, cluster, bucket or buckets.default_name(account)):
        definition: Mapping[str, Any] = body.get("Resources", {}).get(group.program, {})
        program = str(definition.get("Metadata", {}).get("cfngen", {}).get("program", ""))
        if hashlib.sha256(program.encode()).hexdigest() == group.sha256:
            return definition
    return None


def _bodies(account: Account, name: str, stack_id: str, cluster: str, bucket: str) -> Iterator[Mapping[str, Any]]:
    """Yield the template that the stack has, then those of the same stack that were uploaded before, newest first."""
    try:
        with translate_aws_errors():
            yield template(account, stack_id)
            s3 = account.client("s3")
            pages = s3.get_paginator("list_objects_v2").paginate(
                Bucket=bucket, Prefix=f"{cluster}/", ExpectedBucketOwner=account.id
            )
            objects = [item for page in pages for item in page.get("Contents", ())]
            uploaded = [object_ for object_ in objects if object_["Key"].endswith(f"/{name}.json")]
            for uploaded_object in sorted(uploaded, key=lambda candidate: candidate["LastModified"], reverse=True)[
                :_MAX_SEARCHED_TEMPLATES
            ]:
                response = s3.get_object(Bucket=bucket, Key=uploaded_object["Key"], ExpectedBucketOwner=account.id)
                yield json.loads(response["Body"].read())
    except (AwsError, ValueError):
        return

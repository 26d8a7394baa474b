"""A cluster's templates: as they are deployed, with their parameters, and as objects in the bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.checked_answers import read_document
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, suppress_codes
from cfngen.deploy.aws.stacks import (
    CA_SECRET_OUTPUT,
    ENDPOINT_OUTPUT,
    NESTED_STACK,
    StackTree,
    StackView,
    parse_stack,
)
from cfngen.deploy.aws.types import AwsArguments, TemplatePart
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.errors import CfngenError
from cfngen.templates.document import STANDALONE, Document, root_of
from cfngen.templates.expressions import known_ending

# Error codes of a call for a bucket that does not exist; HeadBucket answers without a body, so its is the HTTP status.
BUCKET_MISSING_CODES = frozenset({"NoSuchBucket", "404"})


class ObjectsError(CfngenError):
    """S3 could not delete all objects."""

    code = "objects-not-deleted"


@dataclass(frozen=True)
class TemplateObjects:
    """The objects in a cluster's folder of the bucket.

    Attributes:
        bucket: the bucket; empty if there is none.
        versions: number of object versions and delete markers.
        gigabytes: their total size in GiB.
    """

    bucket: str = ""
    prefix: str = ""
    versions: int = 0
    gigabytes: float = 0.0


def find(account: Account, bucket: str, cluster: str, *, must_be_allowed: bool = False) -> TemplateObjects:
    """Return the number and size of a cluster's objects in a bucket of this account.

    Args:
        bucket: the bucket; if it does not exist, there are no objects.
        must_be_allowed: whether to raise an error if the caller may not list the bucket; otherwise it counts as empty.
    """
    prefix = f"{cluster}/"
    count = total_bytes = 0
    ignored_codes = BUCKET_MISSING_CODES if must_be_allowed else BUCKET_MISSING_CODES | ACCESS_DENIED_CODES
    with suppress_codes(ignored_codes):
        for version in list_versions(account, bucket, prefix):
            count += 1
            total_bytes += version.bytes
        return TemplateObjects(bucket, prefix, versions=count, gigabytes=total_bytes / 2**30)
    return TemplateObjects(prefix=prefix)


class _ObjectVersion(NamedTuple):
    """A version of an object, or a delete marker.

    Attributes:
        bytes: size of the version; 0 for a delete marker.
    """

    key: str
    id: str
    bytes: int


def list_versions(account: Account, bucket: str, prefix: str) -> Iterator[_ObjectVersion]:
    """Yield all versions of all objects whose keys begin with a prefix, and all delete markers."""
    pages = account.client("s3").get_paginator("list_object_versions")
    for page in pages.paginate(Bucket=bucket, Prefix=prefix, ExpectedBucketOwner=account.id):
        for version in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            yield _ObjectVersion(key=version["Key"], id=version["VersionId"], bytes=version.get("Size", 0))


@dataclass(frozen=True)
class DeployedStack:
    """A nested stack as it is deployed.

    Attributes:
        template_name: name of its template, as in `Document.name`.
        values: values of its parameters by name; for parameters read from SSM, the resolved values. NoEcho parameters
            are missing, since CloudFormation does not return their values.
    """

    template_name: str
    template: TemplatePart
    values: Mapping[str, str]


@dataclass(frozen=True)
class DeployedTemplates:
    """A root and its nested stacks as they are deployed.

    Attributes:
        nested_stacks: the root's nested stacks by logical id, without those whose templates cannot be read as JSON.
    """

    root_template: TemplatePart
    nested_stacks: Mapping[str, DeployedStack] = field(default_factory=dict)


def read_deployed(deployed: StackTree) -> DeployedTemplates:
    """Return the templates and parameters of a root and its nested stacks."""
    root_template = deployed.template(deployed.root.id)
    names_by_stack = nested_template_names(root_template)
    nested_stacks: dict[str, DeployedStack] = {}
    for stack_resource in deployed.resources:
        resource = stack_resource.view
        if stack_resource.path or not resource.physical_id or resource.logical_id not in names_by_stack:
            continue
        if resource.status.startswith("DELETE") or resource.status == "CREATE_FAILED":
            continue
        if stack_template := deployed.template(resource.physical_id):
            nested_stacks[resource.logical_id] = DeployedStack(
                template_name=names_by_stack[resource.logical_id],
                template=stack_template,
                values=_known_values(deployed.stack(resource.physical_id), stack_template),
            )
    return DeployedTemplates(root_template, nested_stacks)


def _known_values(stack: StackView, stack_template: TemplatePart) -> dict[str, str]:
    """Return the values of a stack's parameters by name, without the NoEcho parameters of its template."""
    definitions = stack_template.get("Parameters", {})
    return {
        name: value
        for name, value in {**stack.parameters, **stack.looked_up}.items()
        if str(definitions.get(name, {}).get("NoEcho", "")).lower() != "true"
    }


def read_uploaded(account: Account, bucket: str, cluster: str, name: str) -> Iterator[TemplatePart]:
    """Yield the templates of this name that were uploaded for a cluster, newest first; each is read when it is due.

    Raises:
        ValueError: an object is not JSON.
    """
    location: AwsArguments = {"Bucket": bucket, "ExpectedBucketOwner": account.id}
    s3_objects = account.items("s3.list_objects_v2", "Contents", Prefix=f"{cluster}/", **location)
    uploaded = [s3_object for s3_object in s3_objects if s3_object["Key"].endswith(f"/{name}.json")]
    for s3_object in sorted(uploaded, key=lambda s3_object: s3_object["LastModified"], reverse=True):
        response = account.client("s3").get_object(Key=s3_object["Key"], **location)
        yield json.loads(response["Body"].read())


def name_in_template_url(template_url: object) -> str:
    """Return the name of the nested template in a TemplateURL, which is a URL or an expression that makes one."""
    return known_ending(template_url).rpartition("/")[2].removesuffix(".json")


def nested_template_names(root: TemplatePart) -> dict[str, str]:
    """Return the name of each nested stack's template, by the logical id of the nested stack in the root's template."""
    return {
        logical_id: name_in_template_url(resource["Properties"]["TemplateURL"])
        for logical_id, resource in root.get("Resources", {}).items()
        if resource["Type"] == NESTED_STACK
    }


def templates_by_stack(documents: Sequence[Document]) -> dict[str, TemplatePart]:
    """Return the root's template (`""`) and those of its nested stacks by logical id; none without a root."""
    root = root_of(documents)
    if root is None:
        return {}
    bodies = {document.name: document.body for document in documents}
    # A stack without a template was never created, since an earlier one failed.
    nested = {stack: bodies[name] for stack, name in nested_template_names(root.body).items() if name in bodies}
    return {"": root.body, **nested}


class NoStandaloneTemplateError(CfngenError):
    """The stack has everything in one template, and the cluster has become too large for that."""

    code = "no-standalone-template"


def templates_in_form_of(deployed_root: TemplatePart, documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the templates that a stack is updated with: `standalone` alone if it was made from that, else the others.

    Args:
        deployed_root: the template of the root stack; empty if there is none yet.

    Raises:
        NoStandaloneTemplateError: there is no `standalone` any more.
    """
    is_flat = deployed_root.get("Metadata", {}).get("cfngen", {}).get("stack") == STANDALONE
    chosen = tuple(document for document in documents if (document.name == STANDALONE) is is_flat)
    if not chosen:
        raise NoStandaloneTemplateError(
            "the stack was made from standalone.json, and the cluster exceeds the limits of one template (1 MB, 500 "
            "resources)",
            hint="make a new cluster from the nested set; CloudFormation moves no resources into nested stacks.",
        )
    return chosen


def object_url(account: Account, bucket: str, key: str) -> str:
    """Return the URL of an object for CloudFormation.

    A bucket with dots in its name is part of the path, since S3's certificate does not cover it as a host name
    ("Virtual hosting of buckets", Amazon S3 User Guide).
    """
    host = f"s3.{account.region}.{account.url_suffix}"
    return f"https://{host}/{bucket}/{key}" if "." in bucket else f"https://{bucket}.{host}/{key}"


def read_template_cluster(account: Account, stack: StackView) -> str:
    """Return the cluster that a stack's template was generated for, from its metadata; empty if it is not cfngen's."""
    summary = account.read("cloudformation.get_template_summary", absent=("ValidationError",), StackName=stack.id)
    text = (summary or {}).get("Metadata") or "{}"
    metadata = read_document(text, "cloudformation:GetTemplateSummary", "Metadata").get("cfngen")
    if not isinstance(metadata, dict) or metadata.get("stack") not in ("cluster", STANDALONE):
        return ""
    return str(metadata.get("cluster", ""))


# Names in every root template of a cluster; before the end of a creation, a stack has no outputs.
_ROOT_NAMES = frozenset({"MasterInstanceType", ENDPOINT_OUTPUT, CA_SECRET_OUTPUT})
# Such a stack still exists but has no resources: its creation was rolled back completely.
_STATUSES_WITHOUT_RESOURCES = frozenset({"ROLLBACK_COMPLETE"})


def find_live_stacks(account: Account, cluster: str, *, besides: str = "") -> tuple[str, ...]:
    """Return the names of the root stacks that contain a cluster of this name, whatever made them.

    Those that the caller has no permission to read are left out.

    Args:
        besides: name or ARN of a root stack that is ignored: the one that the cluster itself uses.
    """
    stacks: list[StackView] = []
    # A caller who is only allowed to use certain stacks may not describe all stacks.
    with suppress_codes(ACCESS_DENIED_CODES):
        stacks += map(parse_stack, account.items("cloudformation.describe_stacks", "Stacks"))
    roots = [stack for stack in stacks if not stack.parent_id and _conflicts(stack, besides)]
    return tuple(sorted(root.name for root in roots if _find_cluster(account, root) == cluster))


def _conflicts(stack: StackView, besides: str) -> bool:
    """Return whether a stack may have resources of its cluster, and is not the stack with the name or ARN `besides`."""
    is_in_use = stack.status.exists and stack.status.health is not StackHealth.EMPTY
    return is_in_use and stack.status.name not in _STATUSES_WITHOUT_RESOURCES and besides not in (stack.name, stack.id)


def _find_cluster(account: Account, root: StackView) -> str:
    """Return the cluster of a root stack: by its tag, or by its template if the CLI or the CDK may have made it."""
    if root.cluster or not _ROOT_NAMES & {*root.parameters, *root.outputs}:
        return root.cluster
    with suppress_codes(ACCESS_DENIED_CODES):
        return read_template_cluster(account, root)
    return ""

"""Uploads templates to S3, under keys that contain the hash of their content.

The URL of a nested template contains the hash of its content, and the root refers to nested templates by these URLs. So
an unchanged template keeps its URL, the template of a live stack is never overwritten, and comparing the roots of two
deployments compares all of their templates.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, AwsError, as_aws_error, error_code, translate_aws_errors
from cfngen.deploy.aws.stacks import NESTED_STACK
from cfngen.deploy.aws.templates import name_in_template_url, object_url
from cfngen.deploy.aws.types import JsonObject, TemplatePart
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.plan.publishing import bucket as buckets
from cfngen.errors import CfngenError
from cfngen.hints import CommandText
from cfngen.templates.document import LOCATION_PARAMETERS, Document, root_of
from cfngen.text import pluralize

# "CloudFormation quotas", CloudFormation User Guide: a template body in an Amazon S3 object.
MAX_BYTES = 1_000_000
MAX_THREADS = 8


_INTERFACE_METADATA = "AWS::CloudFormation::Interface"

Item = TypeVar("Item")
Result = TypeVar("Result")


class TemplateTooLargeError(CfngenError):
    """A template is larger than CloudFormation accepts from S3.

    Attributes:
        size: its size in bytes.
    """

    code = "template-too-large"

    def __init__(self, name: str, size: int) -> None:
        super().__init__(
            f"the template {name} has {size:,} bytes; CloudFormation accepts {MAX_BYTES:,} at most",
            hint="reduce the number of node groups, subnets or rules, or split the cluster into two.",
        )
        self.name = name
        self.size = size


class UploadError(AwsError):
    """Templates could not be uploaded; nothing was deployed."""

    code = "upload-failed"


@dataclass(frozen=True)
class LocatedTemplate:
    """A template with its key and URL in the bucket.

    Attributes:
        document: the document; in the root, the TemplateURLs of nested stacks are those of the uploaded templates.
        url: its URL for CloudFormation.
    """

    document: Document
    content: bytes = field(repr=False)
    key: str
    url: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the content in base64, as S3 returns it."""
        return base64.b64encode(hashlib.sha256(self.content).digest()).decode()


@dataclass(frozen=True)
class PublishedTemplates:
    """A cluster's templates in their bucket.

    Attributes:
        template_url: URL of the root.
        written: number of templates that this call uploaded.
        unchanged: number of templates that were in the bucket already.
        root: the root template as uploaded.
        keys: every template's key by its name.
    """

    bucket: str
    template_url: str
    written: int
    unchanged: int
    root: Document
    keys: Mapping[str, str]


def publish(
    account: Account,
    documents: Sequence[Document],
    *,
    cluster: str,
    bucket: str = "",
    kms_key: str = "",
    report: Report,
) -> PublishedTemplates:
    """Upload a cluster's root and nested templates; templates that exist already are not uploaded again.

    Args:
        documents: the generated templates; `standalone` is uploaded only if it is the only one.
        bucket: the operator's bucket; cfngen's own if empty.

    Raises:
        TemplateTooLargeError: a template exceeds CloudFormation's limit; nothing was uploaded.
        cfngen.deploy.plan.publishing.bucket.BucketError: the bucket cannot be used.
        UploadError: a template could not be uploaded.
        AwsError: S3 refuses a call for the bucket.
    """
    templates = assign_template_urls(account, documents, cluster=cluster, bucket=bucket)
    with translate_aws_errors():
        bucket_name = buckets.ensure_bucket(account, bucket=bucket, kms_key=kms_key, report=report)
    are_uploaded = _map_parallel(lambda template: _is_uploaded(account, bucket_name, template), templates)
    missing = [template for template, is_uploaded in zip(templates, are_uploaded, strict=True) if not is_uploaded]
    if missing:
        report(Step(f"uploading {pluralize(len(missing), 'template')} to s3://{bucket_name}/{cluster}/"))
        _map_parallel(lambda template: _upload(account, bucket_name, template), missing)
    *_, root = templates
    return PublishedTemplates(
        bucket=bucket_name,
        template_url=root.url,
        written=len(missing),
        unchanged=len(templates) - len(missing),
        root=root.document,
        keys={template.document.name: template.key for template in templates},
    )


def assign_template_urls(
    account: Account, documents: Sequence[Document], *, cluster: str, bucket: str = ""
) -> tuple[LocatedTemplate, ...]:
    """Return the templates with their keys and URLs, the root last; nothing is uploaded.

    Args:
        bucket: the operator's bucket; cfngen's own if empty.

    Raises:
        TemplateTooLargeError: a template exceeds CloudFormation's limit.
        ValueError: the root or a nested template is missing.
    """
    bucket_name = bucket or buckets.default_name(account)
    root = root_of(documents)
    if root is None:
        raise ValueError("there is no root template to deploy")
    children = {
        document.name: _with_key_and_url(account, document, cluster=cluster, bucket=bucket_name)
        for document in documents
        if document.name in root.children
    }
    if missing := set(root.children) - children.keys():
        raise ValueError(f"nested templates are missing: {', '.join(sorted(missing))}")
    urls = {name: child.url for name, child in children.items()}
    root_with_urls = replace(root, body=with_template_urls(root, urls))
    located_root = _with_key_and_url(account, root_with_urls, cluster=cluster, bucket=bucket_name)
    return (*children.values(), located_root)


def with_template_urls(root: Document, urls: Mapping[str, str]) -> JsonObject:
    """Return the root's body with the URLs of uploaded templates, and without the parameters for their location."""
    body: JsonObject = json.loads(json.dumps(root.body))
    for resource in body["Resources"].values():
        if resource["Type"] == NESTED_STACK:
            properties = resource["Properties"]
            properties["TemplateURL"] = urls[name_in_template_url(properties["TemplateURL"])]
    interface = body.get("Metadata", {}).get(_INTERFACE_METADATA, {})
    for name in LOCATION_PARAMETERS:
        body.get("Parameters", {}).pop(name, None)
        interface.get("ParameterLabels", {}).pop(name, None)
    # The headings under which the console shows the parameters; a heading without parameters is dropped.
    remaining_groups = []
    for parameter_group in interface.get("ParameterGroups", ()):
        remaining_names = [name for name in parameter_group["Parameters"] if name not in LOCATION_PARAMETERS]
        if remaining_names:
            remaining_groups.append({**parameter_group, "Parameters": remaining_names})
    if interface.get("ParameterGroups"):
        interface["ParameterGroups"] = remaining_groups
    return body


def _with_key_and_url(account: Account, document: Document, *, cluster: str, bucket: str) -> LocatedTemplate:
    """Return a template with its key, which contains the hash of its content, and its URL.

    Raises:
        TemplateTooLargeError: the template exceeds CloudFormation's limit.
    """
    content = json.dumps(document.body, separators=(",", ":"), ensure_ascii=False).encode()
    if len(content) > MAX_BYTES:
        raise TemplateTooLargeError(document.name, len(content))
    key = f"{cluster}/{hashlib.sha256(content).hexdigest()}/{document.name}.json"
    return LocatedTemplate(document, content, key=key, url=object_url(account, bucket, key))


def _is_uploaded(account: Account, bucket: str, template: LocatedTemplate) -> bool:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        response = account.client("s3").head_object(
            Bucket=bucket, Key=template.key, ExpectedBucketOwner=account.id, ChecksumMode="ENABLED"
        )
    except (BotoCoreError, ClientError) as error:
        # Without permission for s3:ListBucket, S3 answers 403 for a missing object. Then the upload is tried.
        if error_code(error) in ("404", "NoSuchKey", *ACCESS_DENIED_CODES):
            return False
        raise _upload_error(bucket, template, error) from error
    # An object without a checksum was uploaded by another program, so its content is not known.
    return bool(response.get("ChecksumSHA256") == template.checksum)


def _upload(account: Account, bucket: str, template: LocatedTemplate) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        # S3 refuses content with another checksum, and botocore retries interrupted uploads.
        account.client("s3").put_object(
            Bucket=bucket,
            Key=template.key,
            Body=template.content,
            ContentType="application/json",
            ChecksumAlgorithm="SHA256",
            ChecksumSHA256=template.checksum,
            ExpectedBucketOwner=account.id,
        )
    except (BotoCoreError, ClientError) as error:
        raise _upload_error(bucket, template, error) from error


def _upload_error(bucket: str, template: LocatedTemplate, error: Exception) -> AwsError:
    reason = as_aws_error(error)
    hint = CommandText(
        "nothing was deployed; ", reason.hint or "repeat the command: only missing templates are uploaded."
    )
    message = f"the template {template.document.name} could not be uploaded to s3://{bucket}/{template.key}: {reason}"
    return UploadError(message, hint=hint, operation=reason.operation, aws_code=reason.aws_code)


def _map_parallel(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function with each item in several threads, and return the results; stop at the first exception."""
    pool = ThreadPoolExecutor(max_workers=MAX_THREADS)
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(cancel_futures=True)


IAM, NAMED_IAM, AUTO_EXPAND = "CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"
# The property that gives an IAM resource a custom name.
_NAME_PROPERTIES = {
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
}


def capabilities(documents: Sequence[Document]) -> tuple[str, ...]:
    """Return the capabilities that the templates require ("CreateChangeSet", CloudFormation API Reference).

    A change set of a root needs those of its nested templates too.

    Args:
        documents: the root and the nested templates; `standalone` may be among them.
    """
    required = {capability for document in documents for capability in _required_capabilities(document.body)}
    # CAPABILITY_NAMED_IAM includes CAPABILITY_IAM.
    if NAMED_IAM in required:
        required.discard(IAM)
    return tuple(sorted(required))


def _required_capabilities(template: TemplatePart) -> Iterator[str]:
    if "Transform" in template or _has_macro(template):
        yield AUTO_EXPAND
    for resource in template.get("Resources", {}).values():
        resource_type = resource.get("Type", "") if isinstance(resource, Mapping) else ""
        if resource_type.startswith("AWS::IAM::"):
            has_custom_name = _NAME_PROPERTIES.get(resource_type) in resource.get("Properties", {})
            yield NAMED_IAM if has_custom_name else IAM


def _has_macro(value: object) -> bool:
    """Return whether a part of a template contains a macro, at any depth."""
    if isinstance(value, Mapping):
        # Fn::ForEach requires a Transform in the template; it is checked here in case the Transform is missing.
        return any(
            str(key).startswith(("Fn::Transform", "Fn::ForEach")) or _has_macro(item) for key, item in value.items()
        )
    return isinstance(value, (list, tuple)) and any(_has_macro(item) for item in value)

"""What a policy of IAM allows: enforcement for one user, the double's own calls left alone.

moto can enforce identity policies, but for every caller at once, among them the double's own handlers; its messages do
not name resources, and it calls every refusal the same in each protocol. So the policy is decided here, for the calls
of one user that `enforcing` makes.

Known limits: a condition holds unless its key is `aws:RequestedRegion`; what moto says of resource policies and
permission boundaries is nothing, and so is this. Actions on anything but stacks, buckets, objects, secrets, instances
and roles count as being on whatever resource a statement names. What CloudFormation does with the caller's permissions
(creating a VPC, say) is not checked, as the double makes those calls with its own.
"""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cfngen.sandbox.api import refusals
from cfngen.sandbox.api.requests import Call
from cfngen.sandbox.cloudformation import client

ACCOUNT = "123456789012"  # moto's
Policy = Mapping[str, Any]

# Service Authorization Reference, "Actions, resources, and condition keys for Amazon S3": where a permission is not
# called like the operation.
S3_ACTIONS = {
    "CompleteMultipartUpload": "PutObject",
    "CopyObject": "PutObject",  # and GetObject on what is copied
    "CreateMultipartUpload": "PutObject",
    "DeleteObjects": "DeleteObject",
    "DeletePublicAccessBlock": "PutBucketPublicAccessBlock",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "HeadBucket": "ListBucket",
    "HeadObject": "GetObject",
    "ListBuckets": "ListAllMyBuckets",
    "ListObjectVersions": "ListBucketVersions",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "PutBucketEncryption": "PutEncryptionConfiguration",
    "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
    "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
    "UploadPart": "PutObject",
}
# Of the same reference for CloudFormation: actions that are not on a stack.
ACCOUNT_WIDE = frozenset({"ListStacks", "ListExports", "ListImports", "ValidateTemplate", "EstimateTemplateCost"})
ANY = "*"

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Credentials:
    """Keys of a user."""

    access_key: str
    secret_key: str
    user: str


@dataclass
class Permissions:
    """Who may do what.

    Attributes:
        policies: which users are held to which policies, by access key.
        owner: ARN of the stack that a change set, by ARN and region, is of; `serving` sets it.
    """

    policies: dict[str, tuple[Credentials, Sequence[Policy]]] = field(default_factory=dict)
    owner: Callable[[str, str], str] = lambda change_set, region: ""

    def check(self, call: Call) -> None:
        """Let a call pass, or not.

        Raises:
            Refusal: no policy of the caller allows it, or one denies it
        """
        if call.key not in self.policies or call.action == "sts:GetCallerIdentity":  # always allowed
            return
        credentials, policies = self.policies[call.key]
        action, resource = action_of(call), resource_of(call)
        if ":changeSet/" in resource:  # policies name stacks, and CloudFormation knows which one it is
            resource = self.owner(resource, call.region) or resource
        if not allowed(policies, action, resource, call.region):
            raise refusals.denied(call, action, credentials.user, resource)

    @contextlib.contextmanager
    def enforcing(self, *policies: Policy, name: str = "") -> Iterator[Credentials]:
        """A user of the account with these policies and no others; yields the keys to make a session of.

        Args:
            policies: policy documents.
            name: of the user.
        """
        name = name or f"operator-{next(_numbers)}"
        iam = client("iam", "us-east-1")
        user = iam.create_user(UserName=name)["User"]["Arn"]
        for number, policy in enumerate(policies):
            iam.put_user_policy(UserName=name, PolicyName=f"policy-{number}", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        credentials = Credentials(key["AccessKeyId"], key["SecretAccessKey"], user)
        self.policies[credentials.access_key] = (credentials, policies)
        try:
            yield credentials
        finally:
            self.policies[credentials.access_key] = (credentials, ())


def action_of(call: Call) -> str:
    """Return what policies call the permission for a call."""
    name = S3_ACTIONS.get(call.operation, call.operation) if call.service == "s3" else call.operation
    return f"{call.service}:{name}"


def resource_of(call: Call) -> str:
    """Return the ARN of what a call is on; `*` where it is on none, or the double does not know."""
    parameters = call.parameters
    if call.service == "s3" and parameters.get("Bucket"):
        # Of objects that are deleted together the first stands for all.
        deleted_objects = parameters.get("Delete", {}).get("Objects") or [{}]
        key = parameters.get("Key") or deleted_objects[0].get("Key")
        return f"arn:aws:s3:::{parameters['Bucket']}/{key}" if key else f"arn:aws:s3:::{parameters['Bucket']}"
    if call.service == "cloudformation" and call.operation not in ACCOUNT_WIDE:
        return _stack(call)
    names = {"ec2": ("InstanceId", "ec2", "instance/"), "iam": ("RoleName", "iam", "role/"),
             "secretsmanager": ("SecretId", "secretsmanager", "secret:")}  # fmt: skip
    if call.service in names:
        parameter, service, prefix = names[call.service]
        value = str(parameters.get(parameter, ""))
        region = "" if service == "iam" else call.region
        return (
            value if value.startswith("arn:") or not value else f"arn:aws:{service}:{region}:{ACCOUNT}:{prefix}{value}"
        )
    return ANY


def allowed(policies: Sequence[Policy], action: str, resource: str, region: str) -> bool:
    """Return whether some statement allows an action on a resource, and none denies it."""
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in _listed(policy["Statement"])
        if _applies(statement, action, resource, region)
    }
    return "Allow" in effects and "Deny" not in effects


def _stack(call: Call) -> str:
    for parameter in ("StackName", "ChangeSetName", "OperationId"):
        value = str(call.parameters.get(parameter, ""))
        if value.startswith("arn:"):
            return value
        if parameter == "StackName" and value:
            return f"arn:aws:cloudformation:{call.region}:{ACCOUNT}:stack/{value}/*"
    return ANY


def _applies(statement: Mapping[str, Any], action: str, resource: str, region: str) -> bool:
    if "NotAction" in statement:
        applies = not _any_matches(statement["NotAction"], action, ignore_case=True)
    else:
        applies = _any_matches(statement["Action"], action, ignore_case=True)
    if applies and resource not in (ANY, ""):
        if "NotResource" in statement:
            applies = not _any_matches(statement["NotResource"], resource)
        else:
            applies = _any_matches(statement["Resource"], resource)
    return applies and _region_holds(statement.get("Condition", {}), region)


def _region_holds(conditions: Mapping[str, Mapping[str, Any]], region: str) -> bool:
    region_conditions = {
        operator: value
        for operator, keys in conditions.items()
        for key, value in keys.items()
        if key.lower() == "aws:requestedregion"
    }
    results = {operator: _any_matches(value, region) for operator, value in region_conditions.items()}
    return all(is_match is not operator.startswith("StringNot") for operator, is_match in results.items())


def _any_matches(patterns: str | Sequence[str], value: str, *, ignore_case: bool = False) -> bool:
    if ignore_case:
        value = value.lower()
    return any(fnmatch.fnmatchcase(value, pattern.lower() if ignore_case else pattern) for pattern in _listed(patterns))


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]

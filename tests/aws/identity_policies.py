"""Enforces IAM identity policies for single users and sessions of roles; the emulator's own calls are always allowed.

moto can enforce identity policies, but only for all callers at once, including the emulator's own handlers; its error
messages do not name resources, and its error code is the same in all protocols. So policies are evaluated here, for the
users that `enforcing` creates and for credentials that STS has given for a role.

Calls of users to EC2 and Secrets Manager are decided with all conditions, on each resource (`authorized_requests`).

Known limits: of other calls, and of sessions of roles, `aws:RequestedRegion` and `cloudformation:RoleArn` are the only
condition keys that are evaluated; all other conditions count as met. Resource policies and permissions boundaries are
ignored. For actions on anything but stacks, buckets, objects, secrets, instances, NAT gateways, VPC endpoints and
roles, a statement's resources are ignored. Calls that CloudFormation makes on behalf of the caller (creating a VPC,
say) are not checked, as the emulator makes them with its own credentials; `test_service_role_suffices` decides on them.
"""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import authorized_requests
import service_errors
from moto.backends import get_backend

from cfngen.sandbox.api.requests import Call
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.policy_simulation import decision, policy_texts
from cfngen.sandbox.services.web_identity import find_role

ACCOUNT = "123456789012"  # moto's
Policy = Mapping[str, Any]

# Service Authorization Reference, "Actions, resources, and condition keys for Amazon S3": operations whose action has
# another name.
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
# The same reference for CloudFormation: actions whose resource is not a stack.
ACCOUNT_WIDE = frozenset({"ListStacks", "ListExports", "ListImports", "ValidateTemplate", "EstimateTemplateCost"})
# "Actions, resources, and condition keys for Amazon EC2": the parameter that names the resource of an action, and how
# the resource's part of an ARN begins. A list of ids is checked by its first.
EC2_RESOURCES = {
    "DeleteNatGateway": ("NatGatewayId", "natgateway/"),
    "DeleteVpcEndpoints": ("VpcEndpointIds", "vpc-endpoint/"),
    "ModifyVpcEndpoint": ("VpcEndpointId", "vpc-endpoint/"),
}
# The same for IAM, whose other actions have roles.
IAM_RESOURCES = {
    "GetInstanceProfile": ("InstanceProfileName", "instance-profile/"),
    "SimulatePrincipalPolicy": ("PolicySourceArn", ""),
}
ANY = "*"
DECIDED_WITH_CONDITIONS = ("ec2", "secretsmanager")

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Credentials:
    """The access key of a user."""

    access_key: str
    secret_key: str
    user: str


@dataclass
class Permissions:
    """The permissions of users; callers without an entry may do everything.

    Attributes:
        policies: users and their policies, by access key.
        owner: returns the ARN of the stack of a change set, given the change set's ARN and region; `serving` sets it.
    """

    policies: dict[str, tuple[Credentials, Sequence[Policy]]] = field(default_factory=dict)
    owner: Callable[[str, str], str] = lambda change_set, region: ""

    def check(self, call: Call) -> None:
        """Check that the caller's policies allow a call.

        Raises:
            Refusal: no policy of the caller allows it, or one denies it
        """
        if call.action == "sts:GetCallerIdentity":  # always allowed
            return
        if call.key in self.policies:
            credentials, policies = self.policies[call.key]
            caller = credentials.user
        elif session := _session(call.key):
            caller, policies = session.arn, _policies_of_role(session)
        else:
            return
        if call.service in DECIDED_WITH_CONDITIONS and call.key in self.policies:
            for request in authorized_requests.requests(call.service, call.operation, call.parameters, call.region):
                if decision(policies, *request) != "allowed":
                    raise service_errors.denied(call, request.action, caller, request.resource)
            return
        action, resource = action_of(call), resource_of(call)
        if ":changeSet/" in resource:  # the resource of the action is the change set's stack
            resource = self.owner(resource, call.region) or resource
        context = {
            "aws:requestedregion": call.region,
            "cloudformation:rolearn": str(call.parameters.get("RoleARN", "")),
        }
        if not allowed(policies, action, resource, context):
            raise service_errors.denied(call, action, caller, resource)

    @contextlib.contextmanager
    def enforcing(self, *policies: Policy, name: str = "") -> Iterator[Credentials]:
        """Create a user with these policies and no others; yield the credentials for a session.

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


def _session(access_key: str) -> Any:
    """Return moto's session of a role that has an access key; None if the key is another's."""
    sessions = get_backend("sts")[ACCOUNT]["aws"].assumed_roles
    return next((session for session in sessions if session.access_key_id == access_key), None)


def _policies_of_role(session: Any) -> Sequence[Policy]:
    """Return the inline and managed policies of a session's role, without its boundary."""
    role = find_role("", session.role_arn)
    return [policy_documents.parse(text) for text in policy_texts(role)] if role is not None else []


def action_of(call: Call) -> str:
    """Return the IAM action of a call, e.g. `s3:ListBucket` for HeadBucket."""
    name = S3_ACTIONS.get(call.operation, call.operation) if call.service == "s3" else call.operation
    return f"{call.service}:{name}"


def resource_of(call: Call) -> str:
    """Return the ARN of the resource that a call acts on; `*` if it has none, or it is unknown to the emulator."""
    parameters = call.parameters
    if call.service == "s3" and parameters.get("Bucket"):
        # Of the objects in one DeleteObjects call, only the first is checked.
        deleted_objects = parameters.get("Delete", {}).get("Objects") or [{}]
        key = parameters.get("Key") or deleted_objects[0].get("Key")
        return f"arn:aws:s3:::{parameters['Bucket']}/{key}" if key else f"arn:aws:s3:::{parameters['Bucket']}"
    if call.service == "cloudformation" and call.operation not in ACCOUNT_WIDE:
        return _stack(call)
    names = {"ec2": ("InstanceId", "ec2", "instance/"), "iam": ("RoleName", "iam", "role/"),
             "secretsmanager": ("SecretId", "secretsmanager", "secret:")}  # fmt: skip
    if call.service in names:
        parameter, service, prefix = names[call.service]
        if call.service == "ec2" and call.operation in EC2_RESOURCES:
            parameter, prefix = EC2_RESOURCES[call.operation]
        elif call.service == "iam" and call.operation in IAM_RESOURCES:
            parameter, prefix = IAM_RESOURCES[call.operation]
        [value, *_] = [str(each) for each in _listed(parameters.get(parameter, ""))] or [""]
        region = "" if service == "iam" else call.region
        return (
            value if value.startswith("arn:") or not value else f"arn:aws:{service}:{region}:{ACCOUNT}:{prefix}{value}"
        )
    return ANY


def allowed(policies: Sequence[Policy], action: str, resource: str, context: Mapping[str, str]) -> bool:
    """Return whether a statement allows an action on a resource, and none denies it.

    Args:
        context: values of the condition keys that are evaluated; empty if the request lacks one.
    """
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in _listed(policy["Statement"])
        if _applies(statement, action, resource, context)
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


def _applies(statement: Mapping[str, Any], action: str, resource: str, context: Mapping[str, str]) -> bool:
    if "NotAction" in statement:
        applies = not _any_matches(statement["NotAction"], action, ignore_case=True)
    else:
        applies = _any_matches(statement["Action"], action, ignore_case=True)
    if applies and resource not in (ANY, ""):
        if "NotResource" in statement:
            applies = not _any_matches(statement["NotResource"], resource)
        else:
            applies = _any_matches(statement["Resource"], resource)
    return applies and _condition_holds(statement.get("Condition", {}), context)


def _condition_holds(conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    return all(
        _any_matches(expected, context[key.lower()]) is not operator.startswith("StringNot")
        for operator, keys in conditions.items()
        for key, expected in keys.items()
        if key.lower() in context
    )


def _any_matches(patterns: str | Sequence[str], value: str, *, ignore_case: bool = False) -> bool:
    if ignore_case:
        value = value.lower()
    return any(fnmatch.fnmatchcase(value, pattern.lower() if ignore_case else pattern) for pattern in _listed(patterns))


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]

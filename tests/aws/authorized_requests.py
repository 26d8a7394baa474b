"""What IAM decides on for one call: for each resource, the action and the keys of conditions ("request context").

A call needs permission for each resource that it names, and for the new resource that it makes; one that sets tags on a
new resource of EC2 needs `ec2:CreateTags` as well ("Grant permission to tag Amazon EC2 resources during creation",
Amazon EC2 User Guide). Which types of resources an action has, and which keys, is in the Service Authorization
Reference (`service_authorization`).

Keys: `aws:ResourceTag`, `aws:RequestTag` and `aws:TagKeys` of Auto Scaling, EC2, Elastic Load Balancing, IAM, KMS and
Secrets Manager; `ec2:CreateAction` and `ec2:Vpc`; `elasticloadbalancing:CreateAction`; `iam:PermissionsBoundary` and
`iam:PassedToService`; `cloudformation:RoleArn`; `s3:if-none-match`, `s3:object-lock-mode`,
`s3:ObjectCreationOperation` and `s3:prefix`; `aws:RequestedRegion`. What a service asks of another one on behalf of the
caller (KMS for a secret) is not among them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import service_authorization
from moto.backends import get_backend

from cfngen.sandbox.services.authorization import Request
from cfngen.sandbox.services.keys import find_key

ACCOUNT = "123456789012"  # moto's
Context = dict[str, list[str]]
# How ids begin, and the types that the reference has for them.
ID_TYPES = {
    "cr": "capacity-reservation", "dopt": "dhcp-options", "eipalloc": "elastic-ip", "eni": "network-interface",
    "fl": "vpc-flow-log", "i": "instance", "igw": "internet-gateway", "key": "key-pair", "lt": "launch-template",
    "nat": "natgateway", "rtb": "route-table", "sg": "security-group", "snap": "snapshot", "subnet": "subnet",
    "vol": "volume", "vpc": "vpc", "vpce": "vpc-endpoint",
}  # fmt: skip
ID = re.compile(r"([a-z-]+)-[0-9a-f]+")
# The reference for Amazon S3: operations whose action has another name.
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
# The same: keys of conditions, by the parameters of operations that they are in.
S3_KEYS = {"IfNoneMatch": "s3:if-none-match", "ObjectLockMode": "s3:object-lock-mode", "Prefix": "s3:prefix"}
# The same for CloudFormation: actions whose resource is not a stack.
ACCOUNT_WIDE = frozenset({"ListStacks", "ListExports", "ListImports", "ValidateTemplate", "EstimateTemplateCost"})
BALANCING_ARNS = ("LoadBalancerArn", "TargetGroupArn", "ListenerArn", "RuleArn")


def requests(service: str, operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Request]:
    """Yield what IAM decides on for a call.

    A call without any resource that is known here is one request for `*`.

    Args:
        service: in the signature, e.g. `elasticloadbalancing`.
        operation: e.g. `DeleteVpc`.
        parameters: by their names in the API.
        region: whose endpoint is called.
    """
    if service in OF_SERVICES:
        yield from OF_SERVICES[service](operation, parameters, region)
    else:
        yield Request(f"{service}:{operation}", "*", {"aws:requestedregion": [region]})


def action_of(service: str, operation: str) -> str:
    """Return the IAM action of an operation, e.g. `s3:ListBucket` for HeadBucket; of a version's, the object's."""
    return f"{service}:{S3_ACTIONS.get(operation, operation) if service == 's3' else operation}"


@cache
def _types(action: str) -> tuple[str, ...]:
    """The types of resources of an action; those that each call has end in an asterisk."""
    return tuple(
        kind + "*" * (kind in each.required) for each in service_authorization.matching(action) for kind in each.types
    )


def _of_ec2(operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Request]:
    action, in_region = f"ec2:{operation}", {"aws:requestedregion": [region]}
    types = _types(action)
    named = [(ID_TYPES[name.partition("-")[0]], name) for name in _ids(parameters, region)]
    if operation in ("CreateTags", "DeleteTags"):
        in_region |= _request_tags(parameters.get("Tags") or ())
    existing = [(kind, name) for kind, name in named if {kind, f"{kind}*"} & {*types} or operation.endswith("Tags")]
    for kind, name in existing:
        tags = get_backend("ec2")[ACCOUNT][region].describe_tags(filters={"resource-id": [name]})
        context = {f"aws:resourcetag/{tag['key'].lower()}": [tag["value"]] for tag in tags}
        yield Request(action, _ec2_arn(kind, name, region), {**in_region, **context, **_vpc(name, region)})
    specifications = {
        specification["ResourceType"]: _request_tags(specification.get("Tags") or ())
        for specification in parameters.get("TagSpecifications") or ()
    }
    new = [kind.rstrip("*") for kind in types if kind.endswith("*") and kind.rstrip("*") not in dict(existing)]
    for kind in new:
        yield Request(action, _ec2_arn(kind, "*", region), {**in_region, **specifications.get(kind, {})})
    for kind, tags in specifications.items():
        context = {**in_region, **tags, "ec2:createaction": [operation]}
        yield Request("ec2:CreateTags", _ec2_arn(kind, "*", region), context)
    if not existing and not new:
        yield Request(action, "*", in_region)


def _ids(parameters: Mapping[str, Any], region: str) -> Iterator[str]:
    """Yield the ids that a call names, and those of the resources that an association is of."""
    lists = (value if isinstance(value, list) else [value] for value in parameters.values())
    if "KeyName" in parameters and "PublicKeyMaterial" not in parameters:
        yield from (pair.id for pair in get_backend("ec2")[ACCOUNT][region].describe_key_pairs([parameters["KeyName"]]))
    for name in itertools.chain.from_iterable(lists):
        match = ID.fullmatch(name) if isinstance(name, str) else None
        if match and match[1] in ID_TYPES:
            yield name
        elif match:
            yield from _associated(name, region)


def _associated(association: str, region: str) -> Iterator[str]:
    backend = get_backend("ec2")[ACCOUNT][region]
    for address in backend.addresses:
        if address.association_id == association:
            yield from (address.allocation_id, address.eni.id)
    for table in backend.route_tables.values():
        for attached in table.associations:
            if attached["RouteTableAssociationId"] == association:
                yield from (table.id, attached["SubnetId"])
    for vpc in backend.vpcs.values():
        if association in [block["association_id"] for block in vpc.cidr_block_association_set]:
            yield vpc.id


def _vpc(resource_id: str, region: str) -> Context:
    """The VPC of a route table, security group, subnet or network interface."""
    backend = get_backend("ec2")[ACCOUNT][region]
    if resource_id.startswith("rtb-"):
        vpc = backend.route_tables[resource_id].vpc_id
    elif resource_id.startswith("sg-"):
        vpc = next((groups[resource_id].vpc_id for groups in backend.groups.values() if resource_id in groups), "")
    elif resource_id.startswith("subnet-"):
        vpc = next((zone[resource_id].vpc_id for zone in backend.subnets.values() if resource_id in zone), "")
    elif resource_id.startswith("eni-") and resource_id in backend.enis:
        vpc = backend.enis[resource_id].subnet.vpc_id
    else:
        return {}
    return {"ec2:vpc": [_ec2_arn("vpc", vpc, region)]}


def _ec2_arn(kind: str, resource_id: str, region: str) -> str:
    account = "" if kind in ("image", "snapshot") else ACCOUNT
    return f"arn:aws:ec2:{region}:{account}:{kind}/{resource_id}"


def _of_iam(operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Request]:
    backend, in_region = get_backend("iam")[ACCOUNT]["aws"], {"aws:requestedregion": [region]}
    kinds = {kind.rstrip("*") for kind in _types(f"iam:{operation}")}
    if "RoleName" in parameters and "role" in kinds:
        name = parameters["RoleName"]
        role = next((role for role in backend.get_roles() if role.name == name), None)
        boundary = parameters.get("PermissionsBoundary") or (role.permissions_boundary_arn if role else "")
        context = {
            **in_region,
            **(_request_tags(parameters.get("Tags") or ())),
            **({f"aws:resourcetag/{key.lower()}": [value] for key, value in _tags_of_role(role)} if role else {}),
            **({"iam:permissionsboundary": [boundary]} if boundary else {}),
        }
        arn = role.arn if role else f"arn:aws:iam::{ACCOUNT}:role{parameters.get('Path', '/')}{name}"
        yield Request(f"iam:{operation}", arn, context)
    elif "policy" in kinds:
        arn = (
            parameters.get("PolicyArn")
            or f"arn:aws:iam::{ACCOUNT}:policy{parameters.get('Path', '/')}{parameters['PolicyName']}"
        )
        yield Request(f"iam:{operation}", arn, in_region)
    elif "instance-profile" in kinds:
        name = parameters["InstanceProfileName"]
        made = backend.instance_profiles.values()
        found = (profile.arn for profile in made if profile.name == name)
        profile = next(found, f"arn:aws:iam::{ACCOUNT}:instance-profile{parameters.get('Path', '/')}{name}")
        yield Request(f"iam:{operation}", profile, in_region)
        if operation == "AddRoleToInstanceProfile":
            role = next(role for role in backend.get_roles() if role.name == parameters["RoleName"])
            yield Request("iam:PassRole", role.arn, {"iam:passedtoservice": ["ec2.amazonaws.com"]})
    elif "PolicySourceArn" in parameters:
        yield Request(f"iam:{operation}", parameters["PolicySourceArn"], in_region)
    else:
        yield Request(f"iam:{operation}", "*", in_region)


def _tags_of_role(role: Any) -> Iterator[tuple[str, str]]:
    for tag in role.tags.values() if isinstance(role.tags, dict) else role.tags or ():
        yield tag["Key"], tag["Value"]


def _of_secrets(operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Request]:
    secret_id = parameters.get("SecretId") or parameters.get("Name") or ""
    context: Context = {"aws:requestedregion": [region], **_request_tags(parameters.get("Tags") or ())}
    secret = get_backend("secretsmanager")[ACCOUNT][region].secrets.get(secret_id) if secret_id else None
    if secret is not None:
        context |= {f"aws:resourcetag/{tag['Key'].lower()}": [tag["Value"]] for tag in secret.tags or ()}
        yield Request(f"secretsmanager:{operation}", secret.arn, context)
    elif secret_id:
        # Secrets Manager appends six characters to the name.
        arn = f"arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:{secret_id}-AbCdEf"
        yield Request(f"secretsmanager:{operation}", secret_id if secret_id.startswith("arn:") else arn, context)
    else:
        yield Request(f"secretsmanager:{operation}", "*", context)


def _of_s3(operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Request]:
    action, bucket = action_of("s3", operation), f"arn:aws:s3:::{parameters.get('Bucket', '')}"
    context = {"aws:requestedregion": [region]}
    if action == "s3:PutObject":
        creates = operation not in ("CreateMultipartUpload", "UploadPart")
        context |= {"s3:objectcreationoperation": [str(creates).lower()]}
    for parameter, key in S3_KEYS.items():
        context |= {key: [str(parameters[parameter])]} if parameters.get(parameter) else {}
    if operation == "CopyObject":
        source = parameters["CopySource"].partition("?")[0].lstrip("/")
        yield Request("s3:GetObject", f"arn:aws:s3:::{source}", {"aws:requestedregion": [region]})
    named = parameters.get("Delete", {}).get("Objects") or ([parameters] if parameters.get("Key") else [])
    for item in named:
        of_version = "Version" if item.get("VersionId") and action in ("s3:DeleteObject", "s3:GetObject") else ""
        yield Request(f"{action}{of_version}", f"{bucket}/{item['Key']}", context)
    if not named:
        yield Request(action, bucket if parameters.get("Bucket") else "*", context)


def _of_cloudformation(operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Request]:
    """Of a change set, the resource is its own ARN, if the call gives that: who serves the call knows the stack."""
    context = {"aws:requestedregion": [region], **_request_tags(parameters.get("Tags") or ())}
    role = parameters.get("RoleARN")
    context |= {"cloudformation:rolearn": [role]} if role else {}
    yield Request(f"cloudformation:{operation}", _stack(operation, parameters, region), context)
    if role:
        yield Request("iam:PassRole", role, {"iam:passedtoservice": ["cloudformation.amazonaws.com"]})


def _stack(operation: str, parameters: Mapping[str, Any], region: str) -> str:
    if operation in ACCOUNT_WIDE:
        return "*"
    for parameter in ("StackName", "ChangeSetName", "OperationId"):
        value = str(parameters.get(parameter, ""))
        if value.startswith("arn:"):
            return value
        if parameter == "StackName" and value:
            return f"arn:aws:cloudformation:{region}:{ACCOUNT}:stack/{value}/*"
    return "*"


def _of_auto_scaling(operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Request]:
    groups = get_backend("autoscaling")[ACCOUNT][region].autoscaling_groups
    tags = [tag for tag in parameters.get("Tags") or () if "Key" in tag]
    context = {"aws:requestedregion": [region], **_request_tags(tags)}
    names = {parameters.get("AutoScalingGroupName"), *(tag.get("ResourceId") for tag in tags)} - {None}
    if "InstanceId" in parameters and not names:
        members = {state.instance.id: name for name, group in groups.items() for state in group.instance_states}
        names = {members.get(parameters["InstanceId"])} - {None}
    if not _types(f"autoscaling:{operation}") or not names:
        yield Request(f"autoscaling:{operation}", "*", context)
        return
    for name in sorted(names):
        new = f"arn:aws:autoscaling:{region}:{ACCOUNT}:autoScalingGroup:*:autoScalingGroupName/{name}"
        arn, own_tags = (groups[name].arn, groups[name].tags) if name in groups else (new, ())
        yield Request(f"autoscaling:{operation}", arn, {**context, **_resource_tags(own_tags)})


def _of_load_balancing(operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Request]:
    action, tagging = f"elasticloadbalancing:{operation}", get_backend("elbv2")[ACCOUNT][region].tagging_service
    context = {"aws:requestedregion": [region], **_request_tags(parameters.get("Tags") or ())}
    here = f"arn:aws:elasticloadbalancing:{region}:{ACCOUNT}"
    arns = [parameters[name] for name in BALANCING_ARNS if parameters.get(name)]
    arns += parameters.get("ResourceArns") or []
    made = {"CreateLoadBalancer": f"{here}:loadbalancer/net/{parameters.get('Name')}/*",
            "CreateTargetGroup": f"{here}:targetgroup/{parameters.get('Name')}/*"}.get(operation)  # fmt: skip
    for arn in [made] if made else arns if _types(action) else []:
        tags = tagging.list_tags_for_resource(arn)["Tags"]
        yield Request(action, arn, {**context, **_resource_tags(tags)})
    if made and parameters.get("Tags"):
        creating = {**context, "elasticloadbalancing:createaction": [operation]}
        yield Request("elasticloadbalancing:AddTags", made, creating)
    if not made and not (arns and _types(action)):
        yield Request(action, "*", context)


def _of_keys(operation: str, parameters: Mapping[str, Any], region: str) -> Iterator[Request]:
    tags = [{"Key": tag["TagKey"], "Value": tag["TagValue"]} for tag in parameters.get("Tags") or ()]
    context = {"aws:requestedregion": [region], **_request_tags(tags)}
    key = find_key(region, parameters.get("KeyId") or "")
    if key is None:
        yield Request(f"kms:{operation}", "*", context)
        return
    own = get_backend("kms")[ACCOUNT][region].list_resource_tags(key.id)["Tags"]
    own_tags = [{"Key": tag["TagKey"], "Value": tag["TagValue"]} for tag in own]
    yield Request(f"kms:{operation}", key.arn, {**context, **_resource_tags(own_tags)})


def _resource_tags(tags: Any) -> Context:
    return {f"aws:resourcetag/{tag['Key'].lower()}": [tag["Value"]] for tag in tags}


def _request_tags(tags: Any) -> Context:
    values = {f"aws:requesttag/{tag['Key'].lower()}": [tag.get("Value", "")] for tag in tags}
    return {**values, "aws:tagkeys": [tag["Key"] for tag in tags]} if values else {}


OF_SERVICES: Mapping[str, Callable[[str, Mapping[str, Any], str], Iterator[Request]]] = {
    "autoscaling": _of_auto_scaling,
    "cloudformation": _of_cloudformation,
    "ec2": _of_ec2,
    "elasticloadbalancing": _of_load_balancing,
    "iam": _of_iam,
    "kms": _of_keys,
    "s3": _of_s3,
    "secretsmanager": _of_secrets,
}

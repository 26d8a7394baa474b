"""Acknowledgements of what checkers of templates find and is meant to be so, in the metadata of each resource.

checkov reads `checkov` ("Suppressing and skipping policies", checkov documentation), cdk-nag 2 reads `cdk_nag`, and
.ci/audit hands the latter to cdk-nag 3. A finding is acknowledged only on a resource that it is about, and only if the
tables below say why; so a checker is silent where something was decided, and speaks where it was not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cfngen.cluster.naming.logical_ids import ISSUER_BUCKET

Properties = Mapping[str, Any]

_NO_LOGS = "A network load balancer logs connections of TLS listeners only; this one passes TLS on to the API servers."
_DEFAULT_CERTIFICATE = (
    "The issuer has the name and the certificate of CloudFront, for which the minimum TLS version cannot be set; AWS "
    "STS uses TLS 1.2."
)
_PUBLIC_DOCUMENTS = "It serves two documents with public keys, which everybody may read from everywhere."
_REWRITTEN = "Its two documents hold public keys, and masters write them again at each boot."
_JOIN_SECRET = "Masters renew the token in it every six hours."
_CA_SECRET = "A cluster's authorities change with every certificate of it, which no rotation function could replace."
_BY_CONDITION = "The ids are known only once the resources exist; the condition of the statement binds it to them."


@dataclass(frozen=True)
class _Decision:
    """A reason why findings of some rules on resources of a type are meant to be so.

    Attributes:
        when: whether a resource, given its logical id and properties, is one that the reason is about.
    """

    type: str
    rules: str
    reason: str
    when: Callable[[str, Properties], object] = lambda logical_id, properties: True


_DECISIONS = (
    _Decision(
        "AWS::ElasticLoadBalancingV2::LoadBalancer", "CKV_AWS_91 AwsSolutions-ELB2 NIST.800.53.R5-ELBLoggingEnabled",
        _NO_LOGS,
    ),
    _Decision(
        "AWS::ElasticLoadBalancingV2::LoadBalancer", "NIST.800.53.R5-ELBDeletionProtectionEnabled",
        "It would keep a creation that fails from rolling back; the termination protection of the stack protects it.",
    ),
    _Decision(
        "AWS::ElasticLoadBalancingV2::Listener", "NIST.800.53.R5-ELBv2ACMCertificateRequired",
        "TLS ends at the API servers, which verify the certificates of clients.",
        lambda logical_id, properties: properties["Protocol"] == "TCP",
    ),
    _Decision(
        "AWS::IAM::Role", "NIST.800.53.R5-IAMNoInlinePolicy",
        "The policy is for this role alone, and lives and dies with it.",
        lambda logical_id, properties: properties.get("Policies"),
    ),
    _Decision(
        "AWS::SecretsManager::Secret", "AwsSolutions-SMG4 NIST.800.53.R5-SecretsManagerRotationEnabled", _JOIN_SECRET,
        lambda logical_id, properties: logical_id == "JoinSecret",
    ),
    _Decision(
        "AWS::SecretsManager::Secret", "AwsSolutions-SMG4 NIST.800.53.R5-SecretsManagerRotationEnabled", _CA_SECRET,
        lambda logical_id, properties: logical_id == "CaSecret",
    ),
    _Decision(
        "AWS::EC2::VPC", "NIST.800.53.R5-VPCDefaultSecurityGroupClosed",
        "CloudFormation cannot change a VPC's default security group; nothing of the cluster is in it.",
    ),
    _Decision(
        "AWS::EC2::Route", "NIST.800.53.R5-VPCNoUnrestrictedRouteToIGW",
        "It is the route of the public subnets; security groups decide what comes in.",
        lambda logical_id, properties: "GatewayId" in properties
        and str(properties.get("DestinationCidrBlock")).endswith("/0"),
    ),
    _Decision(
        "AWS::EC2::SecurityGroupIngress", "NIST.800.53.R5-EC2RestrictedCommonPorts",
        "The source is a security group of the cluster, not a range of addresses.",
        lambda logical_id, properties: str(properties["IpProtocol"]) == "-1" and "SourceSecurityGroupId" in properties,
    ),
    _Decision(
        "AWS::S3::Bucket", "NIST.800.53.R5-S3BucketReplicationEnabled",
        "What is in it serves the cluster in this region; copies elsewhere are the account's to decide.",
    ),
    _Decision(
        "AWS::S3::Bucket",
        "CKV_AWS_21 NIST.800.53.R5-S3BucketVersioningEnabled NIST.800.53.R5-S3DefaultEncryptionKMS", _REWRITTEN,
        lambda logical_id, properties: logical_id == ISSUER_BUCKET,
    ),
    _Decision(
        "AWS::ECR::Repository", "CKV_AWS_136",
        "ECR encrypts images with keys of its own; who may pull is decided by IAM policies alone.",
    ),
    _Decision("AWS::CloudFront::Distribution", "CKV_AWS_68 AwsSolutions-CFR1 AwsSolutions-CFR2", _PUBLIC_DOCUMENTS),
    _Decision(
        "AWS::CloudFront::Distribution", "CKV_AWS_86 AwsSolutions-CFR3",
        "Its logs would need a bucket with access control lists; logging.bucket has those of the bucket behind it.",
    ),
    _Decision("AWS::CloudFront::Distribution", "CKV_AWS_174 AwsSolutions-CFR4", _DEFAULT_CERTIFICATE),
)  # fmt: skip

_IN_BACKUP_PLAN = "NIST.800.53.R5-EC2EBSInBackupPlan"
_BACKED_UP = _Decision(
    "AWS::EC2::Volume", _IN_BACKUP_PLAN,
    "Masters back up the etcd on it themselves, consistently, to S3; a snapshot is kept when it is deleted.",
)  # fmt: skip
_NOT_BACKED_UP = _Decision(
    "AWS::EC2::Volume", _IN_BACKUP_PLAN,
    "The cluster file has etcd.backups.enabled: false, so nothing backs up the etcd on it; a snapshot is kept when it "
    "is deleted.",
)  # fmt: skip
_WILDCARD_RULE = "AwsSolutions-IAM5"
_OF_CLUSTER_FILE = "ClusterFile"  # as the ids of statements begin that the user has written
# Actions that AWS allows on every resource or none (Service Authorization Reference), or that only read.
_WITHOUT_RESOURCE = re.compile(
    r"(\w|-)+:(Describe|List)\w+|ec2:Get\w+|ecr:GetAuthorizationToken|ssmmessages:(Create|Open)\w+Channel"
)
# Resources of statements without a condition: a part of the ARN, and the reason.
_WILDCARDS = (
    (r":stack/[<$].+\*", "CloudFormation appends random characters to the name."),
    (r":ecr:\*:\*:repository/\*", "It only reads; the repositories' own policies decide."),
    (r":ecr:\*:602401143452:repository/\*", "It only reads AWS's own images of add-ons."),
    (r":s3:::[<$]\S+/etcd/\S*\*", "The snapshots are below the cluster's name."),
    (r":(ec2:\S+:instance|ssm:\S+:managed-instance)/\*", "The SSM agent names its instance itself."),
    (r":ec2:\S+:vpc/\*", "It takes a security group as well, whose statement has a condition."),
    (r":elasticloadbalancing:\S+:listener-rule/(app|net)/\*", "It only orders the rules of listeners."),
    (r":route53:::change/\*", "It only reads whether a change is made; ids are random."),
    (r":(acm|iam|cognito-idp):\S+/\*", "It only reads what ingresses name."),
)


def acknowledge(resources: Mapping[str, dict[str, Any]], *, is_backed_up: bool) -> None:
    """Write the acknowledgements of the resources of a template into their metadata, in place of earlier ones.

    Args:
        is_backed_up: whether masters take snapshots of etcd.
    """
    decisions = (*_DECISIONS, _BACKED_UP if is_backed_up else _NOT_BACKED_UP)
    for logical_id, resource in resources.items():
        skipped: list[dict[str, object]] = []
        suppressed: list[dict[str, object]] = []
        for rule, reason in _acknowledged(logical_id, resource, decisions):
            if rule.startswith("CKV"):
                skipped.append({"id": rule, "comment": reason})
            else:
                suppressed.append({"id": rule, "reason": reason})
        suppressed += [
            {"id": _WILDCARD_RULE, "reason": reason, "applies_to": findings}
            for reason, findings in _acknowledged_wildcards(resource).items()
        ]
        metadata = {
            **resource.get("Metadata", {}),
            **({"checkov": {"skip": skipped}} if skipped else {}),
            **({"cdk_nag": {"rules_to_suppress": suppressed}} if suppressed else {}),
        }
        if metadata:
            resource["Metadata"] = metadata


def _acknowledged(
    logical_id: str, resource: Mapping[str, Any], decisions: Iterable[_Decision]
) -> Iterator[tuple[str, str]]:
    """Yield the rules whose findings on a resource are meant to be so, each with the reason."""
    for decision in decisions:
        if decision.type == resource["Type"] and decision.when(logical_id, resource.get("Properties", {})):
            for rule in decision.rules.split():
                yield rule, decision.reason


def _acknowledged_wildcards(resource: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the resources with wildcards in a role's policies, as cdk-nag's findings, by the reason for them.

    cdk-nag has one finding for all statements of a role with the same resource; so all of them need a reason.
    """
    if resource["Type"] not in ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy"):
        return {}
    properties = resource["Properties"]
    documents = [policy["PolicyDocument"] for policy in properties.get("Policies", ())]
    documents += [properties["PolicyDocument"]] if "PolicyDocument" in properties else []
    reasons: dict[str, str] = {}
    for document in documents:
        for statement in document["Statement"]:
            for pattern in map(_flattened, _as_list(statement["Resource"])):
                if statement["Effect"] == "Allow" and "*" in pattern:
                    finding, reason = f"Resource::{pattern}", _reason_for_wildcard(statement, pattern)
                    # That of a statement without a condition says more.
                    if finding not in reasons or not reason or (reasons[finding] and reason != _BY_CONDITION):
                        reasons[finding] = reason
    findings_by_reason: dict[str, list[str]] = {}
    for finding, reason in reasons.items():
        if reason:
            findings_by_reason.setdefault(reason, []).append(finding)
    return findings_by_reason


def _reason_for_wildcard(statement: Mapping[str, Any], pattern: str) -> str:
    """Return why a statement allows something on all resources that match a pattern; empty if no reason is known."""
    if str(statement.get("Sid", "")).startswith(_OF_CLUSTER_FILE) or "${" in pattern:
        return ""
    if "Condition" in statement:
        return _BY_CONDITION
    if pattern == "*":
        has_reason = all(_WITHOUT_RESOURCE.fullmatch(action) for action in _as_list(statement["Action"]))
        return "The actions only read, or have no resource that a statement could name." if has_reason else ""
    return next((reason for known, reason in _WILDCARDS if re.search(known, pattern)), "")


def _flattened(expression: Any) -> str:
    """Return the ARN of a statement's resource as cdk-nag writes it, with references in angle brackets."""
    if isinstance(expression, str):
        return expression.replace("${", "<").replace("}", ">")
    [(function, argument)] = expression.items()
    if function == "Ref":
        return f"<{argument}>"
    if function == "Fn::GetAtt":
        return f"<{'.'.join(argument)}>"
    if function == "Fn::Join":
        delimiter, parts = argument
        return str(delimiter).join(map(_flattened, parts))
    # Of Fn::Sub with variables, into which cdk-nag does not look, nothing is acknowledged.
    return json.dumps(argument) if isinstance(argument, list) else _flattened(argument)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]

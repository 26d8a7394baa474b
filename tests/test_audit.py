"""The numbers of `make audit` that need no checker, and what the templates acknowledge to checkers."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster.load import load, parse
from cfngen.templates import generate
from cfngen.templates.acknowledgements import acknowledge

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / ".ci" / "audit"))

import audit  # noqa: E402
from counts import counts  # noqa: E402

BASELINE = json.loads(audit.BASELINE.read_text())


def test_no_number_is_worse_than_before() -> None:
    numbers = {cluster: counts(resources) for cluster, resources in audit.standalone_resources().items()}
    assert audit.worsened(numbers, BASELINE) == []
    assert audit.worsened({"default": {"rules open to the world": 1}}, BASELINE) != []


def test_the_hardened_example_names_no_account() -> None:
    """Neither literally, which cloudformation-validate would find (W9013), nor in text that is not replaced (E1029)."""
    for document in generate(load(ROOT / "examples" / "hardened.yaml", environ={}).cluster):
        assert not re.search(r":[0-9]{12}:", json.dumps(document.body)), document.name


def test_the_page_has_the_numbers() -> None:
    assert audit.START + audit.table(BASELINE) + audit.END in audit.PAGE.read_text()


def resources(**file: Any) -> dict[str, Any]:
    return dict(generate(parse(file))[-1].body["Resources"])


def acknowledged(resource: dict[str, Any]) -> dict[str, str]:
    """The reasons in the metadata of a resource, by rule or, of policies with wildcards, by finding."""
    metadata = resource.get("Metadata", {})
    of_nag = metadata.get("cdk_nag", {}).get("rules_to_suppress", [])
    return {
        **{each["id"]: each["comment"] for each in metadata.get("checkov", {}).get("skip", [])},
        **{finding: each["reason"] for each in of_nag for finding in each.get("applies_to", [each["id"]])},
    }


def wildcards(resource: dict[str, Any]) -> list[str]:
    """What cdk-nag finds in the policies of a role, where no reference has variables."""
    documents = [policy["PolicyDocument"] for policy in resource["Properties"].get("Policies", [])]
    documents += [resource["Properties"]["PolicyDocument"]] if resource["Type"] == "AWS::IAM::ManagedPolicy" else []
    texts = [
        arn if isinstance(arn, str) else arn["Fn::Sub"]
        for document in documents
        for statement in document["Statement"]
        for arn in statement["Resource"]
        if arn == "*" or "Fn::Sub" in arn
    ]
    return [f"Resource::{text}".replace("${", "<").replace("}", ">") for text in texts if "*" in text]


@pytest.mark.parametrize("example", ["production", "fully-private", "hardened"])
def test_every_wildcard_of_a_role_that_is_made_has_a_reason(example: str) -> None:
    for document in generate(load(ROOT / "examples" / f"{example}.yaml", environ={}).cluster):
        for logical_id, resource in document.body["Resources"].items():
            if resource["Type"] in ("AWS::IAM::Role", "AWS::IAM::ManagedPolicy"):
                assert set(wildcards(resource)) <= acknowledged(resource).keys(), (document.name, logical_id)


def test_a_wildcard_of_the_cluster_file_is_not_acknowledged() -> None:
    """Not even where a statement of cfngen's has the same one."""
    statement = {"actions": ["ecr:PutImage"], "resources": ["arn:aws:ecr:*:*:repository/*", "*"]}
    group = {"name": "a", "minSize": 1, "maxSize": 1, "policyStatements": [statement]}
    role = resources(nodeGroups=[group, {**group, "name": "b", "policyStatements": []}])
    own = {name: acknowledged(each) for name, each in role.items() if each["Type"] == "AWS::IAM::Role"}
    with_statement = [found for found in own.values() if "Resource::*" not in found]
    assert len(with_statement) == 1
    assert "Resource::*" in own["MasterRole"]


def policy(resource: Any, *actions: str, **more: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": list(actions) or ["s3:PutObject"], "Resource": resource, **more}
    return {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": {"Statement": [statement]}}}


STACK = "arn:aws:cloudformation:*:*:stack/${AWS::StackName}-Master*"
CONDITION = {"Condition": {"StringEquals": {"aws:ResourceTag/a": "b"}}}


@pytest.mark.parametrize(("statement", "reason"), [
    (policy([{"Fn::Sub": STACK}]), "CloudFormation appends random characters"),
    (policy({"Fn::Join": ["", ["arn:aws:x:::stack/", {"Ref": "A"}, "-*"]]}), "CloudFormation appends random"),
    # cdk-nag does not look into the variables.
    (policy([{"Fn::Sub": [STACK, {"A": "b"}]}]), ""),
    (policy([{"Fn::Sub": ["*${A}", {"A": "b"}]}], **CONDITION), ""),
    (policy(["arn:aws:s3:::other/*"]), ""),
    (policy(["arn:aws:ecr:*:*:repository/*"]), "It only reads; the repositories' own policies decide."),
    (policy(["arn:aws:ecr:*:602401143452:repository/*"]), "It only reads AWS's own images of add-ons."),
    (policy(["arn:aws:ecr:*:123456789012:repository/*"]), ""),
    (policy([{"Fn::Sub": "arn:aws:s3:::${Bucket}/etcd/one/*"}]), "The snapshots are below the cluster's name."),
    (policy(["arn:aws:ec2:*:*:instance/*"]), "The SSM agent names its instance itself."),
    (policy(["arn:aws:ssm:*:*:managed-instance/*"]), "The SSM agent names its instance itself."),
    (policy(["arn:aws:ec2:*:*:volume/*"]), ""),
    (policy(["arn:aws:ec2:*:*:vpc/*"]), "It takes a security group as well, whose statement has a condition."),
    (policy(["arn:aws:elasticloadbalancing:*:*:listener-rule/app/*"]), "It only orders the rules of listeners."),
    (policy(["arn:aws:elasticloadbalancing:*:*:listener-rule/net/*"]), "It only orders the rules of listeners."),
    (policy(["arn:aws:elasticloadbalancing:*:*:listener/app/*"]), ""),
    (policy(["arn:aws:route53:::change/*"]), "It only reads whether a change is made; ids are random."),
    (policy(["arn:aws:route53:::hostedzone/*"]), ""),
    (policy(["arn:aws:acm:*:*:certificate/*"]), "It only reads what ingresses name."),
    (policy(["arn:aws:iam::*:server-certificate/*"]), "It only reads what ingresses name."),
    (policy(["arn:aws:cognito-idp:*:*:userpool/*"]), "It only reads what ingresses name."),
    (policy(["arn:aws:s3:::other/*"], **CONDITION), "The ids are known only once the resources exist"),
    (policy(["arn:aws:s3:::other/*"], **CONDITION, Sid="ClusterFile1"), ""),
    (policy(["arn:aws:s3:::other/*"], **CONDITION, Effect="Deny"), ""),
    (policy(["arn:aws:s3:::other"], **CONDITION), ""),
    (policy("*", "ec2:DescribeVpcs", "s3:ListAllMyBuckets"), "The actions only read"),
    (policy("*", "ec2:DescribeVpcs", "ec2:CreateVpc"), ""),
])  # fmt: skip
def test_a_wildcard_is_acknowledged_for_its_reason(statement: dict[str, Any], reason: str) -> None:
    acknowledge({"Policy": statement}, is_backed_up=True)
    reasons = [found for finding, found in acknowledged(statement).items() if finding.startswith("Resource::")]
    assert [found.startswith(reason) for found in reasons] == [True] * bool(reason)


APPENDED = "CloudFormation appends random characters to the name."


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("resource", "reason"), [
    # One statement has no reason, and cdk-nag has one finding for both.
    ("arn:aws:s3:::other/*", ""),
    # That of the statement without a condition says more.
    (STACK, APPENDED),
])  # fmt: skip
def test_all_statements_with_the_same_wildcard_need_a_reason(resource: str, reason: str, order: int) -> None:
    resources_of = [{"Fn::Sub": resource}]
    both = policy(resources_of)
    (statement,) = both["Properties"]["PolicyDocument"]["Statement"]
    both["Properties"]["PolicyDocument"]["Statement"] = [statement, {**statement, **CONDITION}][::order]
    acknowledge({"Policy": both}, is_backed_up=True)
    reasons = {text for finding, text in acknowledged(both).items() if finding.startswith("Resource::")}
    assert reasons == ({reason} if reason else set())


def test_a_reference_to_an_attribute_is_written_as_cdk_nag_does() -> None:
    made = policy({"Fn::Join": ["", [{"Fn::GetAtt": ["Bucket", "Arn"]}, "/*"]]}, **CONDITION)
    acknowledge({"Policy": made}, is_backed_up=True)
    [suppressed] = made["Metadata"]["cdk_nag"]["rules_to_suppress"]
    assert (suppressed["id"], suppressed["applies_to"]) == ("AwsSolutions-IAM5", ["Resource::<Bucket.Arn>/*"])


def test_each_checker_has_its_own_acknowledgements_beside_other_metadata() -> None:
    balancer = resources(controlPlane={"count": 3})["ApiLoadBalancer"]
    bare = {"Type": balancer["Type"], "Properties": balancer["Properties"], "Metadata": {"Other": {"a": "b"}}}
    acknowledge({"ApiLoadBalancer": bare}, is_backed_up=True)
    assert bare["Metadata"] == {**balancer["Metadata"], "Other": {"a": "b"}}
    of_checkov = {skipped["id"].partition("_")[0] for skipped in bare["Metadata"]["checkov"]["skip"]}
    of_nag = {rule["id"].partition("-")[0] for rule in bare["Metadata"]["cdk_nag"]["rules_to_suppress"]}
    assert (of_checkov, of_nag) == ({"CKV"}, {"AwsSolutions", "NIST.800.53.R5"})
    plain = {"Type": "AWS::EC2::InternetGateway", "Properties": {}}
    acknowledge({"Gateway": plain}, is_backed_up=True)
    assert "Metadata" not in plain


def test_what_was_decided_stands_where_a_checker_would_find_something() -> None:
    made = resources(controlPlane={"count": 3}, serviceAccountIssuer={})
    assert "TLS listeners only" in acknowledged(made["ApiLoadBalancer"])["CKV_AWS_91"]
    assert (
        "termination protection" in acknowledged(made["ApiLoadBalancer"])["NIST.800.53.R5-ELBDeletionProtectionEnabled"]
    )
    assert "CKV_AWS_174" in acknowledged(made["IssuerDistribution"])
    rotation = "NIST.800.53.R5-SecretsManagerRotationEnabled"
    assert {name: acknowledged(made[name])[rotation] for name in ("CaSecret", "JoinSecret")} == {
        "CaSecret": "A cluster's authorities change with every certificate of it, which no rotation function could "
        "replace.",
        "JoinSecret": "Masters renew the token in it every six hours.",
    }
    assert "CKV_AWS_21" in acknowledged(made["IssuerBucket"])
    assert "CKV_AWS_21" not in acknowledged(made["BackupBucket"])
    assert acknowledged(made["NodeFromNodes"])
    rules = [each for each in made.values() if each["Type"] == "AWS::EC2::SecurityGroupIngress"]
    assert {str(each["Properties"]["IpProtocol"]) for each in rules if acknowledged(each)} == {"-1"}


def test_only_volumes_that_are_backed_up_are_said_to_be() -> None:
    rule = "NIST.800.53.R5-EC2EBSInBackupPlan"
    assert acknowledged(resources()["MasterAVolume"])[rule].startswith("Masters back up the etcd on it themselves")
    without = acknowledged(resources(etcd={"backups": {"enabled": False}})["MasterAVolume"])[rule]
    assert "etcd.backups.enabled: false, so nothing backs up the etcd on it" in without


def test_access_logs_notifications_and_the_key_are_where_they_were_asked_for() -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    topic = "arn:aws:sns:us-west-2:123456789012:scaling"
    made = resources(
        etcd={"backups": {"kmsKey": key}},
        logging={"bucket": "example-logs"},
        notifications={"topic": topic},
        serviceAccountIssuer={},
    )
    logs = {name: made[name]["Properties"]["LoggingConfiguration"] for name in ("BackupBucket", "IssuerBucket")}
    assert {name: (log["DestinationBucketName"], log["LogFilePrefix"]) for name, log in logs.items()} == {
        "BackupBucket": ("example-logs", "kubernetes/etcd-backups/"),
        "IssuerBucket": ("example-logs", "kubernetes/issuer/"),
    }
    [rule] = made["BackupBucket"]["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    groups = [each for each in made.values() if each["Type"] == "AWS::AutoScaling::AutoScalingGroup"]
    topics = [group["Properties"]["NotificationConfigurations"][0]["TopicARN"] for group in groups]
    assert topics == [[topic]] * 2
    [of_key] = made["BackupsKeyPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert of_key["Resource"] == [key]

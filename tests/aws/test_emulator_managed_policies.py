"""The emulator itself: managed policies, which roles they are attached to, and what IAM would refuse."""

from __future__ import annotations

from typing import Any

from small_stacks import REGION, reasons, text
from test_updates_properties import ALLOW, LISTING, TRUST, changed

from cfngen.sandbox.cloudformation import CloudFormation, client

ROLES = {
    name: {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}} for name in ("One", "Other")
}


def policy(document: dict[str, Any], *roles: str) -> dict[str, Any]:
    return {"PolicyDocument": document, "Roles": [{"Ref": role} for role in roles]}


def attached(arn: str) -> list[str]:
    policy_roles = client("iam", REGION).list_entities_for_policy(PolicyArn=arn)["PolicyRoles"]
    return [policy_role["RoleName"].split("-")[1] for policy_role in policy_roles]


def test_document_and_roles_change_in_place(cloud: CloudFormation) -> None:
    before, after = policy(LISTING, "One"), policy(ALLOW, "Other")
    arn = changed(cloud, "AWS::IAM::ManagedPolicy", before, after, **ROLES)
    iam = client("iam", REGION)
    [version] = iam.list_policy_versions(PolicyArn=arn)["Versions"]
    document = iam.get_policy_version(PolicyArn=arn, VersionId=version["VersionId"])["PolicyVersion"]["Document"]
    assert document == ALLOW
    assert attached(arn) == ["Other"]


def test_policy_goes_before_its_role(cloud: CloudFormation) -> None:
    it = {"Type": "AWS::IAM::ManagedPolicy", "Properties": policy(LISTING, "One")}
    cloud.create_stack("s", body=text({**ROLES, "It": it}), capabilities=["CAPABILITY_IAM"])
    arn = cloud.stack("s").resources["It"].physical_id
    cloud.delete_stack("s")
    iam = client("iam", REGION)
    assert arn not in [each["Arn"] for each in iam.list_policies(Scope="Local")["Policies"]]
    assert [role for role in iam.list_roles()["Roles"] if role["RoleName"].startswith("s-")] == []


def test_too_long_a_policy_is_refused(cloud: CloudFormation) -> None:
    actions = [f"s3:GetObject{number}" for number in range(400)]
    long = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    it = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": long}}
    stack = cloud.create_stack("s", body=text({"It": it}), capabilities=["CAPABILITY_IAM"])
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "6144" in reasons(stack, "It", "CREATE_FAILED")[0]

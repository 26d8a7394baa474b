"""IAM."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from refusal import Creation, Refusal, ServiceCall, Update
from small_stacks import REGION, TRUST

from cfngen.sandbox.cloudformation import CloudFormation, client

QUOTAS = "IAM user guide: [quotas](https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html)"
GRAMMAR = (
    "IAM user guide: [grammar](https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_grammar.html), "
    "words as moto has recorded them"
)
API = "https://docs.aws.amazon.com/IAM/latest/APIReference"
ACCOUNT = "arn:aws:iam::123456789012"
LISTING = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}


def document(*statements: Mapping[str, Any], **elements: Any) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements), **elements}


def trusting(principal: Any, **elements: Any) -> dict[str, Any]:
    return document({"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole", **elements})


def role(**properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST, **properties}}


def allowing(policy: Any) -> dict[str, Any]:
    return role(Policies=[{"PolicyName": "p", "PolicyDocument": policy}])


def refused(resource: Mapping[str, Any]) -> Creation:
    """The only resource of a template, which fails."""
    return Creation(lambda: {"It": resource}, "It")


def malformed(condition: str, words: str, evidence: Any = "seen", **elements: Any) -> Refusal:
    statement = {key: value for key, value in {**LISTING, **elements}.items() if value is not None}
    policy = allowing(document(statement))
    return Refusal("AWS::IAM::Role Policies", condition, words, GRAMMAR, evidence, refused(policy))


def mistrusted(condition: str, words: str, source: str, trust: Any, evidence: Any = "seen") -> Refusal:
    resource = role(AssumeRolePolicyDocument=trust)
    return Refusal("AWS::IAM::Role AssumeRolePolicyDocument", condition, words, source, evidence, refused(resource))


def policies(count: int) -> list[str]:
    iam = client("iam", REGION)
    text = json.dumps(document(LISTING))
    return [iam.create_policy(PolicyName=f"p{i}", PolicyDocument=text)["Policy"]["Arn"] for i in range(count)]


def eleven() -> dict[str, Any]:
    return {"It": role(ManagedPolicyArns=policies(11))}


def profile(*roles: str) -> dict[str, Any]:
    return {"Type": "AWS::IAM::InstanceProfile", "Properties": {"Roles": [{"Ref": each} for each in roles]}}


def made(name: str = "one", trust: Any = TRUST) -> Any:
    iam = client("iam", REGION)
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
    return iam


def _simulated(cloud: CloudFormation) -> None:
    client("iam", REGION).simulate_principal_policy(
        PolicySourceArn=f"{ACCOUNT}:role/gone", ActionNames=["ec2:DescribeVolumes"]
    )


def _in_profile(cloud: CloudFormation) -> None:
    iam = made()
    iam.create_instance_profile(InstanceProfileName="one")
    iam.add_role_to_instance_profile(InstanceProfileName="one", RoleName="one")
    iam.delete_role(RoleName="one")


def _with_policies(cloud: CloudFormation) -> None:
    iam = made()
    iam.attach_role_policy(RoleName="one", PolicyArn=policies(1)[0])
    iam.delete_role(RoleName="one")


def _attached_elsewhere(cloud: CloudFormation) -> None:
    iam = made()
    [arn] = policies(1)
    iam.attach_role_policy(RoleName="one", PolicyArn=arn)
    iam.delete_policy(PolicyArn=arn)


def _of_several_versions(cloud: CloudFormation) -> None:
    iam = client("iam", REGION)
    [arn] = policies(1)
    iam.create_policy_version(PolicyArn=arn, PolicyDocument=json.dumps(document(LISTING)))
    iam.delete_policy(PolicyArn=arn)


def _six_versions(cloud: CloudFormation) -> None:
    iam = client("iam", REGION)
    [arn] = policies(1)
    for _ in range(5):
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=json.dumps(document(LISTING)))


def _same_name(cloud: CloudFormation) -> None:
    made("one")
    made("ONE")


def _launch(prepare: Callable[[CloudFormation, Any], str]) -> ServiceCall:
    def attempt(cloud: CloudFormation) -> None:
        ec2 = client("ec2", REGION)
        image = ec2.register_image(Name="image")["ImageId"]
        name = prepare(cloud, made())
        ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, IamInstanceProfile={"Name": name})

    return ServiceCall(attempt)


def _none(cloud: CloudFormation, iam: Any) -> str:
    return "none"


def _just_made(cloud: CloudFormation, iam: Any) -> str:
    iam.create_instance_profile(InstanceProfileName="one")
    iam.add_role_to_instance_profile(InstanceProfileName="one", RoleName="one")
    cloud.advance(5)
    return "one"


def _without_role(cloud: CloudFormation, iam: Any) -> str:
    iam.create_instance_profile(InstanceProfileName="one")
    cloud.advance(60)
    return "one"


TERRAFORM = "https://github.com/hashicorp/terraform"
ROWS = [
    mistrusted(
        "role that does not exist",
        f'Invalid principal in policy: "AWS":"{ACCOUNT}:role/gone"',
        "[opstrace/opstrace#88](https://github.com/opstrace/opstrace/issues/88)",
        trusting({"AWS": f"{ACCOUNT}:role/gone"}),
    ),
    mistrusted(
        "user that does not exist",
        f'Invalid principal in policy: "AWS":"{ACCOUNT}:user/gone"',
        f"[terraform-provider-aws#8905]({TERRAFORM}-provider-aws/issues/8905)",
        trusting({"AWS": f"{ACCOUNT}:user/gone"}),
    ),
    mistrusted(
        "id of a role that was deleted",
        'Invalid principal in policy: "AWS":"AROAEXAMPLEEXAMPLE"',
        "IAM user guide: [principal](https://docs.aws.amazon.com/IAM/latest/UserGuide/"
        "reference_policies_elements_principal.html)",
        trusting({"AWS": "AROAEXAMPLEEXAMPLE"}),
        "condition documented",
    ),
    mistrusted(
        "roles by a wildcard",
        "Invalid principal in policy",
        "IAM user guide: [principal](https://docs.aws.amazon.com/IAM/latest/UserGuide/"
        "reference_policies_elements_principal.html)",
        trusting({"AWS": f"{ACCOUNT}:role/*"}),
        "condition documented",
    ),
    mistrusted(
        "service that does not exist",
        'Invalid principal in policy: "SERVICE":"eczwei.amazonaws.com"',
        f"[hashicorp/terraform#13449]({TERRAFORM}/issues/13449), for another service",
        trusting({"Service": "eczwei.amazonaws.com"}),
        "assumed",
    ),
    mistrusted(
        "no principal", "Missing required field Principal", GRAMMAR,
        document({"Effect": "Allow", "Action": "sts:AssumeRole"}), "condition documented",
    ),
    mistrusted(
        "a resource", "Has prohibited field Resource",
        "[external-dns#3085](https://github.com/kubernetes-sigs/external-dns/issues/3085)",
        trusting({"Service": "ec2.amazonaws.com"}, Resource="*"),
    ),
    mistrusted(
        "an action that is not about assuming roles", "actions can only be sts:AssumeRole", GRAMMAR,
        trusting({"Service": "ec2.amazonaws.com"}, Action="ec2:RunInstances"),
    ),
    mistrusted("no statements", "Syntax errors in policy", GRAMMAR, document(), "seen"),
    mistrusted(
        "more than 2,048 characters", "Cannot exceed quota for ACLSizePerRole: 2048",
        QUOTAS + ", words: [kubeflow/kubeflow#6687](https://github.com/kubeflow/kubeflow/issues/6687)",
        trusting({"AWS": [f"{100_000_000_000 + number}" for number in range(200)]}), "seen",
    ),
    malformed("unknown version", "Syntax errors in policy", Version="2012-10-18"),
    malformed("effect in lower case", "The policy failed legacy parsing", Effect="allow"),
    malformed("no effect", "Syntax errors in policy", Effect=None),
    malformed("an element that does not exist", "Syntax errors in policy", Ressource="*"),
    malformed("unknown condition operator", "Syntax errors in policy", Condition={"StringEqual": {"aws:a": "b"}}),
    malformed(
        "condition key without a service", "must be prefaced by a vendor", Condition={"StringEquals": {"name": "b"}}
    ),
    malformed("action without a service", "must be prefaced by a vendor", Action="ListBucket"),
    malformed("no action", "Policy statement must contain actions", Action=None),
    malformed("no resource", "Policy statement must contain resources", Resource=None),
    malformed("resource that is no ARN", 'must be in ARN format or "*"', Resource="bucket"),
    malformed("bucket with a region", "can not contain region information", Resource="arn:aws:s3:us-west-2:1:b"),
    malformed("unknown partition", "is not valid for resource", Resource="arn:amazon:ec2:us-west-2:1:vpc/a"),
    malformed(
        "an action of any service", "must be prefaced by a vendor", "condition documented", Action="*:GetObject"
    ),
    malformed("a principal", "should not specify a principal", Principal="*"),
    Refusal(
        "AWS::IAM::Role Policies", "two statements of one Sid",
        "Statement IDs (SID) in a single policy must be unique", GRAMMAR, "seen",
        refused(allowing(document({**LISTING, "Sid": "a"}, {**LISTING, "Sid": "a"}))),
    ),
    Refusal(
        "AWS::IAM::Role Policies", "policy of the version 2008-10-17",
        "must be version 2012-10-17 or greater", GRAMMAR, "seen",
        refused(allowing(document(LISTING, Version="2008-10-17"))),
    ),
    Refusal(
        "AWS::IAM::Role Policies", "characters beyond Latin-1", "failed to satisfy constraint", QUOTAS,
        "condition documented",
        Creation(lambda: {"It": allowing(document({**LISTING, "Resource": "arn:aws:s3:::\u20ac"}))}, "It"),
    ),
    Refusal(
        "AWS::IAM::Role Policies", "more than 10,240 characters in all inline policies",
        "Maximum policy size of 10240 bytes exceeded for role",
        QUOTAS + ", words: [copilot-cli#5917](https://github.com/aws/copilot-cli/issues/5917)", "seen",
        refused(role(Policies=[
            {"PolicyName": name, "PolicyDocument": document({**LISTING, "Resource": "arn:aws:s3:::" + name * 5_200})}
            for name in "ab"
        ])),
    ),
    Refusal(
        "AWS::IAM::ManagedPolicy", "more than 6,144 characters", "Cannot exceed quota for PolicySize: 6144",
        QUOTAS + ", words: [docker/docs#5815](https://github.com/docker/docs/issues/5815)", "seen",
        refused({
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {"PolicyDocument": document({**LISTING, "Resource": "arn:aws:s3:::" + "x" * 6_144})},
        }),
    ),
    Refusal(
        "AWS::IAM::ManagedPolicy", "role that does not exist", "The role with name gone cannot be found",
        f"[AttachRolePolicy]({API}/API_AttachRolePolicy.html): NoSuchEntity", "condition documented",
        refused({
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {"PolicyDocument": document(LISTING), "Roles": ["gone"]},
        }),
    ),
    Refusal(
        "AWS::IAM::ManagedPolicy", "an update to a document that breaks the grammar",
        "Policy statement must contain resources", GRAMMAR, "seen",
        Update(
            lambda: {"It": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": document(LISTING)}}},
            lambda first: {"It": {**first["It"], "Properties": {
                "PolicyDocument": document({"Effect": "Allow", "Action": "s3:ListBucket"})}}},
            "It",
        ),
    ),
    Refusal(
        "AWS::IAM::Role ManagedPolicyArns", "policy of the account that does not exist",
        f"Policy {ACCOUNT}:policy/gone does not exist or is not attachable",
        "[getmoto/moto#6482](https://github.com/getmoto/moto/pull/6482)", "seen",
        refused(role(ManagedPolicyArns=[f"{ACCOUNT}:policy/gone"])),
    ),
    Refusal(
        "AWS::IAM::Role ManagedPolicyArns", "policy of AWS under another path",
        "AmazonEC2RoleforSSM does not exist or is not attachable",
        f"[hashicorp/terraform#31748]({TERRAFORM}/issues/31748)", "seen",
        refused(role(ManagedPolicyArns=["arn:aws:iam::aws:policy/AmazonEC2RoleforSSM"])),
    ),
    Refusal(
        "AWS::IAM::Role ManagedPolicyArns", "eleven policies", "Cannot exceed quota for PoliciesPerRole: 10",
        "[eks-hybrid#741](https://github.com/aws/eks-hybrid/pull/741)", "seen", Creation(eleven, "It"),
    ),
    Refusal(
        "AWS::IAM::Role PermissionsBoundary", "policy that does not exist",
        f"Scope ARN: {ACCOUNT}:policy/gone does not exist or is not attachable",
        f"[CreateRole]({API}/API_CreateRole.html): NoSuchEntity", "condition documented",
        refused(role(PermissionsBoundary=f"{ACCOUNT}:policy/gone")),
    ),
    Refusal(
        "AWS::IAM::Role PermissionsBoundary", "an update to one that does not exist",
        f"Scope ARN: {ACCOUNT}:policy/gone does not exist or is not attachable",
        f"[PutRolePermissionsBoundary]({API}/API_PutRolePermissionsBoundary.html): NoSuchEntity",
        "condition documented",
        Update(lambda: {"It": role()}, lambda first: {"It": role(PermissionsBoundary=f"{ACCOUNT}:policy/gone")}, "It"),
    ),
    Refusal(
        "AWS::IAM::Role Tags", "51 tags", "expected maximum item count: 50, found: 51", QUOTAS, "condition documented",
        refused(role(Tags=[{"Key": f"k{number}", "Value": "v"} for number in range(51)])),
    ),
    Refusal(
        "AWS::IAM::InstanceProfile", "two roles", "expected maximum item count: 1, found: 2",
        "template reference: [AWS::IAM::InstanceProfile](https://docs.aws.amazon.com/AWSCloudFormation/latest/"
        "TemplateReference/aws-resource-iam-instanceprofile.html)", "condition documented",
        Creation(lambda: {"One": role(), "Two": role(), "It": profile("One", "Two")}, "It"),
    ),
    Refusal(
        "AWS::IAM::InstanceProfile", "role that does not exist", "The role with name gone cannot be found",
        f"[AddRoleToInstanceProfile]({API}/API_AddRoleToInstanceProfile.html): NoSuchEntity", "condition documented",
        refused({"Type": "AWS::IAM::InstanceProfile", "Properties": {"Roles": ["gone"]}}),
    ),
    Refusal(
        "iam:SimulatePrincipalPolicy", "role that does not exist", "The role with name gone cannot be found",
        f"[SimulatePrincipalPolicy]({API}/API_SimulatePrincipalPolicy.html): NoSuchEntity", "condition documented",
        ServiceCall(_simulated),
    ),
    Refusal(
        "iam:DeleteRole", "role in an instance profile", "must remove roles from instance profile first",
        f"[DeleteRole]({API}/API_DeleteRole.html): DeleteConflict", "condition documented", ServiceCall(_in_profile),
    ),
    Refusal(
        "iam:DeleteRole", "role with attached policies", "must detach all policies first",
        f"[DeleteRole]({API}/API_DeleteRole.html): DeleteConflict", "condition documented",
        ServiceCall(_with_policies),
    ),
    Refusal(
        "iam:DeletePolicy", "policy that is attached", "Cannot delete a policy attached to entities",
        f"[DeletePolicy]({API}/API_DeletePolicy.html): DeleteConflict", "condition documented",
        ServiceCall(_attached_elsewhere),
    ),
    Refusal(
        "iam:DeletePolicy", "policy of several versions", "This policy has more than one version",
        f"[DeletePolicy]({API}/API_DeletePolicy.html)", "condition documented", ServiceCall(_of_several_versions),
    ),
    Refusal(
        "iam:CreatePolicyVersion", "a sixth version", "LimitExceeded", QUOTAS, "condition documented",
        ServiceCall(_six_versions),
    ),
    Refusal(
        "iam:CreateRole", "name that differs from another in case only", "already exists",
        QUOTAS + ": names are not distinguished by case", "condition documented", ServiceCall(_same_name),
    ),
    Refusal(
        "ec2:RunInstances", "instance profile that does not exist",
        "for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        "[aws-sdk-js-v3#5253](https://github.com/aws/aws-sdk-js-v3/issues/5253)", "seen", _launch(_none),
    ),
    Refusal(
        "ec2:RunInstances", "instance profile that was made five seconds ago",
        "for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        f"[hashicorp/terraform#1885]({TERRAFORM}/issues/1885), IAM user guide: eventual consistency; how long it takes "
        "is assumed",
        "seen", _launch(_just_made),
    ),
    Refusal(
        "ec2:RunInstances", "instance profile without a role", "has no associated IAM Roles",
        f"[hashicorp/terraform#4306]({TERRAFORM}/issues/4306)", "seen", _launch(_without_role),
    ),
]  # fmt: skip

"""What changes of roles for pods and jobs, of what lets AWS accept their tokens, and of repositories mean."""

from __future__ import annotations

from typing import Any

import pytest
from test_impact import ASG, DANGEROUS, DISRUPTIVE, NONE, WILL, meaning

from cfngen.cluster.iam.service_accounts import EBS_CSI_DRIVER, ServiceAccount
from cfngen.cluster.naming.identity_ids import RegistryId, ServiceAccountRoleId
from cfngen.deploy.messages.message import Danger

ROLE, BUCKET, POLICY = "AWS::IAM::Role", "AWS::S3::Bucket", "AWS::S3::BucketPolicy"
DISTRIBUTION, PROVIDER = "AWS::CloudFront::Distribution", "AWS::IAM::OIDCProvider"
ACCOUNT = ServiceAccount("shop", "web")
WEB = str(ServiceAccountRoleId.of(*ACCOUNT, ACCOUNT.digest))
DRIVER = str(ServiceAccountRoleId.of(*EBS_CSI_DRIVER, EBS_CSI_DRIVER.digest))
REPOSITORY = "AWS::ECR::Repository"
IMAGES = str(RegistryId.of("Repository", "shop/web"))
GITHUB = str(RegistryId.of("OidcProvider", "token.actions.githubusercontent.com"))
NAMED = {"RepositoryName": "shop/web"}
EMPTIED = {**NAMED, "EmptyOnDelete": "true"}
POLICIES = ("Policies/0/PolicyDocument", "a", "b")
TRUST = ("AssumeRolePolicyDocument", "a", "b")


@pytest.mark.parametrize(
    ("logical_id", "type_", "given", "danger", "words"),
    [
        (WEB, ROLE, {"action": "add"}, NONE, "once they are created anew"),
        (WEB, ROLE, {"action": "remove"}, DISRUPTIVE, "its pods lose it at once"),
        (DRIVER, ROLE, {"action": "remove"}, NONE, "when its component does not use it any more"),
        (DRIVER, ROLE, {"replacement": WILL}, DISRUPTIVE, "its pods lose it at once"),
        (WEB, ROLE, {"paths": [POLICIES]}, NONE, "nothing is restarted"),
        (WEB, ROLE, {"paths": [TRUST]}, DISRUPTIVE, "which service account may assume the role"),
        ("IssuerBucket", BUCKET, {"action": "remove"}, NONE, "cfngen deletes it after the update"),
        ("IssuerBucket", BUCKET, {"replacement": WILL}, DISRUPTIVE, "pods with roles of their own get no new"),
        ("IssuerBucketPolicy", POLICY, {"paths": [("PolicyDocument", "a", "b")]}, NONE, "who may read the issuer's"),
        ("IssuerDistribution", DISTRIBUTION, {"action": "add"}, NONE, "some minutes to set the distribution up"),
        ("IssuerDistribution", DISTRIBUTION, {"action": "remove"}, NONE, "which takes some minutes"),
        ("IssuerDistribution", DISTRIBUTION, {"replacement": WILL}, DISRUPTIVE, "gets another host name"),
        ("OidcProvider", PROVIDER, {"action": "remove"}, DISRUPTIVE, "lose those they have within an hour"),
        ("OidcProvider", PROVIDER, {"paths": [("ClientIdList/0", "a", "b")]}, DISRUPTIVE, "for which audiences"),
        (GITHUB, PROVIDER, {"action": "remove"}, NONE, "it is kept"),
        (GITHUB, PROVIDER, {"paths": [("ClientIdList/0", "a", "b")]}, NONE, "AWS STS accepts tokens of jobs"),
        ("PushWebRole", ROLE, {"action": "add"}, NONE, "the stack's output PushWebRoleArn is its ARN"),
        ("PushWebRole", ROLE, {"action": "remove"}, DISRUPTIVE, "its jobs can push no more"),
        ("PushWebRole", ROLE, {"paths": [TRUST]}, DISRUPTIVE, "which jobs may assume the role PushWebRole changes"),
        ("PushWebRole", ROLE, {"paths": [POLICIES]}, NONE, "to which repositories the role PushWebRole may push"),
        (IMAGES, REPOSITORY, {"action": "add", "after": NAMED}, NONE, "a repository id for images"),
        (IMAGES, REPOSITORY, {"action": "remove", "before": NAMED}, NONE, "shop/web no longer belongs to the cluster"),
        (IMAGES, REPOSITORY, {"action": "remove", "before": EMPTIED}, DANGEROUS, "is removed with all images in it"),
        (
            IMAGES,
            REPOSITORY,
            {"paths": [("EmptyOnDelete", None, "true")], "before": NAMED, "after": EMPTIED},
            DISRUPTIVE,
            "shop/web will be deleted with all images when the cluster is deleted",
        ),
        (
            IMAGES,
            REPOSITORY,
            {"paths": [("EmptyOnDelete", "true", None)], "before": EMPTIED, "after": NAMED},
            NONE,
            "shop/web will stay when the cluster is deleted",
        ),
        (IMAGES, REPOSITORY, {"paths": [("LifecyclePolicy", "a", "b")]}, DISRUPTIVE, "also those that pods use"),
        (IMAGES, REPOSITORY, {"paths": [("RepositoryPolicyText", "a", "b")]}, NONE, "which accounts may pull from"),
    ],
)
def test_what_a_change_means(logical_id: str, type_: str, given: dict[str, Any], danger: Danger, words: str) -> None:
    paths = given.pop("paths", ())
    impact = meaning(logical_id, type_, *paths, **given)
    assert impact is not None
    assert words in impact.text
    assert impact.danger is danger


def test_roles_and_buckets_of_others_mean_what_they_meant() -> None:
    role = meaning("MasterRole", ROLE, POLICIES)
    assert role is not None
    assert "pods" not in role.text
    assert meaning("NodeGroupNodesAutoScalingGroup", ASG, POLICIES) is None

"""The bucket of the templates: private and lasting when it is cfngen's, left alone when it is the operator's."""

from __future__ import annotations

import json

import boto3
import pytest
from in_moto import NUMBER, in_moto

from cfngen.deploy.aws.errors import DeniedError, translate_aws_errors
from cfngen.deploy.messages.message import Notice, Step
from cfngen.deploy.plan.publishing import bucket

OWN = f"cfngen-{NUMBER}-us-west-2"
KEY = f"arn:aws:kms:us-west-2:{NUMBER}:key/11111111-2222-3333-4444-555555555555"


@pytest.fixture
def s3(account):
    return account.client("s3")


def make(s3, name="operators", region="us-west-2"):
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})


def test_a_new_bucket_of_its_own_is_hardened(account, s3, said):
    assert bucket.ensure_bucket(account, report=said.append) == OWN
    assert said == [Step(f"creating the bucket {OWN}")]
    blocks = s3.get_public_access_block(Bucket=OWN)["PublicAccessBlockConfiguration"]
    assert set(blocks.values()) == {True}
    assert len(blocks) == 4
    assert s3.get_bucket_versioning(Bucket=OWN)["Status"] == "Enabled"
    (rule,) = s3.get_bucket_ownership_controls(Bucket=OWN)["OwnershipControls"]["Rules"]
    assert rule == {"ObjectOwnership": "BucketOwnerEnforced"}
    (rule,) = s3.get_bucket_encryption(Bucket=OWN)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert {"Key": "cfngen", "Value": "templates"} in s3.get_bucket_tagging(Bucket=OWN)["TagSet"]


def test_it_refuses_unencrypted_connections(account, s3, said):
    bucket.ensure_bucket(account, report=said.append)
    (statement,) = json.loads(s3.get_bucket_policy(Bucket=OWN)["Policy"])["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Resource"] == [f"arn:aws:s3:::{OWN}", f"arn:aws:s3:::{OWN}/*"]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_only_what_was_superseded_expires(account, s3, said):
    bucket.ensure_bucket(account, report=said.append)
    (rule,) = s3.get_bucket_lifecycle_configuration(Bucket=OWN)["Rules"]
    assert rule["NoncurrentVersionExpiration"]["NoncurrentDays"] == 30
    assert rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"] == 7
    assert "Expiration" not in rule


@pytest.mark.parametrize(("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")])
def test_the_policy_names_the_bucket_in_its_partition(region, partition, said):
    with in_moto(region) as (account, _):
        # moto's caller is always in the partition aws.
        account = type(account)(account.id, region, partition, account.caller, account.session, account.clock, 1)
        name = bucket.ensure_bucket(account, report=said.append)
        policy = json.loads(account.client("s3").get_bucket_policy(Bucket=name)["Policy"])
        assert policy["Statement"][0]["Resource"][0] == f"arn:{partition}:s3:::cfngen-{NUMBER}-{region}"


def test_us_east_1_takes_no_location():
    with in_moto("us-east-1") as (account, _):
        assert bucket.ensure_bucket(account, report=[].append) == f"cfngen-{NUMBER}-us-east-1"
        # S3 says so by saying nothing.
        assert (
            account.client("s3").get_bucket_location(Bucket=f"cfngen-{NUMBER}-us-east-1")["LocationConstraint"] is None
        )


def test_an_organisation_may_forbid_what_a_new_bucket_is_anyway(account, s3, calls, said):
    calls.refuse("s3:PutBucketOwnershipControls")
    assert bucket.ensure_bucket(account, report=said.append) == OWN
    assert said == [Step(f"creating the bucket {OWN}")]
    (rule,) = s3.get_bucket_ownership_controls(Bucket=OWN)["OwnershipControls"]["Rules"]
    assert rule == {"ObjectOwnership": "BucketOwnerEnforced"}


def test_a_second_time_nothing_is_written(account, calls, said):
    bucket.ensure_bucket(account, report=said.append)
    calls.names.clear()
    said.clear()
    bucket.ensure_bucket(account, report=said.append)
    assert calls.writes() == []
    assert said == []


def test_every_call_names_the_owner_it_expects(account, calls, said):
    bucket.ensure_bucket(account, report=said.append)
    sent = [arguments for name, arguments in zip(calls.names, calls.arguments, strict=True) if "Create" not in name]
    assert {each.get("ExpectedBucketOwner") for each in sent} == {NUMBER}


def test_what_an_existing_one_lacks_is_added_and_the_rest_stays(account, s3, calls, said):
    make(s3, OWN)
    s3.put_bucket_versioning(Bucket=OWN, VersioningConfiguration={"Status": "Suspended"})
    s3.put_bucket_tagging(Bucket=OWN, Tagging={"TagSet": [{"Key": "team", "Value": "platform"}]})
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": NUMBER},
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{OWN}/*",
    }
    s3.put_bucket_policy(Bucket=OWN, Policy=json.dumps({"Version": "2012-10-17", "Statement": statement}))
    rule = {
        "ID": "audit",
        "Status": "Enabled",
        "Filter": {"Prefix": "logs/"},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 365},
    }
    s3.put_bucket_lifecycle_configuration(Bucket=OWN, LifecycleConfiguration={"Rules": [rule]})
    by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}
    encryption = {"Rules": [{"ApplyServerSideEncryptionByDefault": by_default, "BucketKeyEnabled": True}]}
    s3.put_bucket_encryption(Bucket=OWN, ServerSideEncryptionConfiguration=encryption)
    bucket.ensure_bucket(account, report=said.append)
    assert s3.get_bucket_versioning(Bucket=OWN)["Status"] == "Enabled"
    tags = {each["Key"]: each["Value"] for each in s3.get_bucket_tagging(Bucket=OWN)["TagSet"]}
    assert tags == {"team": "platform", "cfngen": "templates"}
    statements = json.loads(s3.get_bucket_policy(Bucket=OWN)["Policy"])["Statement"]
    assert [statement["Effect"] for statement in statements] == ["Allow", "Deny"]
    rules = s3.get_bucket_lifecycle_configuration(Bucket=OWN)["Rules"]
    assert [rule["ID"] for rule in rules] == ["audit", "cfngen-leftovers"]
    # Stronger than what cfngen would set.
    assert s3.get_bucket_encryption(Bucket=OWN)["ServerSideEncryptionConfiguration"] == encryption
    assert said == []


def test_a_refusal_of_plain_http_under_another_name_is_enough(account, s3, calls, said):
    make(s3, OWN)
    statement = {
        "Sid": "SomebodysOwn",
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": ["s3:*"],
        "Resource": [f"arn:aws:s3:::{OWN}/*", f"arn:aws:s3:::{OWN}"],
        "Condition": {"Bool": {"aws:SecureTransport": ["false"]}},
    }
    s3.put_bucket_policy(Bucket=OWN, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    bucket.ensure_bucket(account, report=said.append)
    assert json.loads(s3.get_bucket_policy(Bucket=OWN)["Policy"])["Statement"] == [statement]


def test_a_key_that_is_given_replaces_the_encryption_it_has(account, s3, said):
    bucket.ensure_bucket(account, report=said.append)
    bucket.ensure_bucket(account, kms_key=KEY, report=said.append)
    (rule,) = s3.get_bucket_encryption(Bucket=OWN)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}


def test_a_rule_that_deletes_current_templates_is_reported(account, s3, said):
    make(s3, OWN)
    rule = {"ID": "weekly", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 7}}
    s3.put_bucket_lifecycle_configuration(Bucket=OWN, LifecycleConfiguration={"Rules": [rule]})
    bucket.ensure_bucket(account, report=said.append)
    assert [each.text for each in said] == [f"a lifecycle rule of the bucket {OWN} deletes current objects"]
    assert len(s3.get_bucket_lifecycle_configuration(Bucket=OWN)["Rules"]) == 2


@pytest.mark.parametrize(
    ("operation", "status", "code"), [("s3:HeadBucket", 403, ""), ("s3:CreateBucket", 409, "BucketAlreadyExists")]
)
def test_a_name_that_somebody_else_took_is_refused(account, calls, said, operation, status, code):
    calls.refuse(operation, status, code)
    with pytest.raises(bucket.BucketOwnerError, match="another account") as refused:
        bucket.ensure_bucket(account, report=said.append)
    assert "--bucket" in refused.value.hint
    assert calls.names[-1] == operation


def test_one_that_another_deployment_made_meanwhile_is_used(account, s3, calls, said):
    make(s3, OWN)
    calls.refuse("s3:HeadBucket", 404, "")
    assert bucket.ensure_bucket(account, report=said.append) == OWN
    assert s3.get_bucket_versioning(Bucket=OWN)["Status"] == "Enabled"


def test_who_may_not_look_or_change_is_told_and_goes_on(account, s3, calls, said):
    make(s3, OWN)
    calls.refuse("s3:GetBucketPolicy")
    calls.refuse("s3:GetBucketTagging")
    calls.refuse("s3:PutBucketVersioning")
    assert bucket.ensure_bucket(account, report=said.append) == OWN
    assert [each.text for each in said] == [
        f"no permission to read these settings of the bucket {OWN}: refusal of unencrypted connections, tags",
        f"versioning of the bucket {OWN} is not set correctly, and you may not change it",
    ]
    assert "s3:PutBucketPolicy" not in calls.names


def test_a_new_bucket_that_cannot_be_hardened_is_a_failure(account, calls, said):
    # moto carries out what is refused, so that only a look that is refused too leaves it open what the bucket is.
    calls.refuse("s3:PutBucketVersioning")
    calls.refuse("s3:GetBucketVersioning")
    with pytest.raises(DeniedError, match="PutBucketVersioning"), translate_aws_errors():
        bucket.ensure_bucket(account, report=said.append)


def test_the_operators_bucket_is_used_and_not_changed(account, s3, calls, said):
    make(s3)
    s3.put_bucket_versioning(Bucket="operators", VersioningConfiguration={"Status": "Enabled"})
    blocks = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)
    s3.put_public_access_block(Bucket="operators", PublicAccessBlockConfiguration=blocks)
    calls.names.clear()
    assert bucket.ensure_bucket(account, bucket="operators", report=said.append) == "operators"
    assert said == []
    assert calls.writes() == []


def test_what_is_weak_about_the_operators_bucket_is_said(account, s3, calls, said):
    make(s3)
    calls.names.clear()
    bucket.ensure_bucket(account, bucket="operators", report=said.append)
    assert [type(each) for each in said] == [Notice, Notice]
    assert [each.text for each in said] == [
        "the bucket operators does not block public access",
        "the bucket operators is not versioned: a deleted template cannot be recovered",
    ]
    assert calls.writes() == []


def test_a_public_bucket_is_reported(account, s3, said):
    make(s3)
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::operators/*"}
    s3.put_bucket_policy(Bucket="operators", Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    bucket.ensure_bucket(account, bucket="operators", report=said.append)
    assert said[0].text == "the bucket operators is public by its policy"


def test_a_bucket_that_does_not_exist_is_refused(account, calls, said):
    with pytest.raises(bucket.NoBucketError, match="no bucket nowhere") as refused:
        bucket.ensure_bucket(account, bucket="nowhere", report=said.append)
    assert "aws s3 mb s3://nowhere --region us-west-2" in refused.value.hint
    assert calls.writes() == []


def test_a_bucket_of_another_region_is_refused(account, said):
    make(
        boto3.client("s3", region_name="eu-west-1", aws_access_key_id="t", aws_secret_access_key="t"),
        "far",
        "eu-west-1",
    )
    with pytest.raises(bucket.BucketRegionError, match="eu-west-1, and the cluster in us-west-2"):
        bucket.ensure_bucket(account, bucket="far", report=said.append)


def test_a_bucket_of_another_account_is_refused(account, s3, calls, said):
    make(s3)
    calls.refuse("s3:HeadBucket")
    with pytest.raises(bucket.BucketOwnerError) as refused:
        bucket.ensure_bucket(account, bucket="operators", report=said.append)
    assert refused.value.bucket == "operators"
    assert calls.writes() == ["s3:CreateBucket"]  # the test's own

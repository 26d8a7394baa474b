"""The bucket of the templates: what is good enough in cfngen's own and what is written; what an operator's lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from answers import DENIED, Answer, Answers
from in_moto import NUMBER, Calls
from recorded import RefusedError

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import DeniedError, translate_aws_errors
from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.plan.publishing import bucket

OWN = "cfngen-123456789012-us-west-2"
ARN = f"arn:aws:s3:::{OWN}"
KEY = "arn:aws:kms:us-west-2:123456789012:key/1"
BLOCKS = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)
TLS: dict[str, Any] = {
    "Sid": "CfngenOnlyTls",
    "Effect": "Deny",
    "Principal": "*",
    "Action": "s3:*",
    "Resource": [ARN, f"{ARN}/*"],
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}
LEFTOVERS = {
    "ID": "cfngen-leftovers",
    "Status": "Enabled",
    "Filter": {"Prefix": ""},
    "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
}
OTHERS = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "s3:GetObject", "Resource": f"{ARN}/*"}
LOGS = {
    "ID": "logs",
    "Status": "Enabled",
    "Filter": {"Prefix": "logs/"},
    "Expiration": {"ExpiredObjectDeleteMarker": True},
}


def policy(*statements: Any, **more: Any) -> dict[str, Any]:
    document = {"Version": "2012-10-17", **more, "Statement": statements[0] if len(statements) == 1 else statements}
    return {"Policy": json.dumps(document)}


def tls(**changes: Any) -> dict[str, Any]:
    return policy([{**TLS, **changes}])


def encryption(*defaults: Mapping[str, str], bucket_key: bool = False) -> dict[str, Any]:
    rules = [{"ApplyServerSideEncryptionByDefault": default, "BucketKeyEnabled": bucket_key} for default in defaults]
    return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


AES, KMS = {"SSEAlgorithm": "AES256"}, {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}
GOOD: dict[str, Answer] = {
    "s3:HeadBucket": {"BucketRegion": "us-west-2"},
    "s3:GetPublicAccessBlock": {"PublicAccessBlockConfiguration": BLOCKS},
    "s3:GetBucketOwnershipControls": {"OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}},
    "s3:GetBucketVersioning": {"Status": "Enabled"},
    "s3:GetBucketEncryption": encryption(AES),
    "s3:GetBucketPolicy": policy([TLS]),
    "s3:GetBucketLifecycleConfiguration": {"Rules": [LEFTOVERS]},
    "s3:GetBucketTagging": {"TagSet": [{"Key": "cfngen", "Value": "templates"}]},
    "s3:GetBucketPolicyStatus": {"PolicyStatus": {"IsPublic": False}},
    "s3:PutPublicAccessBlock": {},
    "s3:PutBucketOwnershipControls": {},
    "s3:PutBucketVersioning": {},
    "s3:PutBucketEncryption": {},
    "s3:PutBucketPolicy": {},
    "s3:PutBucketLifecycleConfiguration": {},
    "s3:PutBucketTagging": {},
    "s3:CreateBucket": {},
}


def ready(
    answers: Mapping[str, Answer], *, region: str = "us-west-2", partition: str = "aws", **options: Any
) -> tuple[Answers, list[Message], str]:
    api, said = Answers({**GOOD, **answers}, region=region), list[Message]()
    api.account = replace(api.account, partition=partition)
    with translate_aws_errors():
        name = bucket.ensure_bucket(api.account, report=said.append, **options)
    assert all(sent["ExpectedBucketOwner"] == "123456789012" for call, sent in api.calls if call != "s3:CreateBucket")
    assert all(sent["Bucket"] == name for _, sent in api.calls)
    return api, said, name


def texts(said: list[Message]) -> list[str]:
    return [message.text for message in said if isinstance(message, Notice)]


def written(api: Answers) -> dict[str, Any]:
    """What was put into the bucket, by the call."""
    known = ("Bucket", "ExpectedBucketOwner")
    put = {
        name.removeprefix("s3:Put"): next(value for key, value in sent.items() if key not in known)
        for name, sent in api.calls
        if name.startswith("s3:Put")
    }
    return {name: json.loads(value) if name == "BucketPolicy" else value for name, value in put.items()}


def test_nothing_is_written_where_nothing_is_missing() -> None:
    api, said, name = ready({})
    assert (api.writes, said, name) == ([], [], OWN)


ALL = {
    "PublicAccessBlock": BLOCKS,
    "BucketOwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
    "BucketVersioning": {"Status": "Enabled"},
    "BucketEncryption": encryption(AES)["ServerSideEncryptionConfiguration"],
    "BucketPolicy": {"Version": "2012-10-17", "Statement": [TLS]},
    "BucketLifecycleConfiguration": {"Rules": [LEFTOVERS]},
    "BucketTagging": {"TagSet": [{"Key": "cfngen", "Value": "templates"}]},
}


@pytest.mark.parametrize(
    ("region", "partition"), [("us-west-2", "aws"), ("us-east-1", "aws"), ("cn-north-1", "aws-cn")]
)
def test_a_new_bucket_gets_everything_without_being_asked_what_it_has(region: str, partition: str) -> None:
    api, said, name = ready({"s3:HeadBucket": RefusedError("404", status=404)}, region=region, partition=partition)
    assert name == f"cfngen-123456789012-{region}"
    [made] = api.named("s3:CreateBucket")
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    assert made == {"Bucket": name, "ObjectOwnership": "BucketOwnerEnforced", **where}
    assert json.loads(json.dumps(written(api)).replace(f"arn:{partition}:s3:::{name}", ARN)) == ALL
    assert not [call for call, _ in api.calls if call.startswith("s3:Get")]
    assert [message.kind for message in said] == ["step"]


ABSENT = {
    "PublicAccessBlock": "NoSuchPublicAccessBlockConfiguration",
    "BucketOwnershipControls": "OwnershipControlsNotFoundError",
    "BucketEncryption": "ServerSideEncryptionConfigurationNotFoundError",
    "BucketPolicy": "NoSuchBucketPolicy",
    "BucketLifecycleConfiguration": "NoSuchLifecycleConfiguration",
    "BucketTagging": "NoSuchTagSet",
}


@pytest.mark.parametrize(("setting", "code"), ABSENT.items())
def test_what_a_bucket_never_had_is_added(setting: str, code: str) -> None:
    api, said, _ = ready({f"s3:Get{setting}": RefusedError(code, status=404)})
    assert written(api) == {setting: ALL[setting]}
    assert said == []


@pytest.mark.parametrize(
    ("setting", "answer", "expected"),
    [
        *(("PublicAccessBlock", {"PublicAccessBlockConfiguration": {**BLOCKS, key: False}}, BLOCKS) for key in BLOCKS),
        (
            "BucketOwnershipControls",
            {"OwnershipControls": {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}},
            ALL["BucketOwnershipControls"],
        ),
        ("BucketVersioning", {}, {"Status": "Enabled"}),
        ("BucketVersioning", {"Status": "Suspended"}, {"Status": "Enabled"}),
        ("BucketEncryption", encryption(), ALL["BucketEncryption"]),
        ("BucketEncryption", encryption(KMS), None),
        ("BucketEncryption", encryption({"SSEAlgorithm": "aws:kms:dsse"}), None),
        ("BucketLifecycleConfiguration", {"Rules": [LOGS]}, {"Rules": [LOGS, LEFTOVERS]}),
        # Its days are the operator's to change.
        (
            "BucketLifecycleConfiguration",
            {"Rules": [LOGS, {**LEFTOVERS, "NoncurrentVersionExpiration": {"NoncurrentDays": 365}}]},
            None,
        ),
        (
            "BucketTagging",
            {"TagSet": [{"Key": "team", "Value": "blue"}, {"Key": "cfngen", "Value": "other"}]},
            {"TagSet": [{"Key": "team", "Value": "blue"}, {"Key": "cfngen", "Value": "templates"}]},
        ),
        ("BucketTagging", {"TagSet": [{"Key": "a", "Value": "b"}, {"Key": "cfngen", "Value": "templates"}]}, None),
    ],
)
def test_what_is_weak_is_mended_and_what_is_stronger_stays(setting: str, answer: Any, expected: Any) -> None:
    api, said, _ = ready({f"s3:Get{setting}": answer})
    assert written(api) == ({setting: expected} if expected else {})
    assert said == []


@pytest.mark.parametrize(
    ("answer", "mended"),
    [
        (encryption(KMS), False),
        (encryption(AES), True),
        (encryption({**KMS, "KMSMasterKeyID": "another"}), True),
        (encryption(AES, KMS), False),
    ],
)
def test_a_key_that_is_given_encrypts_new_objects(answer: Any, mended: bool) -> None:
    api, _, _ = ready({"s3:GetBucketEncryption": answer}, kms_key=KEY)
    expected = encryption(KMS, bucket_key=True)["ServerSideEncryptionConfiguration"]
    assert written(api) == ({"BucketEncryption": expected} if mended else {})


@pytest.mark.parametrize(
    "answer",
    [
        tls(),
        policy(TLS),
        policy(OTHERS, TLS),
        tls(Sid="Anothers"),
        tls(Principal={"AWS": "*"}),
        tls(Principal={"AWS": ["*"]}),
        tls(Action="*"),
        tls(Action=["s3:*"]),
        tls(Action=["*"]),
        tls(Resource=[f"{ARN}/*", ARN, "more"]),
        tls(Condition={"Bool": {"aws:SecureTransport": ["false"]}}),
        tls(Condition={"Bool": {"aws:securetransport": False}}),
    ],
)
def test_what_refuses_plain_http_is_left_as_it_is(answer: Any) -> None:
    assert ready({"s3:GetBucketPolicy": answer})[0].writes == []


@pytest.mark.parametrize(
    "changes",
    [
        {"Effect": "Allow"},
        {"Principal": {"AWS": "123456789012"}},
        {"Action": "s3:GetObject"},
        {"Resource": f"{ARN}/*"},
        {"Resource": [ARN]},
        {"Resource": []},
        {"Condition": {"Bool": {"aws:SecureTransport": "true"}}},
        {"Condition": {"Bool": {"aws:SecureTransport": "false"}, "StringEquals": {"aws:x": "y"}}},
    ],
)
def test_a_statement_that_refuses_less_is_replaced_if_it_is_cfngens(changes: dict[str, Any]) -> None:
    api, _, _ = ready({"s3:GetBucketPolicy": policy(OTHERS, {**TLS, **changes}, Id="kept")})
    expected = {"Version": "2012-10-17", "Id": "kept", "Statement": [OTHERS, TLS]}
    assert written(api) == {"BucketPolicy": expected}
    strange = {**TLS, **changes, "Sid": "Anothers"}
    api, _, _ = ready({"s3:GetBucketPolicy": policy(strange)})
    assert written(api)["BucketPolicy"]["Statement"] == [strange, TLS]


def test_a_statement_without_resource_refuses_nothing() -> None:
    strange = {key: value for key, value in TLS.items() if key not in ("Resource", "Sid")}
    api, _, _ = ready({"s3:GetBucketPolicy": policy([strange])})
    assert written(api)["BucketPolicy"]["Statement"] == [strange, TLS]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"Status": "Enabled", "Expiration": {"Days": 7}}, True),
        ({"Status": "Enabled", "Expiration": {"Date": "2030-01-01"}}, True),
        ({"Status": "Disabled", "Expiration": {"Days": 7}}, False),
        ({"Status": "Enabled", "Expiration": {"ExpiredObjectDeleteMarker": True}}, False),
        ({"Status": "Enabled"}, False),
    ],
)
def test_a_rule_that_deletes_current_objects_is_told(rule: dict[str, Any], told: bool) -> None:
    answers = {"s3:GetBucketLifecycleConfiguration": {"Rules": [{"ID": "x", **rule}, LEFTOVERS]}}
    for options, name in (({}, OWN), ({"bucket": "operators"}, "operators")):
        _, said, _ = ready(answers, **options)
        expected = [f"a lifecycle rule of the bucket {name} deletes current objects"] if told else []
        assert texts(said) == expected
        hints = [message.hint for message in said if isinstance(message, Notice)]
        assert ["remove the rule" in hint for hint in hints] == [True] * len(expected)


def test_what_may_not_be_seen_or_changed_is_told() -> None:
    unseen = {f"s3:Get{setting}": DENIED for setting in (*ABSENT, "BucketVersioning")}
    api, said, _ = ready(unseen)
    assert api.writes == []
    [text] = texts(said)
    assert text == (
        f"no permission to read these settings of the bucket {OWN}: blocking of public access, ownership "
        "of objects, versioning, "
        "encryption, refusal of unencrypted connections, removal of old versions, tags"
    )
    api, said, _ = ready({"s3:GetBucketVersioning": {}, "s3:PutBucketVersioning": DENIED})
    assert texts(said) == [f"versioning of the bucket {OWN} is not set correctly, and you may not change it"]
    hints = [message.hint for message in said if isinstance(message, Notice)]
    assert all("docs/reference/policies/bucket-policy.json" in hint for hint in hints)


@pytest.mark.parametrize("setting", ABSENT)
def test_what_may_not_be_seen_keeps_nothing_else_from_being_mended(setting: str) -> None:
    absent = {name: RefusedError(code, status=404) for name, code in ABSENT.items()}
    api, _, _ = ready({f"s3:Get{name}": answer for name, answer in {**absent, setting: DENIED}.items()})
    assert written(api) == {name: value for name, value in ALL.items() if name in ABSENT and name != setting}


@pytest.mark.parametrize("call", ["s3:GetBucketTagging", "s3:PutBucketTagging"])
def test_other_errors_are_errors(call: str) -> None:
    with pytest.raises(Exception, match="oops"):
        ready({"s3:GetBucketTagging": {"TagSet": []}, call: RefusedError("MalformedXML", "oops")})


@pytest.mark.parametrize(("shown", "finished"), [({}, False), ({"Status": "Enabled"}, True), (DENIED, False)])
def test_a_new_bucket_must_have_what_may_not_be_set(shown: Answer, finished: bool) -> None:
    answers: dict[str, Answer] = {
        "s3:HeadBucket": RefusedError("404", status=404),
        "s3:PutBucketVersioning": DENIED,
        "s3:GetBucketVersioning": shown,
    }
    if finished:
        assert texts(ready(answers)[1]) == []
        return
    with pytest.raises(DeniedError, match="PutBucketVersioning"):
        ready(answers)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("BucketAlreadyExists", bucket.BucketOwnerError),
        ("BucketAlreadyOwnedByYou", None),
        ("TooManyBuckets", Exception),
    ],
)
def test_a_name_that_is_taken(code: str, error: type[Exception] | None) -> None:
    answers: dict[str, Answer] = {
        "s3:HeadBucket": RefusedError("404", status=404), "s3:CreateBucket": RefusedError(code, status=409),
        "s3:GetBucketVersioning": {},
    }  # fmt: skip
    if error is None:
        # Another deployment has made it a moment ago: what it has is looked at.
        assert list(written(ready(answers)[0])) == ["BucketVersioning"]
        return
    with pytest.raises(error) as raised:
        ready(answers)
    assert error is Exception or "--bucket" in raised.value.hint


def test_what_was_written_is_good_enough_the_next_time(place: tuple[Account, Calls], said: list[Message]) -> None:
    account, calls = place
    name = f"cfngen-{NUMBER}-us-west-2"
    for texts in [f"creating the bucket {name}"], []:
        calls.names.clear()
        said.clear()
        assert bucket.ensure_bucket(account, report=said.append) == name
        assert [message.text for message in said] == texts  # type: ignore[attr-defined]
        assert bool(calls.writes()) == bool(texts)


@pytest.mark.parametrize("code", ["404", "NoSuchBucket"])
def test_an_operators_bucket_that_does_not_exist(code: str) -> None:
    with pytest.raises(bucket.NoBucketError, match="there is no bucket operators") as raised:
        ready({"s3:HeadBucket": RefusedError(code, status=404)}, bucket="operators")
    assert raised.value.bucket == "operators"
    assert "aws s3 mb s3://operators --region us-west-2" in raised.value.hint


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ({"BucketRegion": "eu-west-1"}, bucket.BucketRegionError, "is in eu-west-1, and the cluster in us-west-2"),
        (RefusedError("403", status=403), bucket.BucketOwnerError, "belongs to another account"),
        (RefusedError("AccessDenied", status=403), bucket.BucketOwnerError, "user/operator may not use it"),
        (RefusedError("500", "oops", status=500), Exception, "oops"),
    ],
)
def test_a_bucket_that_cannot_be_used(answer: Answer, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        ready({"s3:HeadBucket": answer}, bucket="operators")
    assert getattr(raised.value, "bucket", "operators") == "operators"


@pytest.mark.parametrize("answer", [{}, RefusedError("301", status=301), RefusedError("PermanentRedirect", status=301)])
def test_a_bucket_whose_region_is_not_told_is_used(answer: Answer) -> None:
    assert ready({"s3:HeadBucket": answer}, bucket="operators")[2] == "operators"


WEAK = {
    "blocks": "the bucket operators does not block public access",
    "public": "the bucket operators is public by its policy",
    "versions": "the bucket operators is not versioned: a deleted template cannot be recovered",
}


NO_BLOCKS = RefusedError("NoSuchPublicAccessBlockConfiguration", status=404)
HALF_BLOCKED = {"PublicAccessBlockConfiguration": {**BLOCKS, "BlockPublicAcls": False}}
PUBLIC = {"PolicyStatus": {"IsPublic": True}}


@pytest.mark.parametrize(
    ("answers", "notices"),
    [
        ({}, []),
        ({"s3:GetBucketPolicyStatus": PUBLIC}, ["public"]),
        ({"s3:GetBucketPolicyStatus": RefusedError("NoSuchBucketPolicy", status=404)}, []),
        ({"s3:GetPublicAccessBlock": HALF_BLOCKED}, ["blocks"]),
        ({"s3:GetPublicAccessBlock": NO_BLOCKS}, ["blocks"]),
        ({"s3:GetPublicAccessBlock": NO_BLOCKS, "s3:GetBucketPolicyStatus": PUBLIC}, ["public"]),
        ({"s3:GetBucketVersioning": {}}, ["versions"]),
        ({"s3:GetBucketVersioning": {"Status": "Suspended"}}, ["versions"]),
        # What may not be seen is not called weak.
        (dict.fromkeys(GOOD.keys() - {"s3:HeadBucket"}, DENIED), []),
    ],
)
def test_what_is_weak_about_an_operators_bucket_is_told(answers: Mapping[str, Answer], notices: list[str]) -> None:
    api, said, _ = ready(answers, bucket="operators")
    assert texts(said) == [WEAK[name] for name in notices]
    assert api.writes == []

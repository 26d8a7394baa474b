"""Templates in their bucket: addresses made of content, so that nothing in use is overwritten or uploaded twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from botocore.exceptions import EndpointConnectionError
from in_moto import NUMBER

from cfngen.cluster.load import parse
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.messages.message import Step
from cfngen.deploy.plan.publishing.publish import TemplateTooLargeError, UploadError, assign_template_urls, publish
from cfngen.templates import generate

OWN = f"cfngen-{NUMBER}-us-west-2"


@pytest.fixture(scope="module")
def documents():
    return generate(parse({}))


def stored(account, key, bucket=OWN):
    return account.client("s3").get_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")


def changed(documents, name):
    """The same documents, one with another description."""
    return [
        replace(document, body={**document.body, "Description": "new"}) if document.name == name else document
        for document in documents
    ]


def test_a_key_holds_the_cluster_the_content_and_the_name(account, documents, said):
    published = publish(account, documents, cluster="kubernetes", report=said.append)
    assert set(published.keys) == {"vpc", "security-groups", "secrets", "iam", "master", "nodes-nodes", "cluster"}
    for name, key in published.keys.items():
        found = stored(account, key)
        content = found["Body"].read()
        assert key == f"kubernetes/{hashlib.sha256(content).hexdigest()}/{name}.json"
        assert found["ContentType"] == "application/json"
        assert found["ChecksumSHA256"]


def test_uploaded_templates_say_what_the_generated_ones_say(account, documents, said):
    published = publish(account, documents, cluster="kubernetes", report=said.append)
    generated = {document.name: document.body for document in documents}
    for name, key in published.keys.items():
        if name != "cluster":
            assert json.loads(stored(account, key)["Body"].read()) == generated[name]


def test_the_root_names_its_children_by_their_addresses(account, documents, said):
    published = publish(account, documents, cluster="kubernetes", report=said.append)
    url = f"https://{OWN}.s3.us-west-2.amazonaws.com"
    assert published.template_url == f"{url}/{published.keys['cluster']}"
    body = json.loads(stored(account, published.keys["cluster"])["Body"].read())
    assert body == published.root.body
    urls = {name: each["Properties"]["TemplateURL"] for name, each in body["Resources"].items() if "Stack" in name}
    assert urls["VpcStack"] == f"{url}/{published.keys['vpc']}"
    assert urls["NodeGroupNodesStack"] == f"{url}/{published.keys['nodes-nodes']}"
    assert len(urls) == 6


def test_the_root_no_longer_asks_where_its_children_are(account, documents):
    root = assign_template_urls(account, documents, cluster="kubernetes", bucket="b")[-1].document
    assert "ApiAllowedCidr" in root.body["Parameters"]
    assert "TemplateBucket" not in json.dumps(root.body)
    assert "TemplatePrefix" not in json.dumps(root.body)
    groups = root.body["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert all(group["Parameters"] for group in groups)
    assert {name for group in groups for name in group["Parameters"]} == set(root.body["Parameters"])


def test_the_generated_documents_are_left_alone(account, documents):
    before = json.dumps([document.body for document in documents])
    assign_template_urls(account, documents, cluster="kubernetes", bucket="b")
    assert json.dumps([document.body for document in documents]) == before


@pytest.mark.parametrize(
    ("partition", "region", "bucket", "address"),
    [
        ("aws", "us-east-1", "b-1", "https://b-1.s3.us-east-1.amazonaws.com/"),
        ("aws-cn", "cn-north-1", "b-1", "https://b-1.s3.cn-north-1.amazonaws.com.cn/"),
        ("aws-us-gov", "us-gov-west-1", "b-1", "https://b-1.s3.us-gov-west-1.amazonaws.com/"),
        ("aws-eusc", "eusc-de-east-1", "b-1", "https://b-1.s3.eusc-de-east-1.amazonaws.eu/"),
        ("aws-iso", "us-iso-east-1", "b-1", "https://b-1.s3.us-iso-east-1.c2s.ic.gov/"),
        # No certificate covers a name with dots as a host.
        ("aws", "us-west-2", "my.templates", "https://s3.us-west-2.amazonaws.com/my.templates/"),
    ],
)
def test_addresses_are_right_in_every_partition(account, documents, partition, region, bucket, address):
    there = replace(account, partition=partition, region=region)
    for template in assign_template_urls(there, documents, cluster="kubernetes", bucket=bucket):
        assert template.url == f"{address}{template.key}"


def test_nothing_is_uploaded_twice(account, calls, documents, said):
    first = publish(account, documents, cluster="kubernetes", report=said.append)
    assert (first.written, first.unchanged) == (7, 0)
    assert said[-1] == Step(f"uploading 7 templates to s3://{OWN}/kubernetes/")
    calls.names.clear()
    said.clear()
    again = publish(account, documents, cluster="kubernetes", report=said.append)
    assert (again.written, again.unchanged) == (0, 7)
    assert again.template_url == first.template_url
    assert calls.writes() == []
    assert said == []


def test_a_change_of_one_template_uploads_it_and_the_root(account, documents, said):
    first = publish(account, documents, cluster="kubernetes", report=said.append)
    second = publish(account, changed(documents, "iam"), cluster="kubernetes", report=said.append)
    assert (second.written, second.unchanged) == (2, 5)
    assert {name for name in first.keys if first.keys[name] != second.keys[name]} == {"iam", "cluster"}
    # What the live stack points at is still there.
    assert stored(account, first.keys["iam"])["ContentLength"] > 0


def test_standalone_is_not_uploaded(account, documents, said):
    assert "standalone" in {document.name for document in documents}
    publish(account, documents, cluster="kubernetes", report=said.append)
    keys = [each["Key"] for each in account.client("s3").list_objects_v2(Bucket=OWN)["Contents"]]
    assert not [key for key in keys if "standalone" in key]


def test_an_object_whose_content_was_exchanged_is_written_again(account, documents, said):
    published = publish(account, documents, cluster="kubernetes", report=said.append)
    account.client("s3").put_object(Bucket=OWN, Key=published.keys["iam"], Body=b"{}", ChecksumAlgorithm="SHA256")
    again = publish(account, documents, cluster="kubernetes", report=said.append)
    assert again.written == 1
    assert json.loads(stored(account, published.keys["iam"])["Body"].read())["Resources"]


def test_without_the_right_to_list_templates_are_uploaded_all_the_same(account, calls, documents, said):
    calls.refuse("s3:HeadObject")
    assert publish(account, documents, cluster="kubernetes", report=said.append).written == 7


def test_every_object_is_expected_in_the_account(account, calls, documents, said):
    publish(account, documents, cluster="kubernetes", report=said.append)
    sent = [
        a for name, a in zip(calls.names, calls.arguments, strict=True) if name in ("s3:PutObject", "s3:HeadObject")
    ]
    assert len(sent) == 14
    assert {each["ExpectedBucketOwner"] for each in sent} == {NUMBER}


def test_a_template_over_the_limit_is_refused_before_anything_is_done(account, calls, documents, said):
    large = [
        replace(document, body={**document.body, "Description": "x" * 1_000_001})
        if document.name == "master"
        else document
        for document in documents
    ]
    with pytest.raises(TemplateTooLargeError, match="the template master has 1,0") as refused:
        publish(account, large, cluster="kubernetes", report=said.append)
    assert refused.value.name == "master"
    assert calls.names == []


@pytest.mark.parametrize(
    ("code", "then"),
    [
        ("AccessDenied", "docs/deploy/deploy.md lists what an operator must be allowed to do"),
        ("MalformedXML", "repeat the command: only missing templates are uploaded."),
    ],
)
def test_a_refused_upload_says_which_template_and_that_nothing_was_deployed(
    account, calls, documents, said, code, then
):
    calls.refuse("s3:PutObject", code=code)
    with pytest.raises(UploadError, match=r"the template [a-z-]+ could not be uploaded to s3://cfngen-") as failed:
        publish(account, documents, cluster="kubernetes", report=said.append)
    assert str(failed.value.hint).startswith(f"nothing was deployed; {then}")
    assert failed.value.aws_code == code


def test_a_lost_connection_says_that_nothing_was_deployed(account, documents, said):
    def lost(request, **_):
        raise EndpointConnectionError(endpoint_url=request.url)

    account.client("s3").meta.events.register("before-send.s3.PutObject", lost)
    with pytest.raises(UploadError, match="Could not connect") as failed:
        publish(account, documents, cluster="kubernetes", report=said.append)
    assert str(failed.value.hint).startswith("nothing was deployed")


def test_a_refusal_of_the_bucket_is_explained(account, calls, documents, said):
    calls.refuse("s3:CreateBucket")
    with pytest.raises(AwsError, match="not allowed to call CreateBucket"):
        publish(account, documents, cluster="kubernetes", report=said.append)


def test_the_operators_bucket_takes_the_templates(account, documents, said):
    s3 = account.client("s3")
    s3.create_bucket(Bucket="operators", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    published = publish(account, documents, cluster="kubernetes", bucket="operators", report=said.append)
    assert published.bucket == "operators"
    assert stored(account, published.keys["cluster"], "operators")["ContentLength"] > 0
    assert published.template_url.startswith("https://operators.s3.us-west-2.amazonaws.com/kubernetes/")


def test_a_set_without_a_root_is_a_fault_of_the_caller(account, documents):
    with pytest.raises(ValueError, match="no root"):
        assign_template_urls(
            account, [document for document in documents if not document.children], cluster="kubernetes", bucket="b"
        )
    with pytest.raises(ValueError, match="missing: iam"):
        assign_template_urls(
            account, [document for document in documents if document.name != "iam"], cluster="kubernetes", bucket="b"
        )

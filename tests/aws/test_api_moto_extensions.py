"""What moto lacks and a deployer asks for."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.core.request import Request
from served_api import Served, serving

from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.moto_patches import speedups

REGION = "us-west-2"
HERE = {"LocationConstraint": REGION}


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(CloudFormation(REGION, parameter_store={"/aws/service/canonical/ubuntu": "ami-1"})) as served:
        yield served


@functools.cache
def session() -> boto3.Session:
    """One for all tests, as it keeps the models of the services."""
    return boto3.Session("AKIAOPERATOROPERATOR", "secret", region_name="us-west-2")


def client(service: str) -> Any:
    return session().client(service)


def refusal(call: Any, **parameters: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    response = caught.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def test_the_console_shows_what_the_machine_wrote(served: Served) -> None:
    ec2 = client("ec2")
    image = ec2.register_image(Name="image")["ImageId"]
    [instance] = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"]
    assert "Output" not in ec2.get_console_output(InstanceId=instance["InstanceId"])
    served.moto_extensions.set_console_output(instance["InstanceId"], "cloud-init: failed <here>\n")
    answer = ec2.get_console_output(InstanceId=instance["InstanceId"], Latest=True)
    assert answer["Output"] == "cloud-init: failed <here>\n"
    assert refusal(ec2.get_console_output, InstanceId="i-0000000000000000f")[0] == "InvalidInstanceID.NotFound"


def test_quotas_that_a_cluster_meets(served: Served) -> None:
    quotas = client("service-quotas")
    for service, code in (("ec2", "L-1216C47A"), ("ec2", "L-0263D0A3"), ("vpc", "L-F678F1CE")):
        assert quotas.get_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"] >= 5
    served.moto_extensions.set_quota("ec2", "L-1216C47A", 4)
    assert quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-1216C47A")["Quota"]["Value"] == 4
    default = quotas.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode="L-1216C47A")
    assert default["Quota"]["Value"] == 5
    listed = quotas.list_service_quotas(ServiceCode="vpc")["Quotas"]
    assert "L-F678F1CE" in {each["QuotaCode"] for each in listed}
    assert refusal(quotas.get_service_quota, ServiceCode="ec2", QuotaCode="L-0")[0] == "NoSuchResourceException"


def test_a_group_that_does_not_exist_has_no_activities(served: Served) -> None:
    assert client("autoscaling").describe_scaling_activities(AutoScalingGroupName="g")["Activities"] == []


def test_buckets_of_others_are_closed(served: Served) -> None:
    served.moto_extensions.foreign_buckets.add("taken")
    s3 = client("s3")
    assert refusal(s3.head_bucket, Bucket="taken") == ("403", 403)
    assert refusal(s3.put_object, Bucket="taken", Key="k", Body=b"") == ("AccessDenied", 403)
    assert refusal(s3.create_bucket, Bucket="taken", CreateBucketConfiguration=HERE) == ("BucketAlreadyExists", 409)
    with pytest.raises(s3.exceptions.BucketAlreadyExists):
        s3.create_bucket(Bucket="taken", CreateBucketConfiguration=HERE)
    assert refusal(s3.head_bucket, Bucket="nobodys") == ("404", 404)


def test_the_expected_owner_is_looked_at(served: Served) -> None:
    s3 = client("s3")
    s3.create_bucket(Bucket="mine", CreateBucketConfiguration=HERE)
    s3.head_bucket(Bucket="mine", ExpectedBucketOwner="123456789012")
    s3.put_object(Bucket="mine", Key="k", Body=b"", ExpectedBucketOwner="123456789012")
    assert refusal(s3.head_bucket, Bucket="mine", ExpectedBucketOwner="210987654321") == ("403", 403)
    wrong = {"Bucket": "mine", "Key": "k", "Body": b"", "ExpectedBucketOwner": "210987654321"}
    assert refusal(s3.put_object, **wrong) == ("AccessDenied", 403)
    with pytest.raises(s3.exceptions.BucketAlreadyOwnedByYou):
        s3.create_bucket(Bucket="mine", CreateBucketConfiguration=HERE)


def test_settings_of_a_bucket_are_kept(served: Served) -> None:
    s3 = client("s3")
    s3.create_bucket(Bucket="mine", CreateBucketConfiguration=HERE)
    s3.put_bucket_versioning(Bucket="mine", VersioningConfiguration={"Status": "Enabled"})
    assert s3.get_bucket_versioning(Bucket="mine")["Status"] == "Enabled"
    block = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)
    s3.put_public_access_block(Bucket="mine", PublicAccessBlockConfiguration=block)
    assert s3.get_public_access_block(Bucket="mine")["PublicAccessBlockConfiguration"] == block
    rule = {
        "ID": "old",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
    }
    s3.put_bucket_lifecycle_configuration(Bucket="mine", LifecycleConfiguration={"Rules": [rule]})
    [kept] = s3.get_bucket_lifecycle_configuration(Bucket="mine")["Rules"]
    assert kept["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    listing = {"Effect": "Deny", "Principal": "*", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::mine"}
    policy = {"Version": "2012-10-17", "Statement": [listing]}
    s3.put_bucket_policy(Bucket="mine", Policy=json.dumps(policy))
    assert json.loads(s3.get_bucket_policy(Bucket="mine")["Policy"]) == policy
    encryption = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    s3.put_bucket_encryption(Bucket="mine", ServerSideEncryptionConfiguration=encryption)
    kept = s3.get_bucket_encryption(Bucket="mine")["ServerSideEncryptionConfiguration"]["Rules"][0]
    assert kept["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    s3.put_bucket_tagging(Bucket="mine", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    assert s3.get_bucket_tagging(Bucket="mine")["TagSet"] == [{"Key": "a", "Value": "b"}]


def test_public_parameters_are_there_for_clients_too(served: Served) -> None:
    ssm = client("ssm")
    ssm.put_parameter(Name="/mine", Value="x", Type="String")
    assert ssm.get_parameter(Name="/aws/service/canonical/ubuntu")["Parameter"]["Value"] == "ami-1"
    answer = ssm.get_parameters(Names=["/aws/service/canonical/ubuntu", "/mine", "/none"])
    assert {parameter["Name"]: parameter["Value"] for parameter in answer["Parameters"]} == {
        "/aws/service/canonical/ubuntu": "ami-1",
        "/mine": "x",
    }
    assert answer["InvalidParameters"] == ["/none"]
    assert refusal(ssm.get_parameter, Name="/none")[0] == "ParameterNotFound"


def test_balancers_go_with_their_interfaces_and_interfaces_keep_what_they_use(served: Served) -> None:
    ec2, elb, elbv2 = client("ec2"), client("elb"), client("elbv2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="web", Description="web", VpcId=vpc)["GroupId"]
    listener = {"Protocol": "TCP", "LoadBalancerPort": 80, "InstancePort": 80}
    elb.create_load_balancer(LoadBalancerName="web", Listeners=[listener], Subnets=[subnet], SecurityGroups=[group])
    [tcp] = elbv2.create_load_balancer(Name="tcp", Subnets=[subnet], Type="network", Scheme="internal")["LoadBalancers"]
    for name in ("web", "net/tcp"):
        ec2.create_network_interface(SubnetId=subnet, Description=f"ELB {name}", Groups=[group])
    for call, given in (
        (ec2.delete_security_group, {"GroupId": group}),
        (ec2.delete_subnet, {"SubnetId": subnet}),
        (ec2.delete_vpc, {"VpcId": vpc}),
    ):
        assert refusal(call, **given)[0] == "DependencyViolation"
    elb.delete_load_balancer(LoadBalancerName="web")
    elbv2.delete_load_balancer(LoadBalancerArn=tcp["LoadBalancerArn"])
    ec2.delete_subnet(SubnetId=subnet)
    assert refusal(ec2.delete_vpc, VpcId=vpc)[0] == "DependencyViolation"
    ec2.delete_security_group(GroupId=group)
    ec2.delete_vpc(VpcId=vpc)


@pytest.mark.parametrize("body", ["Action=DescribeVpcs&Filter.1=%C3%A9", b"{}", "", None])
@pytest.mark.parametrize(
    "url", ["https://ec2.us-west-2.amazonaws.com/", "http://127.0.0.1:5000", "https://a.b/c%2Fd?e=f"]
)
def test_requests_are_those_that_moto_would_make(served: Served, url: str, body: str | bytes | None) -> None:
    headers = {
        "Content-Type": b"application/x-www-form-urlencoded; charset=utf-8",
        "Content-Length": "3",
        "Transfer-Encoding": "chunked",
        "X-Amz-Date": "20260101T000000Z",
    }
    made, of_moto = (make("POST", url, headers, body) for make in (Request.from_primitives, speedups._make_request))
    assert made.get_data() == of_moto.get_data()
    assert (made.url, made.raw_url) == (of_moto.url, of_moto.raw_url)
    assert sorted(made.headers) == sorted(of_moto.headers)
    objects = {"wsgi.input", "werkzeug.request", "moto.preserved_header_names"}
    assert {key: value for key, value in made.environ.items() if key not in objects} == {
        key: value for key, value in of_moto.environ.items() if key not in objects
    }

"""Policies of IAM, enforced for one user and for nobody else."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from clusters import golden, prepared
from documented_policies import execution_policy, private_cluster_policy
from identity_policies import Credentials
from served_api import Served, serving

from cfngen.permissions.grants import grants, scope_of
from cfngen.permissions.scope import Scope
from cfngen.sandbox.cloudformation import CloudFormation

BODY = json.dumps({"Resources": {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}})


@pytest.fixture
def served(cloud: CloudFormation) -> Iterator[Served]:
    with serving(cloud) as served:
        yield served


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(action: str | list[str], resource: str | list[str] = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


@functools.cache
def session() -> boto3.Session:
    """One for all tests, as it keeps the models of the services."""
    return boto3.Session("AKIAOPERATOROPERATOR", "secret", region_name="us-west-2")


def client(service: str, credentials: Credentials, region: str = "us-west-2") -> Any:
    keys = {"aws_access_key_id": credentials.access_key, "aws_secret_access_key": credentials.secret_key}
    return session().client(service, region_name=region, **keys)


def denial(call: Any, **parameters: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    assert caught.value.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
    return str(caught.value.response["Error"]["Message"])


def test_only_what_the_policy_allows_on_the_resources_it_names(served: Served, cloud: CloudFormation) -> None:
    mine = "arn:aws:cloudformation:us-west-2:123456789012:stack/k8s*"
    with served.permissions.enforcing(
        policy(allow(["cloudformation:Create*", "cloudformation:Describe*"], mine))
    ) as key:
        cfn = client("cloudformation", key)
        cfn.create_stack(StackName="k8s-one", TemplateBody=BODY)
        assert cloud.wait(cloud.stack("k8s-one")).status == "CREATE_COMPLETE"  # the engine may do what the user may not
        assert cfn.describe_stacks(StackName="k8s-one")["Stacks"]
        assert denial(cfn.create_stack, StackName="other", TemplateBody=BODY) == (
            f"User: {key.user} is not authorized to perform: cloudformation:CreateStack on resource: "
            "arn:aws:cloudformation:us-west-2:123456789012:stack/other/* because no identity-based policy allows the "
            "cloudformation:CreateStack action"
        )
        assert denial(cfn.delete_stack, StackName="k8s-one")
        assert denial(client("ec2", key).describe_vpcs)
        assert client("sts", key).get_caller_identity()["Arn"] == key.user


def test_other_users_are_not_held_to_it(served: Served) -> None:
    with served.permissions.enforcing(policy(allow("s3:*"))):
        assert session().client("ec2").describe_vpcs()["Vpcs"]


def test_buckets_and_objects_are_different_resources(served: Served) -> None:
    everything = policy(
        allow("s3:CreateBucket"),
        allow(["s3:ListBucket", "s3:PutBucketPublicAccessBlock"], "arn:aws:s3:::templates"),
        allow("s3:PutObject", "arn:aws:s3:::templates/*"),
    )
    with served.permissions.enforcing(everything) as key:
        s3 = client("s3", key)
        s3.create_bucket(Bucket="templates", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        s3.put_object(Bucket="templates", Key="a.json", Body=b"{}")
        s3.head_bucket(Bucket="templates")
        s3.list_objects_v2(Bucket="templates")
        block = {"BlockPublicAcls": True, "IgnorePublicAcls": True, "BlockPublicPolicy": True}
        s3.put_public_access_block(Bucket="templates", PublicAccessBlockConfiguration=block)
        assert denial(s3.get_object, Bucket="templates", Key="a.json")
        assert denial(s3.put_object, Bucket="others", Key="a.json", Body=b"{}")


def test_a_change_set_is_allowed_by_its_stack(served: Served, cloud: CloudFormation) -> None:
    mine = "arn:aws:cloudformation:us-west-2:123456789012:stack/k8s/*"
    with served.permissions.enforcing(policy(allow("cloudformation:*ChangeSet", mine))) as key:
        cfn = client("cloudformation", key)
        arguments = {"ChangeSetName": "one", "TemplateBody": BODY, "ChangeSetType": "CREATE"}
        identity = cfn.create_change_set(StackName="k8s", **arguments)["Id"]
        cloud.advance(60)
        assert cfn.describe_change_set(ChangeSetName=identity)["Status"] == "CREATE_COMPLETE"
        assert denial(cfn.create_change_set, StackName="other", **arguments)


def test_a_private_clusters_policy_is_for_nat_gateways_and_endpoints_of_its_region(served: Served) -> None:
    scope = Scope("123456789012", "us-west-2", "kubernetes")
    everything = session().client("ec2")
    vpc = everything.create_vpc(CidrBlock="10.66.0.0/16")["Vpc"]["VpcId"]
    subnet = everything.create_subnet(VpcId=vpc, CidrBlock="10.66.0.0/24")["Subnet"]["SubnetId"]
    tags = [{"Key": "KubernetesCluster", "Value": "kubernetes"}]
    gateway: dict[str, Any] = {"SubnetId": subnet, "ConnectivityType": "private"}
    gateway["TagSpecifications"] = [{"ResourceType": "natgateway", "Tags": tags}]
    endpoint: dict[str, Any] = {"VpcId": vpc, "ServiceName": "com.amazonaws.us-west-2.s3"}
    endpoint |= {"VpcEndpointType": "Gateway", "TagSpecifications": [{"ResourceType": "vpc-endpoint", "Tags": tags}]}
    with served.permissions.enforcing(execution_policy(scope)) as key:
        assert denial(client("ec2", key).create_nat_gateway, **gateway)
        assert denial(client("ec2", key).create_vpc_endpoint, **endpoint)
    with served.permissions.enforcing(execution_policy(scope), private_cluster_policy(scope)) as key:
        ec2 = client("ec2", key)
        made = ec2.create_nat_gateway(**gateway)["NatGateway"]["NatGatewayId"]
        assert ec2.describe_nat_gateways(NatGatewayIds=[made])["NatGateways"]
        ec2.delete_nat_gateway(NatGatewayId=made)
        of_s3 = ec2.create_vpc_endpoint(**endpoint)["VpcEndpoint"]["VpcEndpointId"]
        assert ec2.describe_vpc_endpoints(VpcEndpointIds=[of_s3])["VpcEndpoints"]
        ec2.delete_vpc_endpoints(VpcEndpointIds=[of_s3])
        elsewhere = client("ec2", key, "eu-west-1")
        assert denial(elsewhere.delete_nat_gateway, NatGatewayId="nat-0123456789abcdef0")
        assert denial(elsewhere.delete_vpc_endpoints, VpcEndpointIds=["vpce-0123456789abcdef0"])


def test_tags_decide_what_is_deleted_and_what_is_tagged(served: Served) -> None:
    everything = session().client("ec2")
    own, others, nobodys = (
        everything.create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"] for number in (1, 2, 3)
    )
    for vpc, cluster in ((own, "kubernetes"), (others, "others")):
        everything.create_tags(Resources=[vpc], Tags=[{"Key": "KubernetesCluster", "Value": cluster}])
    tags = [{"Key": "KubernetesCluster", "Value": "kubernetes"}]
    with served.permissions.enforcing(execution_policy(Scope("123456789012", "us-west-2", "kubernetes"))) as key:
        ec2 = client("ec2", key)
        assert denial(ec2.create_tags, Resources=[others], Tags=tags)
        assert denial(ec2.create_tags, Resources=[nobodys], Tags=[{"Key": "KubernetesCluster", "Value": "others"}])
        for vpc in (others, nobodys):
            assert denial(ec2.delete_vpc, VpcId=vpc)
        made = ec2.create_vpc(CidrBlock="10.4.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": tags}])
        of_others = [{"ResourceType": "vpc", "Tags": [{"Key": "KubernetesCluster", "Value": "others"}]}]
        assert denial(ec2.create_vpc, CidrBlock="10.5.0.0/16", TagSpecifications=of_others)
        ec2.create_tags(Resources=[nobodys], Tags=tags)
        for vpc in (own, made["Vpc"]["VpcId"], nobodys):
            ec2.delete_vpc(VpcId=vpc)


def test_denial_wins_and_regions_count(served: Served) -> None:
    everything = policy(
        allow("*"),
        {"Effect": "Deny", "Action": "cloudformation:DeleteStack", "Resource": "*"},
        {
            "Effect": "Deny",
            "NotAction": "sts:*",
            "Resource": "*",
            "Condition": {"StringNotEquals": {"aws:RequestedRegion": ["us-west-2"]}},
        },
    )
    with served.permissions.enforcing(everything) as key:
        cfn = client("cloudformation", key)
        cfn.create_stack(StackName="net", TemplateBody=BODY)
        assert denial(cfn.delete_stack, StackName="net")
        assert client("ec2", key).describe_vpcs()["Vpcs"]
        assert denial(client("ec2", key, "eu-west-1").describe_vpcs)


def test_the_keys_end_with_the_block(served: Served) -> None:
    with served.permissions.enforcing(policy(allow("*"))) as key:
        client("ec2", key).describe_vpcs()
    assert denial(client("ec2", key).describe_vpcs)


def pipeline_policy() -> dict[str, Any]:
    cluster = golden("default")
    scope = scope_of(cluster, account="123456789012")
    [grant] = [each for each in grants(cluster, scope) if each.name == "pipeline"]
    return dict(grant.policies[0].document)


def test_a_pipeline_creates_updates_and_deletes_the_standalone_stack_with_the_service_role() -> None:
    trusted = policy({"Effect": "Allow", "Principal": {"Service": "cloudformation.amazonaws.com"}})
    trusted["Statement"][0]["Action"] = "sts:AssumeRole"
    iam = session().client("iam")
    where = prepared(golden("default"))
    url = where.url("standalone")
    parameters = [{"ParameterKey": "ApiAllowedCidr", "ParameterValue": "203.0.113.7/32"}]
    with serving(where.cloud) as served, served.permissions.enforcing(pipeline_policy()) as key:
        role = iam.create_role(RoleName="cfngen-cloudformation", AssumeRolePolicyDocument=json.dumps(trusted))
        arn = role["Role"]["Arn"]
        cfn = client("cloudformation", key)
        change_set: dict[str, Any] = {
            "StackName": "kubernetes", "ChangeSetName": "by-hand", "TemplateURL": url, "Parameters": parameters,
            "Capabilities": ["CAPABILITY_IAM"],
        }  # fmt: skip
        assert denial(cfn.create_change_set, **change_set, ChangeSetType="CREATE")
        assert denial(cfn.create_change_set, **{**change_set, "StackName": "kubernetes-eu"}, RoleARN=arn)
        for change_set_type, status in (("CREATE", "CREATE_COMPLETE"), ("UPDATE", "UPDATE_COMPLETE")):
            cfn.create_change_set(**change_set, ChangeSetType=change_set_type, RoleARN=arn)
            where.cloud.advance(60)
            assert cfn.describe_change_set(StackName="kubernetes", ChangeSetName="by-hand")["Status"]
            cfn.execute_change_set(StackName="kubernetes", ChangeSetName="by-hand")
            assert where.cloud.wait(where.cloud.stack("kubernetes")).status == status
            change_set["Parameters"] = [{"ParameterKey": "ApiAllowedCidr", "ParameterValue": "203.0.113.8/32"}]
        [described] = cfn.describe_stacks(StackName="kubernetes")["Stacks"]
        assert described["RoleARN"] == arn
        assert denial(cfn.delete_stack, StackName="kubernetes")
        assert denial(cfn.delete_stack, StackName="kubernetes-eu", RoleARN=arn)
        cfn.delete_stack(StackName="kubernetes", RoleARN=arn)
        assert where.cloud.wait(where.cloud.stack(described["StackId"])).status == "DELETE_COMPLETE"

"""What the rules of services let pass: near to what they refuse, and right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ec2_parts import VPC, security_group, table
from ec2_parts import subnet as place
from refusals_buckets import EVERYBODY, OBJECTS, TLS, WHOLE, bucket, with_policy
from refusals_dns import BALANCER_NAME, BALANCER_ZONE, NEITHER, alias, record, zone
from refusals_endpoints import NAMED_VPC, S3, gateway_endpoint, interface_endpoint
from refusals_identity import ACCOUNT, LISTING, allowing, document, made, profile, role, trusting
from refusals_load_balancers import NETWORK, balancer, group, listener, subnet
from refusals_load_balancers import WHOLE as BALANCED
from refusals_nat_gateways import ADDRESS, OPEN, nat
from refusals_scaling import idle
from refusals_secrets import ROOT, key
from small_stacks import BAD, GATEWAY, REGION, created, nested, reasons, tagged, text, updated
from web_identities import through_cloudfront

from cfngen.sandbox.cloudformation import CloudFormation, client

ANY_TAGS = [{"Key": "cost {centre}", "Value": "${team}, #1 (50 %)"}]
OIDC = f"{ACCOUNT}:oidc-provider/oidc.eks.us-west-2.amazonaws.com/id/A"
ANYBODY_OF_THE_ACCOUNT = {
    **ROOT,
    "Principal": {"AWS": "*"},
    "Condition": {"StringEquals": {"kms:CallerAccount": "123456789012"}},
}
IN_CLOUDFRONT = through_cloudfront(Provider=None, Role=None)
ACCEPTED: dict[str, dict[str, Any]] = {
    "an alias of a distribution": {
        **IN_CLOUDFRONT,
        "Zone": zone(),
        "It": alias("Z2FDTNDATAQYW2", {"Fn::GetAtt": ["Distribution", "DomainName"]}, "AAAA", **NEITHER),
    },
    "an alias of a load balancer, by its name for both families of addresses": {
        **NETWORK,
        "Balancer": balancer(),
        "Zone": zone(),
        "It": alias(BALANCER_ZONE, {"Fn::Join": [".", ["dualstack", BALANCER_NAME]]}, **NEITHER),
    },
    "an alias of a record of the zone": {
        "Zone": zone(),
        "First": record("app.k8s.example.com"),
        "It": alias({"Ref": "Zone"}, "app.k8s.example.com.", **NEITHER) | {"DependsOn": ["First"]},
    },
    "trust in an account": {"It": role(AssumeRolePolicyDocument=trusting({"AWS": "210987654321"}))},
    "trust in a role of another account": {
        "It": role(AssumeRolePolicyDocument=trusting({"AWS": "arn:aws:iam::210987654321:role/deployer"}))
    },
    "trust in a role of the same template": {
        "Role": role(),
        "It": role(AssumeRolePolicyDocument=trusting({"AWS": {"Fn::GetAtt": ["Role", "Arn"]}})),
    },
    "trust in an identity provider": {
        "It": role(
            AssumeRolePolicyDocument=trusting({"Federated": OIDC}, Action="sts:AssumeRoleWithWebIdentity"),
        )
    },
    "trust of the old version": {"It": role(AssumeRolePolicyDocument={**trusting({"AWS": f"{ACCOUNT}:root"}),
                                                                      "Version": "2008-10-17"})},
    "a policy of AWS as boundary": {"It": role(PermissionsBoundary="arn:aws:iam::aws:policy/PowerUserAccess")},
    "policies of AWS": {
        "It": role(ManagedPolicyArns=[f"arn:aws:iam::aws:policy/{name}" for name in (
            "AmazonSSMManagedInstanceCore", "CloudWatchAgentServerPolicy", "AmazonEC2ReadOnlyAccess")])},
    "one statement without a list": {"It": allowing({"Version": "2012-10-17", "Statement": LISTING})},
    "a condition that may be missing": {
        "It": allowing(document({**LISTING, "Condition": {"ForAnyValue:StringLikeIfExists": {"aws:TagKeys": ["a"]}}}))
    },
    "a key for anybody of the account": {"It": key(ANYBODY_OF_THE_ACCOUNT)},
    "a key that a service uses": {
        "It": key(ROOT, {**ROOT, "Principal": {"Service": "delivery.logs.amazonaws.com"}, "Action": "kms:Decrypt"})
    },
    "a key that leaves its policy to KMS": {"It": {"Type": "AWS::KMS::Key"}},
    "a bucket for one organization": with_policy(
        {**EVERYBODY, "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1234567890"}}}
    ),
    "a bucket for everybody that says so": with_policy(EVERYBODY, block=False),
    "a bucket's own actions on both": with_policy(
        {**TLS, "Action": ["s3:ListBucket", "s3:GetObject", "s3:GetBucket*"], "Resource": [WHOLE, OBJECTS]}
    ),
    "two rules of one prefix": {
        "It": bucket(LifecycleConfiguration={"Rules": [
            {"Id": each, "Status": "Enabled", "Prefix": "a", "ExpirationInDays": 1} for each in ("a", "b")]})},
    "two endpoints of a service, one of them with private DNS": {
        "Vpc": NAMED_VPC, "Subnet": place(), "First": interface_endpoint(),
        "It": interface_endpoint(PrivateDnsEnabled=False)},
    "an endpoint in a VPC without DNS host names": {
        "Vpc": VPC, "Subnet": place(), "It": interface_endpoint(PrivateDnsEnabled=False)},
    "a gateway endpoint for each route table": {
        "Vpc": VPC, "One": table(), "Two": table(), "First": gateway_endpoint("One"), "It": gateway_endpoint("Two")},
    "both types of endpoint for S3": {
        "Vpc": NAMED_VPC, "Subnet": place(), "One": table(), "First": gateway_endpoint("One"),
        "It": interface_endpoint(service=S3, PrivateDnsEnabled=False)},
    "two NAT gateways in a subnet": {
        "Vpc": VPC, "Subnet": place(), **OPEN, "Address": ADDRESS, "Second": ADDRESS, "First": nat(),
        "It": nat(allocation={"Fn::GetAtt": ["Second", "AllocationId"]})},
    "two listeners to one group": {**BALANCED, "One1": listener(), "It": listener(Port=443)},
    "tags of EC2 with any character": {"Vpc": VPC, "It": security_group(Tags=ANY_TAGS)},
    "the region's own prefix list of S3": {
        "Vpc": VPC, "It": security_group(SecurityGroupEgress=[
            {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "DestinationPrefixListId": "pl-68a54001"}])},
}  # fmt: skip


@pytest.mark.parametrize("resources", ACCEPTED.values(), ids=ACCEPTED)
def test_it_is_accepted(resources: dict[str, Any], cloud: CloudFormation) -> None:
    stack = cloud.wait(cloud.create_stack("s", body=text(resources), capabilities=["CAPABILITY_IAM"]))
    assert stack.status == "CREATE_COMPLETE", [event.reason for event in stack.events if event.reason]
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"


def test_security_groups_of_a_load_balancer_that_has_some_are_changed(cloud: CloudFormation) -> None:
    def body(name: str, *subnets: str) -> str:
        it = balancer(*subnets, SecurityGroups=[{"Ref": name}])
        return text({**NETWORK, "Two": subnet(1, "b"), "A": group(), "B": group(), "It": it})

    stack = cloud.wait(cloud.create_stack("s", body=body("A", "One", "Two")))
    assert stack.status == "CREATE_COMPLETE", [event.reason for event in stack.events if event.reason]
    cloud.wait(cloud.update_stack("s", body=body("B", "One")))
    assert stack.status == "UPDATE_COMPLETE", [event.reason for event in stack.events if event.reason]


def test_a_profile_is_used_once_cloudformation_or_time_has_waited_for_it(cloud: CloudFormation) -> None:
    ec2 = client("ec2", REGION)
    image = ec2.register_image(Name="image")["ImageId"]
    body = text({"Role": role(), "It": profile("Role")})
    stack = cloud.wait(cloud.create_stack("s", body=body, capabilities=["CAPABILITY_IAM"]))
    iam = made()
    iam.create_instance_profile(InstanceProfileName="one")
    iam.add_role_to_instance_profile(InstanceProfileName="one", RoleName="one")
    cloud.advance(60)
    for name in (stack.resources["It"].physical_id, "one"):
        assert ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, IamInstanceProfile={"Name": name})["Instances"]


def test_a_secret_is_encrypted_by_a_key_of_its_stack(cloud: CloudFormation) -> None:
    secret = {
        "Type": "AWS::SecretsManager::Secret",
        "Properties": {"KmsKeyId": {"Fn::GetAtt": ["Key", "Arn"]}},
    }
    stack = cloud.wait(cloud.create_stack("s", body=text({"Key": key(ROOT), "It": secret})))
    secrets, arn = client("secretsmanager", REGION), stack.resources["It"].physical_id
    secrets.put_secret_value(SecretId=arn, SecretString=json.dumps({"a": "b"}))
    assert secrets.get_secret_value(SecretId=arn)["SecretString"] == '{"a": "b"}'


def test_a_key_that_somebody_has_given_up_does_not_stop_a_deletion(cloud: CloudFormation) -> None:
    stack = cloud.wait(cloud.create_stack("s", body=text({"It": key(ROOT)})))
    client("kms", REGION).schedule_key_deletion(KeyId=stack.resources["It"].physical_id, PendingWindowInDays=7)
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"


def test_tags_of_a_stack_may_have_any_character_that_its_resources_may(cloud: CloudFormation) -> None:
    cloud.wait(cloud.create_stack("s", body=text({"Vpc": VPC}), tags={"team": "a & b, {c} $5"}))
    [vpc] = client("ec2", REGION).describe_vpcs(VpcIds=[cloud.stack("s").resources["Vpc"].physical_id])["Vpcs"]
    assert {"Key": "team", "Value": "a & b, {c} $5"} in vpc["Tags"]
    stack = cloud.wait(cloud.create_stack("t", body=text({"It": role()}), tags={"team": "a & b"},
                                          capabilities=["CAPABILITY_IAM"]))  # fmt: skip
    assert stack.status == "ROLLBACK_COMPLETE"


def test_a_group_launches_the_image_that_a_parameter_has_at_that_time(cloud: CloudFormation) -> None:
    ec2 = client("ec2", REGION)
    images = [ec2.register_image(Name=name)["ImageId"] for name in ("one", "two")]
    resources = idle(Tags=[{**tag, "PropagateAtLaunch": True} for tag in ANY_TAGS])
    resources["Template"]["Properties"]["LaunchTemplateData"]["ImageId"] = "resolve:ssm:/images/node"
    cloud.parameter_store["/images/node"] = images[0]
    created(cloud, resources)
    cloud.parameter_store["/images/node"] = images[1]
    resources["Group"]["Properties"]["MaxSize"] = resources["Group"]["Properties"]["MinSize"] = "2"
    assert updated(cloud, resources).status == "UPDATE_COMPLETE"
    instances = [each["Instances"][0] for each in ec2.describe_instances()["Reservations"]]
    assert sorted(each["ImageId"] for each in instances) == sorted(images)
    assert all(ANY_TAGS[0] in each["Tags"] for each in instances), "any character, as all tags of EC2"


def test_a_nested_stack_is_updated_and_deleted_without_its_parent(cloud: CloudFormation) -> None:
    def body(name: str, value: str) -> str:
        return text({"Child": nested(name, text({"G": tagged(a=value)}))})

    stack = cloud.wait(cloud.create_stack("s", body=body("one", "1")))
    child = stack.children["Child"]
    cloud.wait(cloud.update_stack(child.name, body=text({"G": tagged(a="2"), "H": GATEWAY})))
    assert (stack.status, child.status, set(child.resources)) == ("CREATE_COMPLETE", "UPDATE_COMPLETE", {"G", "H"})
    assert child.events[-1].status == "UPDATE_COMPLETE", "its cleanup waits for no parent"
    # Its parent takes it back to the template that it names.
    cloud.wait(cloud.update_stack("s", body=body("three", "3")))
    assert (stack.status, child.status, set(child.resources)) == ("UPDATE_COMPLETE", "UPDATE_COMPLETE", {"G"})
    assert cloud.wait(cloud.delete_stack(child.name)).status == "DELETE_COMPLETE"
    cloud.wait(cloud.update_stack("s", body=body("four", "4")))
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert reasons(stack, "Child", "UPDATE_FAILED") == [f"Stack with id {child.id} does not exist"]
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"


def test_a_failed_update_of_a_nested_stack_alone_rolls_back_alone(cloud: CloudFormation) -> None:
    stack = cloud.wait(cloud.create_stack("s", body=text({"Child": nested("one", text({"G": GATEWAY}))})))
    child = stack.children["Child"]
    cloud.wait(cloud.update_stack(child.name, body=text({"G": GATEWAY, "It": BAD})))
    assert (stack.status, child.status) == ("CREATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")


def test_what_somebody_has_deleted_does_not_stop_a_deletion(cloud: CloudFormation) -> None:
    resources = {
        **idle(MinSize=0, MaxSize="1"),
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Zone": zone(),
        "Record": record(),
        "Alone": {**zone(), "Properties": {"Name": "example.org"}},
    }
    ids = {key: each.physical_id for key, each in created(cloud, resources).resources.items()}
    route53 = client("route53", REGION)
    sets = route53.list_resource_record_sets(HostedZoneId=ids["Zone"])["ResourceRecordSets"]
    changes = [{"Action": "DELETE", "ResourceRecordSet": each} for each in sets if each["Type"] == "A"]
    route53.change_resource_record_sets(HostedZoneId=ids["Zone"], ChangeBatch={"Changes": changes})
    route53.delete_hosted_zone(Id=ids["Alone"])
    client("s3", REGION).delete_bucket(Bucket=ids["Bucket"])
    client("autoscaling", REGION).delete_auto_scaling_group(AutoScalingGroupName=ids["Group"], ForceDelete=True)
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"

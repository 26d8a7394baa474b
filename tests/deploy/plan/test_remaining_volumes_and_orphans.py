"""What stays when a cluster is gone: why, what it is billed by, and how to get rid of it, each kind by its own call."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Any

import pytest
from answers import Answers, filtered
from aws_descriptions import NOW, arn, resource
from botocore import xform_name
from botocore.session import get_session
from recorded import RefusedError

from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.stacks import StackResource, StackView
from cfngen.deploy.aws.templates import TemplateObjects
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.plan.deletion import remaining_buckets_keys_and_logs, remaining_volumes_and_orphans
from cfngen.deploy.plan.deletion.remaining_resources import DeletedCluster, Moment, find_remaining_resources
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource

VOLUMES = (resource("vol-1"), resource("vol-2", "DELETE_COMPLETE", stack_id=arn("masters")), resource("vpc-1"))
SNAPSHOTS = {"Snapshots": [{"SnapshotId": "snap-1", "VolumeId": "vol-1", "VolumeSize": 20}]}


def events(aws: Answers, *volumes: str) -> None:
    aws.given["cloudformation:DescribeStackEvents"] = {
        "StackEvents": [
            {
                "StackId": arn("one"),
                "EventId": f"event-{volume}",
                "StackName": "one",
                "Timestamp": datetime(2026, 1, 1, tzinfo=UTC),
                "ResourceType": volume.partition("=")[0],
                **({"PhysicalResourceId": volume.partition("=")[2]} if volume.partition("=")[2] else {}),
            }
            for volume in volumes
        ]
    }


def found_snapshots(aws: Answers, volumes: Any = VOLUMES, **more: bool) -> Any:
    return remaining_volumes_and_orphans.find_volume_snapshots(
        aws.account, Inventory("one", volumes), authorities_note="a file has them", **more
    )


def test_snapshots_of_all_volumes_that_there_ever_were_are_named(aws: Answers) -> None:
    aws.given["ec2:DescribeSnapshots"] = SNAPSHOTS
    events(aws, "AWS::EC2::Volume=vol-3", "AWS::EC2::Volume=", "AWS::EC2::Instance=i-1", "AWS::EC2::Volume=vol-1")
    [found] = found_snapshots(aws)
    assert (found.kind, found.id) == ("snapshot", "snap-1")
    assert found.command == "aws ec2 delete-snapshot --snapshot-id snap-1 --region us-west-2"
    assert found.cost == "EBS snapshot of a volume of 20 GiB, billed per GiB of stored data and month"
    assert found.why.startswith("etcd's data, of the master volume vol-1; ")
    assert found.why.endswith("certificate authorities: a file has them")
    [asked] = aws.named("ec2:DescribeSnapshots")
    assert (filtered(asked, "volume-id"), asked["OwnerIds"]) == (["vol-1", "vol-2", "vol-3"], ["self"])
    assert {each["StackName"] for each in aws.named("cloudformation:DescribeStackEvents")} == {
        arn("one"),
        arn("masters"),
    }


def test_a_snapshot_may_be_worth_nothing(aws: Answers) -> None:
    aws.given["ec2:DescribeSnapshots"] = SNAPSHOTS
    [found] = found_snapshots(aws, has_run=False)
    assert "etcd's data, or blank if no master came up" in found.why


def test_who_may_not_see_events_still_sees_snapshots_of_the_volumes_there_are(aws: Answers) -> None:
    aws.given["ec2:DescribeSnapshots"] = SNAPSHOTS
    aws.given["cloudformation:DescribeStackEvents"] = RefusedError("AccessDenied")
    assert len(found_snapshots(aws)) == 1
    aws.given["cloudformation:DescribeStackEvents"] = RefusedError("ServiceUnavailable")
    with pytest.raises(Exception, match="ServiceUnavailable"):
        found_snapshots(aws)


@pytest.mark.parametrize(("number", "calls"), [(0, []), (200, [200]), (201, [200, 1])])
def test_snapshots_are_asked_for_two_hundred_volumes_at_a_time(aws: Answers, number: int, calls: list[int]) -> None:
    found_snapshots(aws, tuple(resource(f"vol-{each}") for each in range(number)))
    assert [len(filtered(each, "volume-id")) for each in aws.named("ec2:DescribeSnapshots")] == calls


KEY = {"KeyId": "key-1", "KeyState": "PendingDeletion", "DeletionDate": datetime(2026, 2, 3, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"KeyMetadata": KEY}, "deleted on 2026-02-03; "),
        (
            {"KeyMetadata": {"KeyId": "key-1", "KeyState": "PendingDeletion"}},
            "deleted on a day that KMS does not say; ",
        ),
        ({"KeyMetadata": {**KEY, "KeyState": "Enabled"}}, None),
        (RefusedError("NotFoundException"), None),
        (RefusedError("AccessDeniedException"), None),
    ],
)
def test_a_key_that_waits_for_its_deletion_can_be_kept(aws: Answers, answer: Any, why: str | None) -> None:
    aws.given["kms:DescribeKey"] = answer
    found = remaining_buckets_keys_and_logs.find_keys(
        aws.account, Inventory("one", (resource("key-1", "DELETE_COMPLETE"),))
    )
    assert aws.named("kms:DescribeKey") == [{"KeyId": "key-1"}]
    if why is None:
        assert found == ()
        return
    keeping = "until then `aws kms cancel-key-deletion --key-id key-1 --region us-west-2` cancels the deletion"
    assert found == (
        remaining_volumes_and_orphans.RetainedResource(
            "KMS key", "key-1", why + keeping, "not billed while its deletion is pending"
        ),
    )


def test_a_key_that_cannot_be_looked_at_for_another_reason_is_an_error(aws: Answers) -> None:
    for call, ask, held in (
        ("kms:DescribeKey", remaining_buckets_keys_and_logs.find_keys, "AWS::KMS::Key"),
        ("secretsmanager:DescribeSecret", remaining_buckets_keys_and_logs.find_secrets, "AWS::SecretsManager::Secret"),
    ):
        aws.given[call] = RefusedError("InternalFailure")
        with pytest.raises(Exception, match="InternalFailure"):
            ask(aws.account, Inventory("one", (resource("x", type_name=held),)))


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ({"DeletedDate": datetime(2026, 2, 3, tzinfo=UTC)}, True),
        ({"ARN": "arn:secret-1-of-a-stack"}, False),
        (RefusedError("ResourceNotFoundException"), False),
        (RefusedError("AccessDeniedException"), False),
    ],
)
def test_a_secret_in_its_recovery_window_can_be_brought_back(aws: Answers, answer: Any, named: bool) -> None:
    aws.given["secretsmanager:DescribeSecret"] = answer
    held = resource("arn-of-a-secret-in-it", "DELETE_COMPLETE", type_name="AWS::SecretsManager::Secret")
    found = remaining_buckets_keys_and_logs.find_secrets(aws.account, Inventory("one", (held,)))
    assert aws.named("secretsmanager:DescribeSecret") == [{"SecretId": "arn-of-a-secret-in-it"}]
    assert bool(found) is named
    for each in found:
        assert (each.kind, each.id, each.cost) == (
            "secret",
            "arn-of-a-secret-in-it",
            "not billed while its deletion is pending",
        )
        assert "restore-secret --secret-id arn-of-a-secret-in-it --region us-west-2`" in each.why
        assert "delete-secret --force-delete-without-recovery --secret-id arn-of-a-secret-in-it " in each.command


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (resource("vpc-1", "DELETE_SKIPPED"), "VpcStack/VPC: retained by its DeletionPolicy or at your request"),
        (
            resource("vpc-1", "DELETE_FAILED", reason="has dependencies"),
            "VpcStack/VPC: has dependencies (CloudFormation failed to delete it)",
        ),
        (resource("vpc-1", "DELETE_SKIPPED", reason="retained"), "VpcStack/VPC: retained"),
        (resource("vpc-1", "DELETE_COMPLETE"), None),
        (resource("vpc-1"), None),
        (resource("arn", "DELETE_FAILED", type_name="AWS::CloudFormation::Stack"), None),
    ],
)
def test_what_cloudformation_did_not_delete_is_named_with_its_reason(
    aws: Answers, member: StackResource, why: str | None
) -> None:
    member = StackResource(member.stack_id, ("VpcStack",), member.view)
    found = remaining_volumes_and_orphans.find_undeleted_resources(aws.account, [member])
    assert [(each.kind, each.id, each.why) for each in found] == ([("AWS::EC2::VPC", "vpc-1", why)] if why else [])


def test_what_has_no_id_is_named_by_its_logical_one_and_has_no_command(aws: Answers) -> None:
    member = resource("", "DELETE_FAILED", type_name="AWS::EC2::VPC", name="Vpc")
    [found] = remaining_volumes_and_orphans.find_undeleted_resources(aws.account, [member])
    assert (found.id, found.command, found.cost) == ("Vpc", "", "")


def test_an_elastic_ip_is_released_by_its_allocation_id(aws: Answers) -> None:
    aws.given["ec2:DescribeAddresses"] = {"Addresses": [{"PublicIp": "192.0.2.1", "AllocationId": "eipalloc-1"}]}
    addresses = [
        resource(address, "DELETE_FAILED", type_name="AWS::EC2::EIP") for address in ("192.0.2.1", "192.0.2.2")
    ]
    found = remaining_volumes_and_orphans.find_undeleted_resources(aws.account, addresses)
    release = "aws ec2 release-address --allocation-id eipalloc-1 --region us-west-2"
    assert [(each.id, each.command) for each in found] == [("192.0.2.1", release), ("192.0.2.2", "")]
    [asked] = aws.named("ec2:DescribeAddresses")
    assert filtered(asked, "public-ip") == ["192.0.2.1", "192.0.2.2"]
    aws.given["ec2:DescribeAddresses"] = RefusedError("UnauthorizedOperation")
    assert [
        each.command for each in remaining_volumes_and_orphans.find_undeleted_resources(aws.account, addresses)
    ] == ["", ""]
    aws.given["ec2:DescribeAddresses"] = RefusedError("InternalError")
    with pytest.raises(Exception, match="InternalError"):
        remaining_volumes_and_orphans.find_undeleted_resources(aws.account, addresses)


def test_commands_are_in_an_order_in_which_they_work(aws: Answers) -> None:
    aws.given["ec2:DescribeAddresses"] = {"Addresses": [{"PublicIp": "192.0.2.1", "AllocationId": "eipalloc-1"}]}
    kept = {
        "192.0.2.1": "AWS::EC2::EIP",
        "subnet-1": "AWS::EC2::Subnet",
        "nat-1": "AWS::EC2::NatGateway",
        "vpce-1": "AWS::EC2::VPCEndpoint",
    }
    found = remaining_volumes_and_orphans.find_undeleted_resources(
        aws.account, [resource(each, "DELETE_FAILED", type_name=kind) for each, kind in kept.items()]
    )
    assert [each.id for each in found] == ["nat-1", "vpce-1", "192.0.2.1", "subnet-1"]
    assert all(each.command for each in found)


def test_a_role_is_deleted_after_its_policies_and_not_named_once_it_is_gone(aws: Answers) -> None:
    member = resource("web", "DELETE_FAILED", type_name="AWS::IAM::Role")
    aws.given["iam:ListRolePolicies"] = {"PolicyNames": ["kubernetes"]}
    aws.given["iam:ListAttachedRolePolicies"] = {"AttachedPolicies": [{"PolicyArn": "arn:aws:iam::1:policy/orders"}]}
    [found] = remaining_volumes_and_orphans.find_undeleted_resources(aws.account, [member])
    assert found.command.split(" && ") == [
        "aws iam delete-role-policy --role-name web --policy-name kubernetes",
        "aws iam detach-role-policy --role-name web --policy-arn arn:aws:iam::1:policy/orders",
        "aws iam delete-role --role-name web",
    ]
    aws.given["iam:ListRolePolicies"] = RefusedError("AccessDenied")
    assert [each.command for each in remaining_volumes_and_orphans.find_undeleted_resources(aws.account, [member])] == [
        "aws iam delete-role --role-name web"
    ]
    aws.given["iam:ListRolePolicies"] = RefusedError("NoSuchEntity")
    assert remaining_volumes_and_orphans.find_undeleted_resources(aws.account, [member]) == ()


@pytest.mark.parametrize(
    ("status", "template", "stays"),
    [
        ("CREATE_COMPLETE", '{"Resources": {"RepositoryWeb01234567": {"DeletionPolicy": "Delete"}}}', False),
        (
            "CREATE_COMPLETE",
            '{"Resources": {"RepositoryWeb01234567": {"DeletionPolicy": "RetainExceptOnCreate"}}}',
            True,
        ),
        # Who is not sure to keep the images is warned of losing them.
        ("CREATE_COMPLETE", "Resources: {RepositoryWeb01234567: {DeletionPolicy: RetainExceptOnCreate}}", False),
        ("DELETE_SKIPPED", "Resources: {}", True),
        ("DELETE_COMPLETE", "Resources: {}", False),
    ],
)
def test_a_repository_stays_if_its_template_or_the_deletion_says_so(
    aws: Answers, status: str, template: str, stays: bool
) -> None:
    aws.given["cloudformation:GetTemplate"] = {"TemplateBody": template}
    repository = resource("web", status, type_name="AWS::ECR::Repository", name="RepositoryWeb01234567")
    kept = remaining_volumes_and_orphans.find_kept_registry(aws.account, [repository])
    assert [part.id for part in kept] == (["web"] if stays else [])


@pytest.mark.parametrize(("name", "billed"), [("EndpointS3", False), ("EndpointEc2", True)])
def test_a_gateway_endpoint_is_free(aws: Answers, name: str, billed: bool) -> None:
    member = resource("vpce-1", "DELETE_FAILED", type_name="AWS::EC2::VPCEndpoint", name=name)
    [found] = remaining_volumes_and_orphans.find_undeleted_resources(aws.account, [member])
    assert bool(found.cost) is billed
    assert found.command == "aws ec2 delete-vpc-endpoints --vpc-endpoint-ids vpce-1 --region us-west-2"


def test_what_several_zones_use_is_named_once() -> None:
    lent = [("RouteTableAId", "rtb-7"), ("RouteTableBId", "rtb-7")]
    assert [each.id for each in remaining_volumes_and_orphans.list_existing_resources(Inventory("one"), lent)] == [
        "rtb-7"
    ]


BILLED = {
    "AWS::CloudFront::Distribution",
    "AWS::EC2::EIP",
    "AWS::EC2::Volume",
    "AWS::EC2::NatGateway",
    "AWS::EC2::VPCEndpoint",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "AWS::KMS::Key",
    "AWS::Route53::HostedZone",
    "AWS::SecretsManager::Secret",
    "AWS::S3::Bucket",
}
DELETED_BY = {
    "AWS::AutoScaling::AutoScalingGroup": ("autoscaling", "DeleteAutoScalingGroup", "AutoScalingGroupName"),
    "AWS::EC2::DHCPOptions": ("ec2", "DeleteDhcpOptions", "DhcpOptionsId"),
    "AWS::EC2::InternetGateway": ("ec2", "DeleteInternetGateway", "InternetGatewayId"),
    "AWS::EC2::KeyPair": ("ec2", "DeleteKeyPair", "KeyName"),
    "AWS::EC2::LaunchTemplate": ("ec2", "DeleteLaunchTemplate", "LaunchTemplateId"),
    "AWS::EC2::NatGateway": ("ec2", "DeleteNatGateway", "NatGatewayId"),
    "AWS::EC2::NetworkInterface": ("ec2", "DeleteNetworkInterface", "NetworkInterfaceId"),
    "AWS::EC2::RouteTable": ("ec2", "DeleteRouteTable", "RouteTableId"),
    "AWS::EC2::SecurityGroup": ("ec2", "DeleteSecurityGroup", "GroupId"),
    "AWS::EC2::Subnet": ("ec2", "DeleteSubnet", "SubnetId"),
    "AWS::EC2::VPC": ("ec2", "DeleteVpc", "VpcId"),
    "AWS::EC2::VPCEndpoint": ("ec2", "DeleteVpcEndpoints", "VpcEndpointIds"),
    "AWS::EC2::Volume": ("ec2", "DeleteVolume", "VolumeId"),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": ("elbv2", "DeleteLoadBalancer", "LoadBalancerArn"),
    "AWS::ElasticLoadBalancingV2::TargetGroup": ("elbv2", "DeleteTargetGroup", "TargetGroupArn"),
    "AWS::IAM::InstanceProfile": ("iam", "DeleteInstanceProfile", "InstanceProfileName"),
    "AWS::IAM::ManagedPolicy": ("iam", "DeletePolicy", "PolicyArn"),
    "AWS::IAM::OIDCProvider": ("iam", "DeleteOpenIDConnectProvider", "OpenIDConnectProviderArn"),
    "AWS::KMS::Key": ("kms", "ScheduleKeyDeletion", "KeyId"),
    "AWS::Route53::HostedZone": ("route53", "DeleteHostedZone", "Id"),
    "AWS::SecretsManager::Secret": ("secretsmanager", "DeleteSecret", "SecretId"),
}


@pytest.mark.parametrize("kind", sorted({*DELETED_BY, *BILLED}))
def test_each_kind_that_stays_has_its_price_and_its_command(aws: Answers, kind: str) -> None:
    """The CLI's names are those of botocore's models, hyphenated."""
    [found] = remaining_volumes_and_orphans.find_undeleted_resources(
        aws.account, [resource("id-1", "DELETE_SKIPPED", type_name=kind)]
    )
    assert bool(found.cost) is (kind in BILLED)
    if kind not in DELETED_BY:
        assert found.command == ""
        return
    service, operation, argument = DELETED_BY[kind]
    words = [word for word in shlex.split(found.command) if word != "--force-delete"]
    option = f"--{xform_name(argument, '-')}"
    assert words == ["aws", service, xform_name(operation, "-"), option, "id-1", "--region", "us-west-2"]
    model = get_session().get_service_model(service).operation_model(operation).input_shape
    assert argument in model.members
    assert set(model.required_members) <= {argument}


@pytest.mark.parametrize(
    ("leftover", "why", "cost"),
    [
        (
            OrphanedResource("volume", "vol-1", "data", "claim shop/data", gigabytes=8),
            "claim shop/data: data of a PersistentVolumeClaim",
            "EBS volume of 8 GiB, billed per GiB and month",
        ),
        (
            OrphanedResource("snapshot", "snap-1", "copy", gigabytes=8),
            "data of a PersistentVolumeClaim",
            "EBS snapshot of 8 GiB, billed per GiB of stored data and month",
        ),
        (
            OrphanedResource("load balancer", "arn", "web"),
            "data of a PersistentVolumeClaim",
            "load balancer, billed per hour",
        ),
        (OrphanedResource("security group", "sg-1", "web"), "data of a PersistentVolumeClaim", ""),
    ],
)
def test_what_kubernetes_made_and_stays_has_its_price(
    aws: Answers, leftover: OrphanedResource, why: str, cost: str
) -> None:
    [found] = remaining_volumes_and_orphans.describe_remaining_orphans(
        aws.account, [leftover], "data of a PersistentVolumeClaim"
    )
    assert (found.kind, found.id, found.why, found.cost) == (leftover.kind, leftover.id, why, cost)
    assert found.command == leftover.command("us-west-2")


@pytest.mark.parametrize(
    ("size", "cost"),
    [
        (2**30, "1.00 GiB"),
        (2**20, "0.00 GiB"),
        (2**20 - 1, "less than a mebibyte"),
        (0, "less than a mebibyte"),
    ],
)
def test_templates_are_named_with_their_number_and_size(size: int, cost: str) -> None:
    objects = TemplateObjects("mine", "one/", 2, size / 2**30)
    [found] = remaining_volumes_and_orphans.describe_remaining_templates(objects)
    assert (found.kind, found.id) == ("templates", "s3://mine/one/")
    assert "2 object versions" in found.why
    assert cost in found.cost
    assert "--empty-bucket" in str(found.command)
    assert "aws s3 rm --recursive s3://mine/one/" in str(found.command)
    assert remaining_volumes_and_orphans.describe_remaining_templates(TemplateObjects("mine", "one/")) == ()


@pytest.mark.parametrize("size", [None, 3 * 2**29])
def test_log_groups_are_named_with_what_they_store(aws: Answers, size: int | None) -> None:
    name = "/aws/containerinsights/one/application"
    described = {"logGroupName": name, **({} if size is None else {"storedBytes": size})}
    aws.given["logs:DescribeLogGroups"] = {"logGroups": [described]}
    [found] = remaining_buckets_keys_and_logs.find_workload_log_groups(aws.account, "one")
    assert (found.kind, found.id) == ("log group", name)
    assert f"{'0.00' if size is None else '1.50'} GiB" in found.cost
    assert found.command == f"aws logs delete-log-group --log-group-name {name} --region us-west-2"
    assert aws.named("logs:DescribeLogGroups") == [{"logGroupNamePrefix": "/aws/containerinsights/one/"}]


def test_who_may_not_see_log_groups_is_not_kept_from_deleting(aws: Answers) -> None:
    aws.given["logs:DescribeLogGroups"] = RefusedError("AccessDeniedException")
    assert remaining_buckets_keys_and_logs.find_workload_log_groups(aws.account, "one") == ()
    aws.given["logs:DescribeLogGroups"] = RefusedError("ServiceUnavailableException")
    with pytest.raises(Exception, match="ServiceUnavailable"):
        remaining_buckets_keys_and_logs.find_workload_log_groups(aws.account, "one")


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("VpcId", "vpc-7", "VPC"),
        ("RouteTableId", "rtb-7", "route table"),
        ("InternetGatewayId", "igw-7", "internet gateway"),
        ("ApiElasticIpAllocationId", "eipalloc-7", "Elastic IP"),
        ("KeyName", "alice", "key pair"),
        ("SubnetAId", "subnet-7", "subnet"),
        ("PublicSubnetAId", "subnet-7", "subnet"),
        ("NatGatewayAId", "nat-7", "NAT gateway"),
        ("NodeSecurityGroupId", "sg-7", "security group"),
        ("RouteTableLax1AId", "rtb-7", "route table"),
        ("NatGatewayA", "nat-7", None),
        ("VpcId", "", None),
        ("VpcId", "vpc-1", None),
        ("ApiAllowedCidr", "0.0.0.0/0", None),
    ],
)
def test_what_was_lent_is_the_operators_and_stays(name: str, value: str, kind: str | None) -> None:
    found = remaining_volumes_and_orphans.list_existing_resources(
        Inventory("one", (resource("vpc-1"),)), [(name, value)]
    )
    assert [(each.kind, each.id, bool(each.cost)) for each in found] == (
        [(kind, value, kind in ("Elastic IP", "NAT gateway"))] if kind else []
    )
    assert not any(not each.why.startswith("yours") for each in found)


WEB, OWN = "one.us-west-2.shop.web", "one.us-west-2.shop.own"
STACK = StackView("one", arn("one"), StackStatus("DELETE_FAILED"))


def remaining(aws: Answers, moment: Moment, stack: StackView | None, **more: Any) -> list[str]:
    """Ids of what is listed of a stack whose VPC was not deleted, which had the role `own`, and not `web`."""
    role = {
        "Path": "/",
        "RoleId": "AROA0123456789ABCDEF",
        "Arn": "arn:aws:iam::123456789012:role/role",
        "CreateDate": NOW,
    }
    tags = [{"Key": "cfngen:cluster", "Value": "one"}]
    aws.given["iam:GetRole"] = lambda sent: {
        "Role": {**role, "RoleName": sent["RoleName"], "AssumeRolePolicyDocument": "{}", "Tags": tags}
    }
    aws.given["logs:DescribeLogGroups"] = lambda sent: {
        "logGroups": [{"logGroupName": f"{sent['logGroupNamePrefix']}x"}] if "insights" in str(sent) else []
    }
    resources = (
        resource("vpc-1", "DELETE_FAILED"),
        resource("vol-1", "DELETE_COMPLETE"),
        resource("bucket-1", "DELETE_SKIPPED"),
        resource(OWN, more.pop("own", "CREATE_COMPLETE"), type_name="AWS::IAM::Role"),
        resource("vpc-2", "DELETE_SKIPPED"),
        resource("web", "DELETE_SKIPPED", type_name="AWS::ECR::Repository", name="RepositoryWeb0123abcd"),
    )
    cluster = DeletedCluster(
        moment, aws.account, "one", Inventory("one", resources), resources, stack, role_names=(WEB, OWN), **more
    )
    kinds = ("role of a service account", "log group")
    return [
        each.id for each in find_remaining_resources(cluster) if each.kind.startswith("AWS::") or each.kind in kinds
    ]


LOGS = "/aws/containerinsights/one/x"


@pytest.mark.parametrize(("moment", "stack", "more", "ids"), [
    ("after", STACK, {}, ["vpc-1", "vpc-2", WEB, LOGS]),
    ("after", STACK, {"own": "DELETE_FAILED"}, ["vpc-1", OWN, "vpc-2", WEB, LOGS]),
    ("after", STACK, {"own": "DELETE_SKIPPED"}, ["vpc-1", OWN, "vpc-2", WEB, LOGS]),
    ("after", STACK, {"own": "DELETE_COMPLETE"}, ["vpc-1", "vpc-2", OWN, WEB, LOGS]),
    # Of what is found by its name alone, another stack may have made it.
    ("after", STACK, {"is_name_unique": False}, ["vpc-1", "vpc-2"]),
    ("failed creation", None, {}, ["vpc-1", "vpc-2", WEB]),
    ("before", STACK, {}, [LOGS]),
    ("before", None, {}, ["vpc-1", "vpc-2", WEB, LOGS]),
])  # fmt: skip
def test_what_was_not_deleted_and_what_earlier_stacks_left_is_listed(
    aws: Answers, moment: Moment, stack: StackView | None, more: dict[str, Any], ids: list[str]
) -> None:
    assert remaining(aws, moment, stack, **more) == ids


KEPT = RetainedResource("copy of the certificate authorities", "copy-1", "kept")
TAG = RetainedResource("tags of existing subnets", "subnet-1", "kept")
ALWAYS, AROUND, GONE = ("before", "after", "failed creation"), ("before", "after"), ("after", "failed creation")
LISTED = (
    ("AWS::EC2::VPC", "vpc-1", GONE),
    ("copy of the certificate authorities", "copy-1", GONE),
    ("snapshot", "one of vol-1", ("before",)),
    ("KMS key", "key-1", ("before",)),
    ("VPC", "vpc-9", ("before",)),
    ("snapshot", "snap-1", GONE),
    ("KMS key", "key-1", GONE),
    ("secret", "secret-1", GONE),
    ("bucket of etcd's snapshots", "bucket-1", ALWAYS),
    ("bucket of the issuer's documents", "bucket-2", GONE),
    ("log group", "one-FlowLogGroup-x", ALWAYS),
    ("repository for images", "web", ALWAYS),
    ("volume", "vol-9", AROUND),
    ("snapshot", "snap-9", AROUND),
    ("templates", "s3://mine/one/", AROUND),
    ("log group", LOGS, AROUND),
    ("tags of existing subnets", "subnet-1", AROUND),
    ("VPC", "vpc-9", ("after",)),
)


@pytest.mark.parametrize("moment", ["before", "after", "failed creation"])
def test_each_kind_is_listed_when_it_can_be_known(aws: Answers, moment: Moment) -> None:
    aws.otherwise = None
    aws.given |= {
        "kms:DescribeKey": {"KeyMetadata": KEY},
        "secretsmanager:DescribeSecret": {"DeletedDate": NOW},
        "ec2:DescribeSnapshots": SNAPSHOTS,
        "logs:DescribeLogGroups": lambda sent: {
            "logGroups": [{"logGroupName": LOGS if "insights" in sent["logGroupNamePrefix"] else "one-FlowLogGroup-x"}]
        },
    }
    resources = (
        resource("vpc-1", "DELETE_FAILED"),
        resource("vol-1"),
        resource("key-1", type_name="AWS::KMS::Key"),
        resource("secret-1", type_name="AWS::SecretsManager::Secret"),
        resource("bucket-1", type_name="AWS::S3::Bucket", name="BackupBucket"),
        resource("bucket-2", type_name="AWS::S3::Bucket", name="IssuerBucket"),
        resource("web", "DELETE_SKIPPED", type_name="AWS::ECR::Repository", name="RepositoryWeb0123abcd"),
    )
    stack = StackView("one", arn("one"), StackStatus("CREATE_COMPLETE"), parameters={"VpcId": "vpc-9"})
    cluster = DeletedCluster(
        moment,
        aws.account,
        "one",
        Inventory("one", resources),
        resources,
        None if moment == "failed creation" else stack,
        volumes=(OrphanedResource("volume", "vol-9", "data", "claim shop/data", gigabytes=8),),
        snapshots=(OrphanedResource("snapshot", "snap-9", "copy", gigabytes=8),),
        templates=TemplateObjects("mine", "one/", 2, 1.0),
        subnet_tags=(TAG,),
        authority_copies=(KEPT,),
    )
    listed = [(remains.kind, remains.id) for remains in find_remaining_resources(cluster)]
    assert listed == [(kind, name) for kind, name, moments in LISTED if moment in moments]

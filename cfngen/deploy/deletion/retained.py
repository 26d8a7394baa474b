"""What a deleted cluster leaves in the account, why, what that is billed by, and how to get rid of it.

Prices differ by region and change; the units that AWS bills by do not. Sources: the pricing pages of Amazon EBS, Amazon
S3, AWS KMS (a key that waits for its deletion is not billed), Amazon VPC (public IPv4 addresses, in use or not) and
CloudWatch Logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cfngen.cluster.logical_ids import is_subnet_parameter
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DENIED, error_code
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource
from cfngen.deploy.deletion.scope import Scope
from cfngen.deploy.publishing.template_objects import Objects
from cfngen.deploy.stacks import NESTED, StackResource
from cfngen.text import pluralize

KEPT = frozenset({"DELETE_SKIPPED", "DELETE_FAILED"})
AT_ONCE = 100  # values in one filter; EC2 takes 200
_VOLUME = "AWS::EC2::Volume"


@dataclass(frozen=True)
class Retained:
    """Something that stays when the cluster is gone.

    Attributes:
        kind: what it is.
        id: its id.
        why: why it stays.
        cost: what it is billed by; empty if it costs nothing, or nothing is known.
        command: how to get rid of it; empty where it goes by itself.
    """

    kind: str
    id: str
    why: str
    cost: str = ""
    command: str = ""


def snapshots(account: Account, scope: Scope, *, copy: str = "", created: bool = True) -> tuple[Retained, ...]:
    """Return the snapshots of the volumes that the stacks had, made by CloudFormation or anybody else.

    Args:
        account: where they are.
        scope: the cluster.
        copy: where a copy of the certificate authorities is; empty if this deletion made none.
        created: whether the cluster is known to have been one, so that etcd's data is on its volumes.
    """
    kept = f"{copy} holds a copy of them" if copy else "they went with their secret"
    data = "etcd's data" if created else "etcd's data, or blank if no master came up"
    volumes = sorted(scope.ids(_VOLUME) | _former_volumes(account, scope))
    pages = account.client("ec2").get_paginator("describe_snapshots")
    found = []
    for start in range(0, len(volumes), AT_ONCE):
        filters = [{"Name": "volume-id", "Values": volumes[start : start + AT_ONCE]}]
        for page in pages.paginate(Filters=filters, OwnerIds=["self"]):
            found += [
                Retained(
                    "snapshot",
                    snapshot["SnapshotId"],
                    f"{data}, of the master volume {snapshot['VolumeId']}; a master starts on it only with the "
                    f"cluster's old certificate authorities: {kept}",
                    _per_month(f"snapshot of a volume of {snapshot['VolumeSize']} GiB"),
                    f"aws ec2 delete-snapshot --snapshot-id {snapshot['SnapshotId']} --region {account.region}",
                )
                for snapshot in page["Snapshots"]
            ]
    return tuple(found)


def _former_volumes(account: Account, scope: Scope) -> frozenset[str]:
    """Return the volumes that the stacks once had, as those of masters whose addition was rolled back.

    No list of resources has them any more, only the stack's events, which CloudFormation keeps for 90 days.
    """
    from botocore.exceptions import ClientError

    pages = account.client("cloudformation").get_paginator("describe_stack_events")
    stacks = sorted({resource.stack_id for resource in scope.resources if resource.view.type == _VOLUME})
    try:
        events = [
            stack_event
            for stack in stacks
            for page in pages.paginate(StackName=stack)
            for stack_event in page["StackEvents"]
        ]
    except ClientError as error:
        if error_code(error) not in DENIED:
            raise
        return frozenset()
    volumes = (event.get("PhysicalResourceId", "") for event in events if event.get("ResourceType") == _VOLUME)
    return frozenset(filter(None, volumes))


def keys(account: Account, scope: Scope) -> tuple[Retained, ...]:
    """Return the KMS keys of the stacks that wait for their deletion."""
    return tuple(filter(None, (_key(account, id_) for id_ in sorted(scope.ids("AWS::KMS::Key")))))


def secrets(account: Account, scope: Scope) -> tuple[Retained, ...]:
    """Return the secrets of the stacks that can still be brought back, as whoever deletes one by hand leaves it."""
    return tuple(filter(None, (_secret(account, id_) for id_ in sorted(scope.ids("AWS::SecretsManager::Secret")))))


def left_by_stacks(account: Account, members: Sequence[StackResource]) -> tuple[Retained, ...]:
    """Return the resources that CloudFormation did not delete."""
    return tuple(
        Retained(
            member.view.type,
            member.view.physical_id or member.view.logical_id,
            f"{member.name}: "
            + (member.view.reason or "its DeletionPolicy, or your word, keeps it")
            + (" (CloudFormation failed to delete it)" if member.view.status == "DELETE_FAILED" else ""),
            COSTS.get(member.view.type, ""),
            _command(member, account.region),
        )
        for member in members
        if member.view.status in KEPT and member.view.type != NESTED
    )


def of_leftovers(account: Account, found: Sequence[OrphanedResource], why: str) -> tuple[Retained, ...]:
    """Return things of Kubernetes that stay."""
    return tuple(
        Retained(
            each.kind,
            each.id,
            f"{each.purpose}: {why}" if each.purpose else why,
            _per_month(f"{each.kind} of {each.gigabytes} GiB") if each.gigabytes else LEFTOVER_COSTS.get(each.kind, ""),
            each.command(account.region),
        )
        for each in found
    )


def templates(objects: Objects) -> tuple[Retained, ...]:
    """Return the templates that stay in the bucket."""
    if not objects.versions:
        return ()
    where = f"s3://{objects.bucket}/{objects.prefix}"
    return (
        Retained(
            "templates",
            where,
            f"{pluralize(objects.versions, 'object version')} of this cluster, kept unless --empty-bucket is given",
            "S3 storage, billed per GiB and month; less than a mebibyte"
            if objects.gigabytes < 1 / 1024
            else f"S3 storage, {objects.gigabytes:.2f} GiB, billed per GiB and month",
            f"cfngen delete --empty-bucket   (or, without old versions: aws s3 rm --recursive {where})",
        ),
    )


def log_groups(account: Account, cluster: str) -> tuple[Retained, ...]:
    """Return log groups that Container Insights names after the cluster; others do not say whose they are."""
    from botocore.exceptions import ClientError

    prefix = f"/aws/containerinsights/{cluster}/"
    try:
        answer = account.client("logs").get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
        groups = [log_group for page in answer for log_group in page["logGroups"]]
    except ClientError as error:
        if error_code(error) not in DENIED:
            raise
        return ()
    return tuple(
        Retained(
            "log group",
            group["logGroupName"],
            "made by something in the cluster",
            f"CloudWatch Logs storage, {group.get('storedBytes', 0) / 2**30:.2f} GiB, billed per GiB and month",
            f"aws logs delete-log-group --log-group-name {group['logGroupName']} --region {account.region}",
        )
        for group in groups
    )


def given(scope: Scope, parameters: Sequence[tuple[str, str]]) -> tuple[Retained, ...]:
    """Return what the operator lent to the cluster, and keeps."""
    lent = {
        "VpcId": "VPC",
        "RouteTableId": "route table",
        "InternetGatewayId": "internet gateway",
        "ApiElasticIpAllocationId": "Elastic IP",
        "KeyName": "key pair",
    }
    own = scope.ids()
    found = [
        Retained(
            lent.get(name, "subnet"),
            value,
            "yours: it was there before the cluster",
            COSTS["AWS::EC2::EIP"] if name == "ApiElasticIpAllocationId" else "",
        )
        for name, value in parameters
        if value and value not in own and (name in lent or is_subnet_parameter(name))
    ]
    return tuple(found)


def _key(account: Account, key_id: str) -> Retained | None:
    from botocore.exceptions import ClientError

    try:
        key = account.client("kms").describe_key(KeyId=key_id)["KeyMetadata"]
    except ClientError as error:
        if error_code(error) in DENIED | {"NotFoundException"}:
            return None
        raise
    if key["KeyState"] != "PendingDeletion":
        return None
    until = key["DeletionDate"].date().isoformat() if key.get("DeletionDate") else "a day that KMS does not say"
    cancel = f"aws kms cancel-key-deletion --key-id {key_id} --region {account.region}"
    return Retained(
        "KMS key",
        key_id,
        f"deleted on {until}; until then `{cancel}` keeps it",
        "not billed while it waits",
    )


def _secret(account: Account, arn: str) -> Retained | None:
    from botocore.exceptions import ClientError

    try:
        found = account.client("secretsmanager").describe_secret(SecretId=arn)
    except ClientError as error:
        if error_code(error) in DENIED | {"ResourceNotFoundException"}:
            return None
        raise
    if not found.get("DeletedDate"):
        return None
    restore = f"aws secretsmanager restore-secret --secret-id {arn} --region {account.region}"
    return Retained(
        "secret",
        arn,
        f"deleted when its recovery window ends; until then `{restore}` brings it back",
        "not billed while it waits",
        f"aws secretsmanager delete-secret --force-delete-without-recovery --secret-id {arn} --region {account.region}",
    )


def _per_month(what: str) -> str:
    return (
        f"EBS {what}, billed per GiB of stored data and month"
        if "snapshot" in what
        else f"EBS {what}, billed per GiB and month"
    )


def _command(each: StackResource, region: str) -> str:
    call = COMMANDS.get(each.view.type, "")
    return f"aws {call} {each.view.physical_id} --region {region}" if call and each.view.physical_id else ""


COSTS = {
    "AWS::EC2::EIP": "public IPv4 address, billed per hour whether it is used or not",
    "AWS::EC2::Volume": "EBS volume, billed per GiB and month",
    "AWS::EC2::NatGateway": "NAT gateway, billed per hour",
    "AWS::EC2::VPCEndpoint": "interface endpoint, billed per hour and zone",
    "AWS::ElasticLoadBalancingV2::LoadBalancer": "load balancer, billed per hour",
    "AWS::KMS::Key": "KMS key, billed per month",
    "AWS::SecretsManager::Secret": "secret, billed per month",
    "AWS::S3::Bucket": "S3 storage, billed per GiB and month",
}
LEFTOVER_COSTS = {"load balancer": "load balancer, billed per hour"}
COMMANDS = {
    "AWS::AutoScaling::AutoScalingGroup": "autoscaling delete-auto-scaling-group --force-delete "
    "--auto-scaling-group-name",
    "AWS::EC2::DHCPOptions": "ec2 delete-dhcp-options --dhcp-options-id",
    "AWS::EC2::InternetGateway": "ec2 delete-internet-gateway --internet-gateway-id",
    "AWS::EC2::KeyPair": "ec2 delete-key-pair --key-name",
    "AWS::EC2::LaunchTemplate": "ec2 delete-launch-template --launch-template-id",
    "AWS::EC2::NatGateway": "ec2 delete-nat-gateway --nat-gateway-id",
    "AWS::EC2::NetworkInterface": "ec2 delete-network-interface --network-interface-id",
    "AWS::EC2::RouteTable": "ec2 delete-route-table --route-table-id",
    "AWS::EC2::SecurityGroup": "ec2 delete-security-group --group-id",
    "AWS::EC2::Subnet": "ec2 delete-subnet --subnet-id",
    "AWS::EC2::VPC": "ec2 delete-vpc --vpc-id",
    "AWS::EC2::VPCEndpoint": "ec2 delete-vpc-endpoints --vpc-endpoint-ids",
    "AWS::EC2::Volume": "ec2 delete-volume --volume-id",
    "AWS::ElasticLoadBalancingV2::LoadBalancer": "elbv2 delete-load-balancer --load-balancer-arn",
    "AWS::ElasticLoadBalancingV2::TargetGroup": "elbv2 delete-target-group --target-group-arn",
    "AWS::IAM::InstanceProfile": "iam delete-instance-profile --instance-profile-name",
    "AWS::IAM::Role": "iam delete-role --role-name",
    "AWS::KMS::Key": "kms schedule-key-deletion --key-id",
    "AWS::SecretsManager::Secret": "secretsmanager delete-secret --secret-id",
}

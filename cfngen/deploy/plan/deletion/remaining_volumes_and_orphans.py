"""Finds undeleted resources of the stacks, snapshots of volumes, and orphans: why they remain, costs and commands.

Only billing units are named, because prices differ by region and change. Sources: the pricing pages of Amazon EBS,
Amazon S3, AWS KMS (a key that is pending deletion is not billed), Amazon VPC (public IPv4 addresses, in use or not) and
CloudWatch Logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from cfngen.cluster.naming.identity_ids import RegistryId
from cfngen.cluster.naming.logical_ids import EndpointId
from cfngen.cluster.naming.network_ids import ZonalId, is_subnet_parameter
from cfngen.cluster.network import endpoints
from cfngen.cluster.network.existing_parts import GROUP_ROLES, group_parameter
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.addresses import read_allocation_ids
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.roles import removal_command
from cfngen.deploy.aws.stacks import NESTED_STACK, StackResource, read_template
from cfngen.deploy.aws.templates import TemplateObjects
from cfngen.deploy.aws.volumes import find_stack_volumes, read_snapshots
from cfngen.hints import CommandText, Hint, suggest
from cfngen.text import pluralize

UNDELETED_STATUSES = frozenset({"DELETE_SKIPPED", "DELETE_FAILED"})
_ELASTIC_IP_TYPE = "AWS::EC2::EIP"
REPOSITORY_TYPE = "AWS::ECR::Repository"
_ROLE_TYPE = "AWS::IAM::Role"
# Elastic IPs, subnets and security groups are in use as long as these exist, so their commands come first.
_DELETED_FIRST = ("AWS::EC2::NatGateway", "AWS::EC2::VPCEndpoint")


@dataclass(frozen=True)
class RetainedResource:
    """A resource that remains after the cluster has been deleted.

    Attributes:
        kind: its type in words, e.g. `KMS key`.
        id: its id.
        why: why it remains.
        cost: how it is billed; empty if it is free, or the cost is not known.
        command: command that deletes it; empty if AWS deletes it by itself.
    """

    kind: str
    id: str
    why: str
    cost: str = ""
    command: Hint = ""


def find_volume_snapshots(
    account: Account, inventory: Inventory, *, authorities_note: str, has_run: bool = True
) -> tuple[RetainedResource, ...]:
    """Return the snapshots of the stacks' volumes, whether CloudFormation or someone else created them.

    Args:
        authorities_note: whether there is a copy of the certificate authorities, as a clause.
        has_run: whether the cluster is known to have run, so that its volumes contain etcd's data.
    """
    content = "etcd's data" if has_run else "etcd's data, or blank if no master came up"
    return tuple(
        RetainedResource(
            kind="snapshot",
            id=snapshot.id,
            why=f"{content}, of the master volume {snapshot.volume}; a master starts on it only with the "
            f"cluster's old certificate authorities: {authorities_note}",
            cost=_ebs_cost(f"snapshot of a volume of {snapshot.volume_size} GiB"),
            command=f"aws ec2 delete-snapshot --snapshot-id {snapshot.id} --region {account.region}",
        )
        for snapshot in read_snapshots(account, find_stack_volumes(account, inventory))
    )


def find_undeleted_resources(account: Account, resources: Sequence[StackResource]) -> tuple[RetainedResource, ...]:
    """Return the resources that CloudFormation did not delete, except nested stacks and roles that are gone by now."""
    undeleted = [
        resource
        for resource in resources
        if resource.view.status in UNDELETED_STATUSES and resource.view.type != NESTED_STACK
    ]
    allocation_ids = read_allocation_ids(
        account, {resource.view.physical_id for resource in undeleted if resource.view.type == _ELASTIC_IP_TYPE}
    )
    retained = []
    for resource in sorted(undeleted, key=lambda resource: resource.view.type not in _DELETED_FIRST):
        command = _delete_command(resource, account.region, allocation_ids)
        if resource.view.type == _ROLE_TYPE and resource.view.physical_id:
            command = removal_command(account, resource.view.physical_id)
            if not command:
                continue  # deleted since
        retained.append(
            RetainedResource(
                kind=resource.view.type,
                id=resource.view.physical_id or resource.view.logical_id,
                why=_why_undeleted(resource),
                cost=_cost(resource),
                command=command,
            )
        )
    return tuple(retained)


def find_kept_registry(account: Account, resources: Sequence[StackResource]) -> tuple[RetainedResource, ...]:
    """Return the repositories and OIDC providers that a deletion of the stacks has left, or will leave.

    Of a template that is not JSON nothing is known, and nothing is said to stay.
    """
    find_template = cache(partial(read_template, account))
    kept = []
    for resource in resources:
        view = resource.view
        if not resource.exists or not RegistryId.parse(view.logical_id):
            continue
        if view.status != "DELETE_SKIPPED":
            definition = find_template(resource.stack_id).get("Resources", {}).get(view.logical_id, {})
            if definition.get("DeletionPolicy", "Delete") == "Delete":
                continue
        is_repository = view.type == REPOSITORY_TYPE
        kept.append(
            RetainedResource(
                kind="repository for images" if is_repository else "OIDC provider",
                id=view.physical_id,
                why="its images stay; a new cluster uses it with `existing: true` in its cluster file"
                if is_repository
                else "an account has one for a URL, which others may use by now",
                cost=_cost(resource),
                command=_delete_command(resource, account.region, {}),
            )
        )
    return tuple(kept)


def _cost(resource: StackResource) -> str:
    """Return how a resource of the stacks is billed; empty if it is free."""
    if resource.view.logical_id == str(EndpointId.of(endpoints.S3)):
        return ""  # "There is no additional charge for using gateway endpoints" (AWS PrivateLink Guide)
    return COST_BY_RESOURCE_TYPE.get(resource.view.type, "")


def _why_undeleted(resource: StackResource) -> str:
    reason = resource.view.reason or "retained by its DeletionPolicy or at your request"
    failure = " (CloudFormation failed to delete it)" if resource.view.status == "DELETE_FAILED" else ""
    return f"{resource.name}: {reason}{failure}"


def describe_remaining_orphans(
    account: Account, orphans: Sequence[OrphanedResource], reason: str
) -> tuple[RetainedResource, ...]:
    """Return the resources that Kubernetes created and that remain, with the given reason."""
    return tuple(
        RetainedResource(
            kind=orphan.kind,
            id=orphan.id,
            why=f"{orphan.purpose}: {reason}" if orphan.purpose else reason,
            cost=_orphan_cost(orphan),
            command=orphan.command(account.region),
        )
        for orphan in orphans
    )


def _orphan_cost(orphan: OrphanedResource) -> str:
    """Return how a resource that Kubernetes created is billed; empty if it is free."""
    is_volume_or_snapshot = orphan.gigabytes > 0
    if is_volume_or_snapshot:
        return _ebs_cost(f"{orphan.kind} of {orphan.gigabytes} GiB")
    return COST_BY_ORPHAN_KIND.get(orphan.kind, "")


def describe_remaining_templates(objects: TemplateObjects) -> tuple[RetainedResource, ...]:
    """Return the templates that remain in the bucket."""
    if not objects.versions:
        return ()
    uri = f"s3://{objects.bucket}/{objects.prefix}"
    is_less_than_mebibyte = objects.gigabytes < 1 / 1024
    if is_less_than_mebibyte:
        cost = "S3 storage, billed per GiB and month; less than a mebibyte"
    else:
        cost = f"S3 storage, {objects.gigabytes:.2f} GiB, billed per GiB and month"
    return (
        RetainedResource(
            kind="templates",
            id=uri,
            why=f"{pluralize(objects.versions, 'object version')} of this cluster, kept unless --empty-bucket is given",
            cost=cost,
            command=CommandText(
                suggest("delete", "--empty-bucket"),
                f"   (or, without old versions: aws s3 rm --recursive {uri})",
                quote="",
            ),
        ),
    )


def list_existing_resources(
    inventory: Inventory, parameters: Sequence[tuple[str, str]]
) -> tuple[RetainedResource, ...]:
    """Return the resources that the cluster used but did not create; its deletion does not delete them.

    Args:
        parameters: names and values of the root's parameters; the values are the ids of these resources.
    """
    cluster_ids = inventory.ids()
    retained = [
        RetainedResource(
            kind=kind, id=value, why="yours: it existed before the cluster", cost=_COST_BY_EXISTING_KIND.get(kind, "")
        )
        for name, value in parameters
        if value and value not in cluster_ids and (kind := _existing_kind(name))
    ]
    # Several zones may use one existing route table or NAT gateway.
    return tuple(dict.fromkeys(retained))


def _existing_kind(parameter: str) -> str:
    """Return what kind of existing resource a parameter of the root names; empty for any other parameter."""
    if is_subnet_parameter(parameter):
        return "subnet"
    zonal = ZonalId.parse(parameter)
    if zonal and zonal.is_parameter:
        return {"NatGateway": "NAT gateway", "RouteTable": "route table"}.get(zonal.kind, "")
    return _EXISTING_KIND_BY_PARAMETER.get(parameter, "")


def _ebs_cost(description: str) -> str:
    """Return how EBS bills a volume or snapshot, from its description such as `snapshot of a volume of 8 GiB`."""
    # Snapshots are incremental, so they are billed by their stored data, not by the size of the volume.
    unit = "GiB of stored data" if "snapshot" in description else "GiB"
    return f"EBS {description}, billed per {unit} and month"


def _delete_command(resource: StackResource, region: str, allocation_ids: Mapping[str, str]) -> str:
    """Return the AWS CLI command that deletes a resource; empty if cfngen knows none."""
    subcommand = DELETE_COMMAND_BY_RESOURCE_TYPE.get(resource.view.type, "")
    resource_id = resource.view.physical_id
    if resource.view.type == _ELASTIC_IP_TYPE:
        resource_id = allocation_ids.get(resource_id, "")
    if not subcommand or not resource_id:
        return ""
    return f"aws {subcommand} {resource_id} --region {region}"


COST_BY_RESOURCE_TYPE = {
    "AWS::CloudFront::Distribution": "CloudFront distribution, billed per request; disable it in the console, then "
    "delete it",
    "AWS::EC2::CapacityReservation": "reserved capacity, billed per hour as an instance while none runs in it",
    "AWS::EC2::EIP": "public IPv4 address, billed per hour whether it is used or not",
    "AWS::EC2::Volume": "EBS volume, billed per GiB and month",
    "AWS::EC2::NatGateway": "NAT gateway, billed per hour",
    REPOSITORY_TYPE: "ECR storage, billed per GB and month",
    "AWS::EC2::VPCEndpoint": "interface endpoint, billed per hour and zone",
    "AWS::ElasticLoadBalancingV2::LoadBalancer": "load balancer, billed per hour",
    "AWS::KMS::Key": "KMS key, billed per month",
    "AWS::Logs::LogGroup": "CloudWatch Logs storage, billed per GiB and month until the records expire",
    "AWS::Route53::HostedZone": "hosted zone, billed per month",
    "AWS::SecretsManager::Secret": "secret, billed per month",
    "AWS::S3::Bucket": "S3 storage, billed per GiB and month",
}
_EXISTING_KIND_BY_PARAMETER = {
    "VpcId": "VPC",
    "RouteTableId": "route table",
    "InternetGatewayId": "internet gateway",
    "ApiElasticIpAllocationId": "Elastic IP",
    "BastionElasticIpAllocationId": "Elastic IP",
    "KeyName": "key pair",
    **{group_parameter(role): "security group" for role in GROUP_ROLES},
}
_COST_BY_EXISTING_KIND = {
    "Elastic IP": COST_BY_RESOURCE_TYPE["AWS::EC2::EIP"],
    "NAT gateway": COST_BY_RESOURCE_TYPE["AWS::EC2::NatGateway"],
}
COST_BY_ORPHAN_KIND = {"load balancer": "load balancer, billed per hour"}
DELETE_COMMAND_BY_RESOURCE_TYPE = {
    "AWS::AutoScaling::AutoScalingGroup": "autoscaling delete-auto-scaling-group --force-delete "
    "--auto-scaling-group-name",
    "AWS::EC2::CapacityReservation": "ec2 cancel-capacity-reservation --capacity-reservation-id",
    "AWS::EC2::FlowLog": "ec2 delete-flow-logs --flow-log-ids",
    "AWS::EC2::DHCPOptions": "ec2 delete-dhcp-options --dhcp-options-id",
    _ELASTIC_IP_TYPE: "ec2 release-address --allocation-id",
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
    REPOSITORY_TYPE: "ecr delete-repository --force --repository-name",
    "AWS::ElasticLoadBalancingV2::LoadBalancer": "elbv2 delete-load-balancer --load-balancer-arn",
    "AWS::ElasticLoadBalancingV2::TargetGroup": "elbv2 delete-target-group --target-group-arn",
    "AWS::IAM::InstanceProfile": "iam delete-instance-profile --instance-profile-name",
    "AWS::IAM::ManagedPolicy": "iam delete-policy --policy-arn",
    "AWS::IAM::OIDCProvider": "iam delete-open-id-connect-provider --open-id-connect-provider-arn",
    "AWS::KMS::Key": "kms schedule-key-deletion --key-id",
    "AWS::Logs::LogGroup": "logs delete-log-group --log-group-name",
    "AWS::Route53::HostedZone": "route53 delete-hosted-zone --id",
    "AWS::SecretsManager::Secret": "secretsmanager delete-secret --secret-id",
}

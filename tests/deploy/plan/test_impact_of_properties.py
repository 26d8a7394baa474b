"""Of which properties a plan says what their change means: of each resource those, and of no other."""

from __future__ import annotations

import pytest
from test_impact import (
    ASG,
    ASSOCIATION,
    BALANCER,
    BUCKET,
    EC2,
    ENI,
    GROUP,
    KMS,
    NODES_TEMPLATE,
    ROLE,
    ROUTE,
    RULE,
    SECURITY_GROUP,
    TARGETS,
    TEMPLATE,
    VOLUME,
    WILL,
    meaning,
    touched,
)
from test_impact_of_pod_roles import GITHUB, IMAGES, PROVIDER, REPOSITORY, WEB

from cfngen.deploy.plan.plan import Replacement

NO = Replacement.NO
OF_TEMPLATE = (
    "BlockDeviceMappings CapacityReservationSpecification IamInstanceProfile ImageId InstanceMarketOptions "
    "InstanceType KeyName MetadataOptions NetworkInterfaces TagSpecifications UserData"
)
TOLD = [
    (GROUP, ASG, NO,
     ("AvailabilityZones CapacityRebalance CapacityReservationSpecification DesiredCapacity LaunchTemplate "
     "LifecycleHookSpecificationList MaxInstanceLifetime MaxSize MinSize MixedInstancesPolicy VPCZoneIdentifier")),
    (NODES_TEMPLATE, TEMPLATE, NO, " ".join(f"LaunchTemplateData/{name}" for name in OF_TEMPLATE.split())),
    ("MasterAVolume", VOLUME, NO,
     "AvailabilityZone Encrypted Iops KmsKeyId OutpostArn SnapshotId Throughput VolumeType"),
    ("MasterANetworkInterface", ENI, NO, "GroupSet"),
    ("MasterANetworkInterface", ENI, WILL, "PrivateIpAddress"),
    ("MasterAElasticIpAssociation", ASSOCIATION, WILL, "AllocationId"),
    ("MasterInstanceProfile", "AWS::IAM::InstanceProfile", NO, "Roles"),
    *((name, ROLE, NO, "AssumeRolePolicyDocument ManagedPolicyArns PermissionsBoundary Policies")
      for name in ("MasterRole", "NodeRole", WEB)),
    ("PushWebRole", ROLE, NO, "AssumeRolePolicyDocument PermissionsBoundary Policies"),
    ("OidcProvider", PROVIDER, NO, "ClientIdList"),
    (GITHUB, PROVIDER, NO, "ClientIdList"),
    (IMAGES, REPOSITORY, NO, "EmptyOnDelete LifecyclePolicy RepositoryPolicyText"),
    ("SecretsKey", KMS, NO, "KeyPolicy"),
    ("EtcdBackupBucket", BUCKET, NO, "LifecycleConfiguration ObjectLockEnabled"),
    ("IssuerBucket", BUCKET, NO, ""),
    ("ApiLoadBalancer", BALANCER, NO, "SecurityGroups Subnets"),
    ("InternalApiLoadBalancer", BALANCER, NO, "SecurityGroups Subnets"),
    ("ApiTargetGroup", TARGETS, NO, "Targets"),
    ("ApiPublicRecord", "AWS::Route53::RecordSet", NO, "AliasTarget Name ResourceRecords"),
    ("ApiPrivateRecord", "AWS::Route53::RecordSet", NO, "AliasTarget Name ResourceRecords"),
    ("MasterSecurityGroup", SECURITY_GROUP, NO, "SecurityGroupEgress SecurityGroupIngress"),
    ("EndpointsSecurityGroup", SECURITY_GROUP, NO, "SecurityGroupIngress"),
    ("MasterKubeletFromMasters", RULE, NO, "FromPort IpProtocol ToPort"),
    ("MasterApiFrom10x0x0x0x8", RULE, NO, "CidrIp SourcePrefixListId SourceSecurityGroupId"),
    ("RouteTo10x64x0x0x16InPrivateRouteTableA", ROUTE, NO,
     "GatewayId NetworkInterfaceId TransitGatewayId VpcPeeringConnectionId"),
    ("NatRouteA", ROUTE, NO, "NatGatewayId"),
    ("SubnetARouteTableAssociation", f"{EC2}SubnetRouteTableAssociation", NO, "RouteTableId"),
    ("EndpointEc2", f"{EC2}VPCEndpoint", NO,
     "PolicyDocument PrivateDnsEnabled RouteTableIds SecurityGroupIds SubnetIds"),
    ("FlowLog", f"{EC2}FlowLog", NO, ""),
    ("FlowLog", f"{EC2}FlowLog", WILL, "LogDestination LogDestinationType LogGroupName ResourceId TrafficType"),
    ("FlowLogGroup", "AWS::Logs::LogGroup", NO, "RetentionInDays"),
    ("BastionAutoScalingGroup", ASG, NO, "AvailabilityZones LaunchTemplate"),
    ("BastionElasticIpAssociation", ASSOCIATION, WILL, "AllocationId"),
    ("BastionSecurityGroup", SECURITY_GROUP, NO, "SecurityGroupEgress"),
]  # fmt: skip
NAMES = {name for *_, told in TOLD for name in told.split()}


@pytest.mark.parametrize(("logical_id", "type_", "replacement", "told"), TOLD)
def test_what_is_said_of_a_change_depends_on_these_properties(
    logical_id: str, type_: str, replacement: Replacement, told: str
) -> None:
    def said(name: str) -> str:
        impact = meaning(logical_id, type_, touched(name), replacement=replacement)
        return impact.text if impact else ""

    any_other = said("LaunchTemplateData/Other" if type_ == TEMPLATE else "Other")
    assert {name for name in NAMES if said(name) != any_other} == set(told.split())

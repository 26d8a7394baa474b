"""The resource types that the emulator supports: those that the generated templates use.

Each handler lists the properties that it supports; a template with another property is refused instead of being created
without it. Nested stacks have no handler: `creation` and `updating` handle them.
"""

from __future__ import annotations

from cfngen.sandbox.cloudformation.handlers import (
    distributions,
    dns,
    flow_logs,
    identity,
    instances,
    load_balancing,
    networks,
    scaling_groups,
    security_groups,
    storage,
)
from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall, client

__all__ = ["HANDLERS", "CreatedResource", "Handler", "HandlerCall", "client"]

HANDLERS: dict[str, Handler] = {
    "AWS::CloudFormation::WaitCondition": scaling_groups.WaitCondition(),
    "AWS::CloudFormation::WaitConditionHandle": scaling_groups.WaitConditionHandle(),
    "AWS::AutoScaling::AutoScalingGroup": scaling_groups.AutoScalingGroup(),
    "AWS::CloudFront::Distribution": distributions.Distribution(),
    "AWS::CloudFront::OriginAccessControl": distributions.OriginAccessControl(),
    "AWS::EC2::CapacityReservation": instances.CapacityReservation(),
    "AWS::EC2::DHCPOptions": networks.DhcpOptions(),
    "AWS::EC2::EIP": instances.ElasticIp(),
    "AWS::EC2::EIPAssociation": instances.ELASTIC_IP_ASSOCIATION,
    "AWS::EC2::FlowLog": flow_logs.FlowLog(),
    "AWS::EC2::InternetGateway": networks.INTERNET_GATEWAY,
    "AWS::EC2::KeyPair": instances.KeyPair(),
    "AWS::EC2::LaunchTemplate": instances.LaunchTemplate(),
    "AWS::EC2::NatGateway": networks.NatGateway(),
    "AWS::EC2::NetworkInterface": instances.NetworkInterface(),
    "AWS::EC2::Route": networks.Route(),
    "AWS::EC2::RouteTable": networks.ROUTE_TABLE,
    "AWS::EC2::SecurityGroup": security_groups.SecurityGroup(),
    "AWS::EC2::SecurityGroupIngress": security_groups.SecurityGroupIngress(),
    "AWS::EC2::Subnet": networks.Subnet(),
    "AWS::EC2::SubnetRouteTableAssociation": networks.SUBNET_ROUTE_TABLE_ASSOCIATION,
    "AWS::EC2::VPC": networks.Vpc(),
    "AWS::EC2::VPCCidrBlock": networks.VPC_CIDR_BLOCK,
    "AWS::EC2::VPCDHCPOptionsAssociation": networks.DhcpOptionsAssociation(),
    "AWS::EC2::VPCEndpoint": networks.VpcEndpoint(),
    "AWS::EC2::VPCGatewayAttachment": networks.VpcGatewayAttachment(),
    "AWS::EC2::Volume": instances.Volume(),
    "AWS::ECR::Repository": storage.Repository(),
    "AWS::ElasticLoadBalancingV2::Listener": load_balancing.Listener(),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": load_balancing.LoadBalancer(),
    "AWS::ElasticLoadBalancingV2::TargetGroup": load_balancing.TargetGroup(),
    "AWS::IAM::InstanceProfile": identity.InstanceProfile(),
    "AWS::IAM::ManagedPolicy": identity.ManagedPolicy(),
    "AWS::IAM::OIDCProvider": identity.OidcProvider(),
    "AWS::IAM::Role": identity.Role(),
    "AWS::KMS::Key": identity.Key(),
    "AWS::Logs::LogGroup": flow_logs.LogGroup(),
    "AWS::Route53::HostedZone": dns.HostedZone(),
    "AWS::Route53::RecordSet": dns.RecordSet(),
    "AWS::S3::Bucket": storage.Bucket(),
    "AWS::S3::BucketPolicy": storage.BucketPolicy(),
    "AWS::SecretsManager::Secret": identity.Secret(),
}

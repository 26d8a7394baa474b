"""Every text of every golden case: in the table of text limits and within them, or known to be no text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from golden_cases import CASES, load_case

from cfngen.templates import generate
from cfngen.text_limits import of_property

# Languages of their own, which the table of AWS's actions and the lint rules judge.
POLICIES = {"PolicyDocument", "AssumeRolePolicyDocument", "KeyPolicy", "RepositoryPolicyText"}
# Words that a service knows beforehand, numbers, addresses and ids: what is wrong with them is no matter of characters.
NO_TEXTS = {
    "AWS::AutoScaling::AutoScalingGroup": {
        "LifecycleHookSpecificationList/*/DefaultResult",
        "LifecycleHookSpecificationList/*/LifecycleTransition",
        "CapacityReservationSpecification/CapacityReservationPreference",
        "CapacityReservationSpecification/CapacityReservationTarget/CapacityReservationIds/*",
        "CapacityReservationSpecification/CapacityReservationTarget/CapacityReservationResourceGroupArns/*",
        "DesiredCapacity",
        "MaxSize",
        "MinSize",
        "MixedInstancesPolicy/InstancesDistribution/OnDemandAllocationStrategy",
        "MixedInstancesPolicy/InstancesDistribution/SpotAllocationStrategy",
        "MixedInstancesPolicy/InstancesDistribution/SpotMaxPrice",
        "NotificationConfigurations/*/NotificationTypes/*",
        "NotificationConfigurations/*/TopicARN/*",
        "TargetGroupARNs/*",
        "MixedInstancesPolicy/LaunchTemplate/Overrides/*/InstanceType",
        *(
            f"MixedInstancesPolicy/LaunchTemplate/Overrides/*/InstanceRequirements/{key}"
            for key in (
                "AcceleratorManufacturers/*",
                "AcceleratorNames/*",
                "AcceleratorTypes/*",
                "AllowedInstanceTypes/*",
                "BareMetal",
                "BurstablePerformance",
                "CpuManufacturers/*",
                "ExcludedInstanceTypes/*",
                "InstanceGenerations/*",
                "LocalStorage",
            )
        ),
    },
    "AWS::CloudFormation::Stack": {"TemplateURL"},
    "AWS::CloudFront::Distribution": {
        "DistributionConfig/DefaultCacheBehavior/AllowedMethods/*",
        "DistributionConfig/DefaultCacheBehavior/CachePolicyId",
        "DistributionConfig/DefaultCacheBehavior/CachedMethods/*",
        "DistributionConfig/DefaultCacheBehavior/TargetOriginId",
        "DistributionConfig/DefaultCacheBehavior/ViewerProtocolPolicy",
        "DistributionConfig/HttpVersion",
        "DistributionConfig/Origins/*/Id",
        "DistributionConfig/Origins/*/S3OriginConfig/OriginAccessIdentity",
    },
    "AWS::CloudFront::OriginAccessControl": {
        "OriginAccessControlConfig/OriginAccessControlOriginType",
        "OriginAccessControlConfig/SigningBehavior",
        "OriginAccessControlConfig/SigningProtocol",
    },
    "AWS::EC2::CapacityReservation": {
        "InstanceMatchCriteria",
        "InstancePlatform",
        "TagSpecifications/*/ResourceType",
    },
    "AWS::EC2::DHCPOptions": {"DomainNameServers/*"},
    "AWS::EC2::EIP": {"Domain"},
    "AWS::EC2::KeyPair": {"PublicKeyMaterial"},
    "AWS::EC2::LaunchTemplate": {
        "LaunchTemplateData/BlockDeviceMappings/*/DeviceName",
        "LaunchTemplateData/BlockDeviceMappings/*/Ebs/KmsKeyId",
        "LaunchTemplateData/BlockDeviceMappings/*/Ebs/VolumeType",
        "LaunchTemplateData/IamInstanceProfile/Arn",
        "LaunchTemplateData/InstanceMarketOptions/MarketType",
        "LaunchTemplateData/InstanceMarketOptions/SpotOptions/SpotInstanceType",
        "LaunchTemplateData/MetadataOptions/HttpEndpoint",
        "LaunchTemplateData/MetadataOptions/HttpTokens",
        "LaunchTemplateData/MetadataOptions/InstanceMetadataTags",
        "LaunchTemplateData/NetworkInterfaces/*/Groups/*",
        "LaunchTemplateData/TagSpecifications/*/ResourceType",
        "LaunchTemplateData/UserData",
        "TagSpecifications/*/ResourceType",
    },
    "AWS::EC2::FlowLog": {"LogDestination", "LogDestinationType", "ResourceType", "TrafficType"},
    "AWS::EC2::NetworkInterface": {"GroupSet/*"},
    "AWS::EC2::Route": {
        "DestinationCidrBlock",
        "DestinationPrefixListId",
        "GatewayId",
        "NetworkInterfaceId",
        "TransitGatewayId",
        "VpcPeeringConnectionId",
    },
    "AWS::EC2::SecurityGroup": {
        "SecurityGroupEgress/*/CidrIp",
        "SecurityGroupEgress/*/IpProtocol",
        "SecurityGroupIngress/*/IpProtocol",
    },
    "AWS::EC2::SecurityGroupIngress": {"CidrIp", "IpProtocol", "SourcePrefixListId"},
    "AWS::EC2::VPCCidrBlock": {"CidrBlock"},
    "AWS::EC2::VPCDHCPOptionsAssociation": {"DhcpOptionsId"},
    "AWS::EC2::VPCEndpoint": {"VpcEndpointType"},
    "AWS::EC2::Volume": {"KmsKeyId", "VolumeType"},
    "AWS::ECR::Repository": {
        "EncryptionConfiguration/EncryptionType",
        "ImageTagMutability",
        "LifecyclePolicy/LifecyclePolicyText",
    },
    "AWS::ElasticLoadBalancingV2::Listener": {"DefaultActions/*/Type", "Protocol"},
    "AWS::ElasticLoadBalancingV2::LoadBalancer": {
        "IpAddressType",
        "LoadBalancerAttributes/*/Key",
        "LoadBalancerAttributes/*/Value",
        "Scheme",
        "Type",
    },
    "AWS::ElasticLoadBalancingV2::TargetGroup": {
        "HealthCheckProtocol",
        "Protocol",
        "TargetGroupAttributes/*/Key",
        "TargetGroupAttributes/*/Value",
        "TargetType",
    },
    "AWS::IAM::InstanceProfile": {"Roles/*"},
    "AWS::IAM::OIDCProvider": {"ClientIdList/*"},
    "AWS::IAM::Role": {"ManagedPolicyArns/*", "PermissionsBoundary"},
    "AWS::Route53::RecordSet": {"HostedZoneId", "TTL", "Type"},
    "AWS::S3::Bucket": {
        "BucketEncryption/ServerSideEncryptionConfiguration/*/ServerSideEncryptionByDefault/KMSMasterKeyID",
        "BucketEncryption/ServerSideEncryptionConfiguration/*/ServerSideEncryptionByDefault/SSEAlgorithm",
        "LoggingConfiguration/LogFilePrefix",
        "LifecycleConfiguration/Rules/*/Status",
        "OwnershipControls/Rules/*/ObjectOwnership",
        "VersioningConfiguration/Status",
    },
    "AWS::SecretsManager::Secret": {"KmsKeyId"},
}


def texts(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str | None]]:
    """Every text below a value with its path; None is one that an expression makes of others."""
    function = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else ""
    if function in ("Fn::Sub", "Fn::Join"):
        yield path, None
    elif isinstance(value, dict) and function != "Ref" and not function.startswith("Fn::"):
        for key, item in value.items():
            if key not in POLICIES:
                yield from texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts(item, (*path, index))
    elif isinstance(value, str):
        yield path, value


@cache
def texts_of_resources() -> tuple[tuple[str, str, tuple[str | int, ...], str | None], ...]:
    """Every text in the properties of every resource: template, resource type, path, text."""
    resources = [
        (f"{case}/{document.name}", resource)
        for case in CASES
        for document in generate(load_case(case).cluster)
        for resource in document.body["Resources"].values()
    ]
    return tuple(
        (template, resource["Type"], path, text)
        for template, resource in resources
        for path, text in texts(resource.get("Properties", {}))
    )


def test_a_service_takes_every_text() -> None:
    limited = [
        (where, path, text, of_property(kind, path))
        for where, kind, path, text in texts_of_resources()
        if text is not None
    ]
    refused = {(where, path, fault) for where, path, text, limit in limited if limit and (fault := limit.fault(text))}
    assert not refused
    assert sum(bool(limit) for *_, limit in limited) > 1000


def test_a_new_text_has_its_limit_in_the_table() -> None:
    """Whoever adds a property decides: a row of the table, with its source, or an entry above."""
    without_limit = {
        (kind, "/".join("*" if isinstance(part, int) else part for part in path))
        for _, kind, path, _ in texts_of_resources()
        if not of_property(kind, path)
    }
    assert not {(kind, path) for kind, path in without_limit if path not in NO_TEXTS.get(kind, ())}


# What CloudFormation creates under a name of the template's, where a second one of the name is refused; where it is
# looked up before a creation, or why it is not.
FIXED_NAMES = {
    ("AWS::CloudFront::OriginAccessControl", "OriginAccessControlConfig/Name"): "services.find_access_control_problems",
    ("AWS::S3::Bucket", "LoggingConfiguration/DestinationBucketName"): "names an existing one, which a plan looks for",
    ("AWS::EC2::KeyPair", "KeyName"): "has a digest of the key: only what the cluster left itself has the name",
    ("AWS::ECR::Repository", "RepositoryName"): "registry.find_repository_problems",
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "Name"): "services.find_load_balancer_problems",
    ("AWS::IAM::OIDCProvider", "Url"): "roles.find_pod_role_problems, registry.find_push_problems",
    ("AWS::IAM::Role", "RoleName"): "roles.find_pod_role_problems",
    ("AWS::Route53::HostedZone", "Name"): "services.find_private_zone_problems; several public ones may have one name",
    ("AWS::Route53::RecordSet", "Name"): "services.find_record_problems",
    # Names of nothing that is created.
    ("AWS::EC2::DHCPOptions", "DomainName"): "",
    ("AWS::EC2::VPCEndpoint", "ServiceName"): "",
}


def test_what_a_template_names_is_looked_up_before_it_is_created() -> None:
    """Names that CloudFormation makes are unique; one of ours may be another's, which only a creation would show."""
    names = {
        (kind, "/".join(map(str, path)))
        for _, kind, path, _ in texts_of_resources()
        if str(path[-1]).endswith(("Name", "Url")) and not any(isinstance(part, int) for part in path)
    }
    assert names == set(FIXED_NAMES)

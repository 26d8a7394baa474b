"""The parameters that the emulator models of a call, where cfngen and its templates never send the others.

A call with another one is refused, so that none is ignored without notice. Of calls that are not listed here, the rules
and moto look at what they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.sandbox.untyped import JsonObject

# Sent along by boto3, or modelled for all calls of a service.
_EVERYWHERE = frozenset(
    {"ChecksumAlgorithm", "ClientRequestToken", "ClientToken", "ContentMD5", "DryRun", "ExpectedBucketOwner"}
)


def within(name: str, members: str) -> str:
    """Return the names of members of a parameter, separated by spaces."""
    return " ".join(f"{name}.{member}" for member in members.split())


_HOOK = """
    LifecycleHookName LifecycleTransition=autoscaling:EC2_INSTANCE_TERMINATING HeartbeatTimeout DefaultResult=CONTINUE
"""
_REQUIREMENTS = """
    VCpuCount MemoryMiB InstanceGenerations AllowedInstanceTypes ExcludedInstanceTypes BurstablePerformance BareMetal
    LocalStorage CpuManufacturers AcceleratorCount AcceleratorTypes=gpu AcceleratorManufacturers AcceleratorNames
    MaxSpotPriceAsPercentageOfOptimalOnDemandPrice OnDemandMaxPricePercentageOverLowestPrice
"""
_DISTRIBUTION = """
    OnDemandAllocationStrategy=lowest-price OnDemandAllocationStrategy=prioritized
    OnDemandBaseCapacity OnDemandPercentageAboveBaseCapacity SpotInstancePools SpotMaxPrice
    SpotAllocationStrategy=capacity-optimized SpotAllocationStrategy=capacity-optimized-prioritized
    SpotAllocationStrategy=lowest-price SpotAllocationStrategy=price-capacity-optimized
"""
_GROUP = f"""
    AutoScalingGroupName MinSize MaxSize DesiredCapacity AvailabilityZones VPCZoneIdentifier LaunchTemplate
    CapacityRebalance CapacityReservationSpecification MaxInstanceLifetime
    {within("MixedInstancesPolicy.InstancesDistribution", _DISTRIBUTION)}
    MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification
    MixedInstancesPolicy.LaunchTemplate.Overrides.InstanceType
    {within("MixedInstancesPolicy.LaunchTemplate.Overrides.InstanceRequirements", _REQUIREMENTS)}
"""
_VOLUME = """
    Encrypted=true Iops KmsKeyId Throughput VolumeType=gp2 VolumeType=gp3 VolumeType=io1 VolumeType=io2
"""
_LAUNCH = f"""
    ImageId InstanceType KeyName UserData IamInstanceProfile
    {within("TagSpecifications", "ResourceType=instance ResourceType=network-interface ResourceType=volume Tags")}
    CapacityReservationSpecification.CapacityReservationPreference=open
    CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId
    BlockDeviceMappings.DeviceName {within("BlockDeviceMappings.Ebs", f"DeleteOnTermination VolumeSize {_VOLUME}")}
    {within("InstanceMarketOptions", "MarketType=spot SpotOptions.MaxPrice SpotOptions.SpotInstanceType=one-time")}
    {within("MetadataOptions", "HttpEndpoint HttpPutResponseHopLimit=1 HttpTokens InstanceMetadataTags")}
"""
_TEMPLATE = f"""
    {_LAUNCH} {
    within("NetworkInterfaces", "AssociatePublicIpAddress DeleteOnTermination DeviceIndex=0 Groups NetworkInterfaceId")
}
"""
_PERMISSION = f"""
    GroupId TagSpecifications
    {within("IpPermissions", "IpProtocol FromPort ToPort IpRanges UserIdGroupPairs PrefixListIds")}
"""
_ROUTE = """
    RouteTableId DestinationCidrBlock DestinationPrefixListId GatewayId InstanceId NatGatewayId NetworkInterfaceId
    TransitGatewayId VpcPeeringConnectionId
"""
_HEALTH_CHECK = """
    HealthCheckProtocol=HTTPS HealthCheckPath=/readyz HealthCheckIntervalSeconds=10 HealthCheckTimeoutSeconds=6
    HealthyThresholdCount UnhealthyThresholdCount HealthCheckEnabled=true
"""
_LISTENER = "Port Protocol=TCP DefaultActions.Type=forward DefaultActions.TargetGroupArn"
_SECRET = "Description KmsKeyId SecretString"

MODELLED: Mapping[str, frozenset[str]] = {
    call: frozenset(names.split())
    for call, names in {
        "autoscaling.CreateAutoScalingGroup": f"""
            {_GROUP} TargetGroupARNs Tags {within("LifecycleHookSpecificationList", _HOOK)}
        """,
        "autoscaling.UpdateAutoScalingGroup": _GROUP,
        "autoscaling.CompleteLifecycleAction": """
            AutoScalingGroupName InstanceId LifecycleActionResult=CONTINUE LifecycleActionToken LifecycleHookName
        """,
        "autoscaling.PutLifecycleHook": f"AutoScalingGroupName {_HOOK}",
        "cloudfront.CreateOriginAccessControl": within(
            "OriginAccessControlConfig",
            "Name Description SigningProtocol=sigv4 SigningBehavior=always OriginAccessControlOriginType=s3",
        ),
        "ec2.AssociateAddress": "AllocationId AllowReassociation NetworkInterfaceId",
        "ec2.AssignPrivateIpAddresses": "NetworkInterfaceId PrivateIpAddresses",
        "ec2.AuthorizeSecurityGroupEgress": _PERMISSION,
        "ec2.AuthorizeSecurityGroupIngress": _PERMISSION,
        "ec2.CreateDhcpOptions": f"""
            {within("DhcpConfigurations", "domain-name domain-name-servers=AmazonProvidedDNS")} TagSpecifications
        """,
        "ec2.CreateLaunchTemplate": f"""
            LaunchTemplateName TagSpecifications {within("LaunchTemplateData", _TEMPLATE)}
        """,
        "ec2.CreateLaunchTemplateVersion": f"""
            LaunchTemplateId SourceVersion VersionDescription {within("LaunchTemplateData", _TEMPLATE)}
        """,
        "ec2.CreateNetworkInterface": """
            SubnetId Description Groups PrivateIpAddress PrivateIpAddresses TagSpecifications
        """,
        "ec2.CreateRoute": _ROUTE,
        "ec2.CreateVolume": f"AvailabilityZone Size TagSpecifications {_VOLUME}",
        "ec2.ModifyVolume": "VolumeId Size Iops Throughput VolumeType=gp2 VolumeType=gp3 VolumeType=io1 VolumeType=io2",
        "ec2.ReplaceRoute": _ROUTE,
        "ec2.RunInstances": f"MinCount MaxCount LaunchTemplate Placement.AvailabilityZone SubnetId {_LAUNCH}",
        "elbv2.CreateListener": f"LoadBalancerArn Tags {_LISTENER}",
        "elbv2.CreateLoadBalancer": """
            Name Type=network Scheme=internal Scheme=internet-facing Subnets SecurityGroups Tags IpAddressType=ipv4
        """,
        "elbv2.CreateTargetGroup": f"""
            Name Protocol=TCP Port VpcId TargetType=instance TargetType=ip Tags {_HEALTH_CHECK}
        """,
        "elbv2.ModifyListener": f"ListenerArn {_LISTENER}",
        "elbv2.ModifyLoadBalancerAttributes": """
            LoadBalancerArn
            Attributes.deletion_protection.enabled=true Attributes.deletion_protection.enabled=false
            Attributes.load_balancing.cross_zone.enabled=true Attributes.load_balancing.cross_zone.enabled=false
        """,
        "elbv2.ModifyTargetGroup": f"TargetGroupArn {_HEALTH_CHECK}",
        "elbv2.ModifyTargetGroupAttributes": """
            TargetGroupArn Attributes.deregistration_delay.timeout_seconds=60
            Attributes.preserve_client_ip.enabled=true Attributes.preserve_client_ip.enabled=false
            Attributes.target_health_state.unhealthy.connection_termination.enabled=true
            Attributes.target_health_state.unhealthy.connection_termination.enabled=false
        """,
        "elbv2.RegisterTargets": "TargetGroupArn Targets.Id Targets.Port",
        "elbv2.SetSubnets": "LoadBalancerArn Subnets",
        "s3.CreateBucket": "Bucket CreateBucketConfiguration ObjectLockEnabledForBucket ObjectOwnership",
        "s3.PutBucketAcl": "Bucket",
        "s3.PutBucketLifecycleConfiguration": "Bucket " + within(
            "LifecycleConfiguration.Rules",
            "ID Status Prefix Filter.Prefix Expiration.Days Expiration.ExpiredObjectDeleteMarker "
            "NoncurrentVersionExpiration.NoncurrentDays AbortIncompleteMultipartUpload",
        ),
        "secretsmanager.CreateSecret": f"Name Tags {_SECRET}",
        "secretsmanager.PutSecretValue": "SecretId SecretString",
        "secretsmanager.UpdateSecret": f"SecretId {_SECRET}",
    }.items()
}  # fmt: skip
"""By service and operation, the names of parameters: `A.B` is B in A, B in an item of the list A, or the item of A with
the key B. A name stands for everything in it; with `=`, for this value only."""


def unmodelled_parameter(service: str, operation: str, parameters: JsonObject) -> str:
    """Return the first parameter that is not modelled, with `=` and its value if others are; empty if there is none."""
    modelled = MODELLED.get(f"{service}.{operation}")
    return "" if modelled is None else unmodelled_setting(parameters, modelled)


def unmodelled_setting(settings: JsonObject, modelled: frozenset[str]) -> str:
    """Return the first setting that is not modelled, as `unmodelled_parameter` does.

    Args:
        modelled: names of settings, in the form of those in `MODELLED`.
    """
    setting = next((setting for setting in _settings(settings) if not _is_modelled(setting, modelled)), "")
    name = setting.partition("=")[0]
    return setting if any(other.startswith(f"{name}=") for other in modelled) else name


def _settings(value: object, name: str = "") -> Iterator[str]:
    """Yield the names of all values in a parameter, each with `=` and the value."""
    if isinstance(value, Mapping) and name and "Key" in value:
        yield from _settings(value.get("Value", value.get("Values")), f"{name}.{value['Key']}")
    elif isinstance(value, Mapping):
        for key, member in value.items():
            yield from _settings(member, f"{name}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for item in value:
            yield from _settings(item, name)
    elif value is not None:
        yield f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def _is_modelled(setting: str, modelled: frozenset[str]) -> bool:
    parts = setting.partition("=")[0].split(".")
    names = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
    return parts[0] in _EVERYWHERE or not modelled.isdisjoint({setting, *names})

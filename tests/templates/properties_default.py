"""The rows of `test_properties_that_matter` about the default cluster, each block with its reason."""

from __future__ import annotations

from typing import Any

CLUSTER_TAG = "Tags.kubernetes.io/cluster/blue"
SUSPENDED = ["AlarmNotification", "AZRebalance", "HealthCheck", "ReplaceUnhealthy", "ScheduledActions"]


def rule(name: str, group: str, source: str, protocol: str, ports: tuple[int, int] | None) -> dict[str, Any]:
    """A rule of a security group; without ports it is about all of them."""
    key = "SourceSecurityGroupId" if source.endswith(".GroupId") else "CidrIp"
    key = "SourcePrefixListId" if source.startswith("pl-") else key
    first, last = ports or (None, None)
    values = {"GroupId": f"!{group}.GroupId", key: source, "IpProtocol": protocol, "FromPort": first, "ToPort": last}
    return {f"{name}.{each}": value for each, value in values.items()}


MASTER, NODE, BALANCER = "MasterSecurityGroup", "NodeSecurityGroup", "ApiLoadBalancerSecurityGroup"
OF_MASTERS, OF_NODES = f"!{MASTER}.GroupId", f"!{NODE}.GroupId"
DEFAULT: list[dict[str, Any]] = [
    # Names of services and instances are looked up in the VPC; without host names an instance has none of its own
    # ("DNS attributes for your VPC", Amazon VPC User Guide), and the DHCP options say which domain completes them.
    {
        "Vpc.CidrBlock": "!VpcCidr",
        "Vpc.EnableDnsSupport": True,
        "Vpc.EnableDnsHostnames": True,
        "Vpc.Tags.Name": "blue-vpc",
        "DhcpOptions.DomainName": "us-west-2.compute.internal",
        "DhcpOptions.DomainNameServers": ["AmazonProvidedDNS"],
        "DhcpOptions.Tags.Name": "blue-dhcp-options",
        "DhcpOptionsAssociation.VpcId": "!Vpc",
        "DhcpOptionsAssociation.DhcpOptionsId": "!DhcpOptions",
    },
    # The way out: a gateway at the VPC, a route to it once it is attached, the subnet at that table.
    {
        "InternetGateway.Tags.Name": "blue",
        "InternetGatewayAttachment.VpcId": "!Vpc",
        "InternetGatewayAttachment.InternetGatewayId": "!InternetGateway",
        "InternetRoute.RouteTableId": "!RouteTable",
        "InternetRoute.DestinationCidrBlock": "0.0.0.0/0",
        "InternetRoute.GatewayId": "!InternetGateway",
        "InternetRoute.DependsOn": ["InternetGatewayAttachment"],
        "RouteTable.VpcId": "!Vpc",
        "RouteTable.Tags.Name": "blue-public",
        "SubnetA.VpcId": "!Vpc",
        "SubnetA.CidrBlock": "!SubnetACidr",
        "SubnetA.AvailabilityZone": "!ZoneA",
        "SubnetA.Tags.Name": "blue-public-a",
        "SubnetARouteTableAssociation.SubnetId": "!SubnetA",
        "SubnetARouteTableAssociation.RouteTableId": "!RouteTable",
    },
    # The cloud controller manager and the load balancer controller put internet-facing load balancers there.
    {"SubnetA.Tags.kubernetes.io/role/elb": "1", f"SubnetA.{CLUSTER_TAG}": "owned"},
    # kube-up opened everything between instances; here nodes reach single ports of masters.
    rule("NodeFromNodes", NODE, OF_NODES, "-1", None),
    rule("NodeFromMasters", NODE, OF_MASTERS, "-1", None),
    rule("MasterFromMasters", MASTER, OF_MASTERS, "-1", None),
    rule("MasterApiFromNodes", MASTER, OF_NODES, "tcp", (443, 443)),
    rule("MasterKubeletFromNodes", MASTER, OF_NODES, "tcp", (10250, 10250)),
    rule("MasterDnsTcpFromNodes", MASTER, OF_NODES, "tcp", (53, 53)),
    rule("MasterDnsUdpFromNodes", MASTER, OF_NODES, "udp", (53, 53)),
    # "Fragmentation needed" is type 3, code 4 of ICMP (RFC 1191).
    rule("MasterPathMtuFromNodes", MASTER, OF_NODES, "icmp", (3, 4)),
    rule("MasterApiFrom203x0x113x0x24", MASTER, "203.0.113.0/24", "tcp", (443, 443)),
    rule("MasterSshFrom198x51x100x0x24", MASTER, "198.51.100.0/24", "tcp", (22, 22)),
    rule("NodeSshFrom198x51x100x0x24", NODE, "198.51.100.0/24", "tcp", (22, 22)),
    # Instances call out for images, packages and AWS; EC2's own rule for that is gone once another one is named.
    *(
        {
            f"{group}.VpcId": "!Vpc",
            f"{group}.GroupDescription": f"Kubernetes cluster blue: {plural}",
            f"{group}.SecurityGroupEgress.0.CidrIp": "0.0.0.0/0",
            f"{group}.SecurityGroupEgress.0.IpProtocol": "-1",
            f"{group}.SecurityGroupEgress.1": None,
            f"{group}.Tags.Name": f"blue-{plural}",
            f"{group}.{CLUSTER_TAG}": "owned",
        }
        for group, plural in ((MASTER, "masters"), (NODE, "nodes"))
    ),
    # Of the security groups of an instance, one has the cluster's tag.
    {
        "NodeGroupNodesSecurityGroup.VpcId": "!Vpc",
        "NodeGroupNodesSecurityGroup.SecurityGroupEgress.0.CidrIp": "0.0.0.0/0",
        "NodeGroupNodesSecurityGroup.SecurityGroupEgress.1": None,
        "NodeGroupNodesSecurityGroup.Tags.Name": "blue-nodes-nodes",
        f"NodeGroupNodesSecurityGroup.{CLUSTER_TAG}": None,
    },
    # A new key for each year; a month to think of it once the key is deleted.
    {
        "SecretsKey.EnableKeyRotation": True,
        "SecretsKey.PendingWindowInDays": 30,
        "SecretsKey.DeletionPolicy": "Delete",
        "SecretsKey.UpdateReplacePolicy": "Delete",
        "SecretsKey.Tags.Name": "blue-secrets",
        "SecretsKey.KeyPolicy.Statement.0.Principal.AWS": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root",
        "SecretsKey.KeyPolicy.Statement.0.Effect": "Allow",
        "SecretsKey.KeyPolicy.Statement.0.Action": ["kms:*"],
        "SecretsKey.KeyPolicy.Statement.0.Resource": ["*"],
        "SecretsKey.KeyPolicy.Statement.1": None,
    },
    *(
        {
            f"{secret}.KmsKeyId": "!SecretsKey.Arn",
            f"{secret}.DeletionPolicy": "Delete",
            f"{secret}.UpdateReplacePolicy": "Delete",
            f"{secret}.Tags.Name": f"blue-{name}",
        }
        for secret, name in (("CaSecret", "ca"), ("JoinSecret", "join"))
    ),
    # Snapshots outlive the stack once there are any, are nobody else's, and go after their days.
    {
        "BackupBucket.DeletionPolicy": "RetainExceptOnCreate",
        "BackupBucket.UpdateReplacePolicy": "Retain",
        "BackupBucket.BucketEncryption.ServerSideEncryptionConfiguration.0.ServerSideEncryptionByDefault"
        ".SSEAlgorithm": "AES256",
        "BackupBucket.OwnershipControls.Rules.0.ObjectOwnership": "BucketOwnerEnforced",
        "BackupBucket.PublicAccessBlockConfiguration": dict.fromkeys(
            ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
        ),
        "BackupBucket.Tags.Name": "blue-etcd-backups",
        "BackupBucketPolicy.Bucket": "!BackupBucket",
        "BackupBucketPolicy.DeletionPolicy": "Retain",
        "BackupBucketPolicy.UpdateReplacePolicy": "Retain",
    },
    *(
        {
            f"BackupBucket.LifecycleConfiguration.Rules.{place}": {
                "Id": f"{kind.capitalize()}Snapshots",
                "Status": "Enabled",
                "Prefix": f"blue/etcd/{kind}/",
                "ExpirationInDays": days,
            }
        }
        for place, kind, days in ((0, "hourly", 7), (1, "daily", 90))
    ),
    {
        "BackupBucket.LifecycleConfiguration.Rules.2": {
            "Id": "NoncurrentVersions",
            "Status": "Enabled",
            "ExpiredObjectDeleteMarker": True,
            "NoncurrentVersionExpiration": {"NoncurrentDays": 7},
        },
        "BackupBucket.LifecycleConfiguration.Rules.3.Status": "Enabled",
        "BackupBucket.LifecycleConfiguration.Rules.3.AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
        "BackupBucket.LifecycleConfiguration.Rules.4": None,
        "BackupBucket.VersioningConfiguration": {"Status": "Enabled"},
    },
    # Nobody reads or writes it without TLS (control S3.5 of AWS Security Hub).
    {
        "BackupBucketPolicy.PolicyDocument.Statement.0.Effect": "Deny",
        "BackupBucketPolicy.PolicyDocument.Statement.0.Principal": "*",
        "BackupBucketPolicy.PolicyDocument.Statement.0.Action": ["s3:*"],
        "BackupBucketPolicy.PolicyDocument.Statement.0.Resource": ["!BackupBucket.Arn", "${BackupBucket.Arn}/*"],
        "BackupBucketPolicy.PolicyDocument.Statement.0.Condition": {"Bool": {"aws:SecureTransport": "false"}},
    },
    # Only EC2 hands the roles out, by its name in the partition at hand.
    *(
        {
            f"{role}Role.AssumeRolePolicyDocument.Statement.0.Effect": "Allow",
            f"{role}Role.AssumeRolePolicyDocument.Statement.0.Principal": {"Service": "ec2.${AWS::URLSuffix}"},
            f"{role}Role.AssumeRolePolicyDocument.Statement.0.Action": ["sts:AssumeRole"],
            f"{role}Role.AssumeRolePolicyDocument.Version": "2012-10-17",
            f"{role}Role.Policies.0.PolicyName": "kubernetes",
            f"{role}Role.Tags.Name": f"blue {role.lower()}s",
            f"{role}Role.PermissionsBoundary": None,
            f"{role}Role.ManagedPolicyArns": None,
            f"{role}InstanceProfile.Roles": [f"!{role}Role"],
        }
        for role in ("Master", "Node")
    ),
    {"AddonsPolicy.Roles": ["!MasterRole"]},
    # What stays of a master when its instance goes: address, way in, volume. Pods' packets bear addresses that are
    # not the interface's own.
    {
        "MasterANetworkInterface.SubnetId": "!SubnetA.SubnetId",
        "MasterANetworkInterface.PrivateIpAddress": "!MasterAAddress",
        "MasterANetworkInterface.GroupSet": [OF_MASTERS],
        "MasterANetworkInterface.SourceDestCheck": False,
        "MasterANetworkInterface.Tags.Name": "blue-master-a",
        "MasterANetworkInterface.Tags.k8s.io/role/master": None,
        "MasterAElasticIp.Domain": "vpc",
        "MasterAElasticIp.DependsOn": ["InternetGatewayAttachment"],
        "MasterAElasticIp.Tags.Name": "blue-master-a",
        "MasterAElasticIpAssociation.AllocationId": "!MasterAElasticIp.AllocationId",
        "MasterAElasticIpAssociation.NetworkInterfaceId": "!MasterANetworkInterface",
        "MasterAVolume.AvailabilityZone": "!ZoneA",
        "MasterAVolume.Size": "!MasterVolumeSize",
        "MasterAVolume.VolumeType": "!MasterVolumeType",
        "MasterAVolume.Encrypted": True,
        "MasterAVolume.DeletionPolicy": "Snapshot",
        "MasterAVolume.UpdateReplacePolicy": "Snapshot",
        "MasterAVolume.Tags.Name": "blue-master-a-data",
        "MasterAVolume.Tags.k8s.io/role/master": "1",
    },
    # Credentials of an instance are for its host alone (one hop, tokens only).
    *(
        {
            f"{prefix}LaunchTemplate.LaunchTemplateData.MetadataOptions": {
                "HttpEndpoint": "enabled",
                "HttpTokens": "required",
                "HttpPutResponseHopLimit": 1,
                "InstanceMetadataTags": "disabled",
            },
            f"{prefix}LaunchTemplate.LaunchTemplateData.ImageId": f"!{role}ImageUbuntu2404Amd64",
            f"{prefix}LaunchTemplate.LaunchTemplateData.InstanceType": f"!{parameters}InstanceType",
            f"{prefix}LaunchTemplate.LaunchTemplateData.IamInstanceProfile.Arn": f"!{role}InstanceProfile.Arn",
            f"{prefix}LaunchTemplate.LaunchTemplateData.KeyName": "!KeyName",
            f"{prefix}LaunchTemplate.LaunchTemplateData.BlockDeviceMappings": [
                {
                    "DeviceName": "/dev/sda1",
                    "Ebs": {
                        "DeleteOnTermination": True,
                        "VolumeSize": f"!{parameters}RootVolumeSize",
                        "Encrypted": True,
                        "VolumeType": "gp3",
                    },
                }
            ],
            f"{prefix}LaunchTemplate.TagSpecifications.0.ResourceType": "launch-template",
            f"{prefix}LaunchTemplate.TagSpecifications.0.Tags.Name": name,
            f"{prefix}LaunchTemplate.LaunchTemplateData.TagSpecifications.0.ResourceType": "volume",
            f"{prefix}LaunchTemplate.LaunchTemplateData.TagSpecifications.0.Tags.Name": name,
        }
        for prefix, role, parameters, name in (
            ("MasterA", "Master", "Master", "blue-master-a"),
            ("NodeGroupNodes", "Node", "NodeGroupNodes", "blue-nodes-nodes"),
        )
    ),
    # A master's interface outlives its instance; a node's goes with it, and has an address to get out by.
    {
        "MasterALaunchTemplate.LaunchTemplateData.NetworkInterfaces": [
            {"DeviceIndex": 0, "DeleteOnTermination": False, "NetworkInterfaceId": "!MasterANetworkInterface"}
        ],
        "MasterALaunchTemplate.LaunchTemplateData.TagSpecifications.1": None,
        "NodeGroupNodesLaunchTemplate.LaunchTemplateData.NetworkInterfaces": [
            {
                "DeviceIndex": 0,
                "AssociatePublicIpAddress": True,
                "DeleteOnTermination": True,
                "Groups": [OF_NODES, "!NodeGroupNodesSecurityGroup.GroupId"],
            }
        ],
        "NodeGroupNodesLaunchTemplate.LaunchTemplateData.TagSpecifications.1.ResourceType": "network-interface",
        "NodeGroupNodesLaunchTemplate.LaunchTemplateData.TagSpecifications.1.Tags.Name": "blue-nodes-nodes",
    },
    # One instance at a time, the next once the new one has reported; what an autoscaler changed stays.
    *(
        {
            f"{group}.UpdatePolicy.AutoScalingRollingUpdate": {
                "MaxBatchSize": 1,
                "MinInstancesInService": 0,
                "PauseTime": pause,
                "SuspendProcesses": SUSPENDED,
                "WaitOnResourceSignals": True,
            },
            f"{group}.UpdatePolicy.AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True},
            f"{group}.LaunchTemplate.LaunchTemplateId": f"!{template}",
            f"{group}.LaunchTemplate.Version": f"!{template}.LatestVersionNumber",
            f"{group}.Tags.Name": name,
            f"{group}.Tags.team": "a",
        }
        for group, template, pause, name in (
            ("MasterAAutoScalingGroup", "MasterALaunchTemplate", "PT30M", "blue-master-a"),
            ("NodeGroupNodesAutoScalingGroup", "NodeGroupNodesLaunchTemplate", "PT45M", "blue-nodes-nodes"),
        )
    ),
    # A group of one with an existing interface names its zone; the first instance starts once it can get out.
    {
        "MasterAAutoScalingGroup.MinSize": "1",
        "MasterAAutoScalingGroup.MaxSize": "1",
        "MasterAAutoScalingGroup.AvailabilityZones": ["!ZoneA"],
        "MasterAAutoScalingGroup.DependsOn": [
            "InternetRoute",
            "MasterAElasticIpAssociation",
            "SubnetARouteTableAssociation",
        ],
        "MasterAAutoScalingGroup.Tags.k8s.io/role/master": "1",
        "MasterAAutoScalingGroup.CreationPolicy": None,
        "MasterAWaitCondition.DependsOn": ["MasterAAutoScalingGroup"],
        "MasterAWaitCondition.CreationPolicy.ResourceSignal": {"Count": 1, "Timeout": "PT20M"},
    },
    # Nodes: as many as are asked for must report, and cluster-autoscaler may find the group by its tags.
    {
        "NodeGroupNodesAutoScalingGroup.MinSize": "!NodeGroupNodesMinSize",
        "NodeGroupNodesAutoScalingGroup.MaxSize": "!NodeGroupNodesMaxSize",
        "NodeGroupNodesAutoScalingGroup.DesiredCapacity": None,
        "NodeGroupNodesAutoScalingGroup.VPCZoneIdentifier": ["!SubnetA.SubnetId"],
        "NodeGroupNodesAutoScalingGroup.CreationPolicy.ResourceSignal": {
            "Count": "!NodeGroupNodesMinSize",
            "Timeout": "PT20M",
        },
        "NodeGroupNodesAutoScalingGroup.DependsOn": [
            "InternetRoute",
            "MasterAAutoScalingGroup",
            "SubnetARouteTableAssociation",
        ],
        "NodeGroupNodesAutoScalingGroup.LifecycleHookSpecificationList": [
            {
                "LifecycleHookName": "cfngen-drain",
                "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
                "HeartbeatTimeout": 120,
                "DefaultResult": "CONTINUE",
            }
        ],
        "NodeGroupNodesAutoScalingGroup.Tags.k8s.io/cluster-autoscaler/enabled": "true (of the group)",
        "NodeGroupNodesAutoScalingGroup.Tags.k8s.io/cluster-autoscaler/blue": "owned (of the group)",
        "NodeGroupNodesAutoScalingGroup.Tags.k8s.io/role/master": None,
    },
]

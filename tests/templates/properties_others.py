"""The rows of `test_properties_that_matter` about clusters unlike the default one, each block with its reason."""

from __future__ import annotations

from typing import Any

from properties_default import BALANCER, CLUSTER_TAG, MASTER, OF_MASTERS, OF_NODES, rule

KMS_KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd"
EXISTING = {
    "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.1.0.0/16"},
    "subnets": [
        {"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.1.0.0/24"},
        {"zone": "us-west-2b", "id": "subnet-0123456789abcdef1", "cidr": "10.1.1.0/24"},
    ],
    "serviceCidr": "10.9.0.0/16",
}
CLUSTERS: dict[str, dict[str, Any]] = {
    "default": {
        "name": "blue",
        "api": {"allowedCidrs": ["203.0.113.0/24"]},
        "ssh": {"keyName": "mine", "allowedCidrs": ["198.51.100.0/24"]},
        "tags": {"team": "a"},
    },
    "several": {
        "name": "blue",
        "network": {"subnets": [{"zone": "us-west-2a"}, {"zone": "us-west-2-lax-1a"}, {"zone": "us-west-2b"}]},
        "controlPlane": {
            "count": 3,
            "addresses": ["172.20.0.9", "172.20.2.9", "172.20.0.10"],
            "capacityReservation": True,
        },
    },
    "private": {
        "name": "blue",
        "api": {"public": False, "port": 6443},
        "network": {**EXISTING, "plugin": "amazon-vpc"},
        "controlPlane": {
            "count": 3,
            "additionalSecurityGroups": ["sg-01234567"],
            "additionalPolicies": ["arn:aws:iam::aws:policy/a"],
            "volume": {"type": "io2", "size": 100, "iops": 5000, "kmsKey": KMS_KEY},
            "creationTimeout": 30,
        },
        "nodeGroups": [{"publicIp": False, "minSize": 1}],
        "etcd": {"backups": {"bucket": "my-backups"}},
        "ssh": {"publicKey": "ssh-ed25519 AAAA"},
    },
    "groups": {
        "name": "blue",
        "network": {"plugin": "cilium"},
        "api": {"elasticIp": {"allocationId": "eipalloc-01234567", "address": "52.1.2.3"}},
        "nodeGroups": [
            {
                "name": "spot",
                "spotPrice": "0.05",
                "minSize": 0,
                "maxSize": 9,
                "desiredSize": 2,
                "drainTimeout": 0,
                "creationTimeout": 30,
                "labels": {"team": "a"},
                "taints": [
                    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                    {"key": "gpu", "effect": "NoExecute"},
                ],
                "additionalSecurityGroups": ["sg-01234567"],
                "rootVolume": {"size": 100, "iops": 6000, "throughput": 500, "kmsKey": KMS_KEY},
            },
            {
                "name": "arm-a",
                "instanceType": "t4g.medium",
                "image": {"distribution": "debian-13"},
                "additionalPolicies": ["arn:aws:iam::aws:policy/a"],
                "drainTimeout": 30,
            },
        ],
        "iam": {"permissionsBoundary": "arn:aws:iam::123456789012:policy/b"},
        "etcd": {"backups": {"enabled": False}},
    },
    "added": {
        "name": "blue",
        "network": {
            "vpc": EXISTING["vpc"],
            "subnets": [{"zone": "us-west-2a", "cidr": "10.1.8.0/24"}],
            "internetGateway": "igw-0123456789abcdef0",
            "serviceCidr": "10.9.0.0/16",
        },
        "image": {"id": "ami-0123456789abcdef0", "rootDevice": "/dev/xvdz"},
        "nodeGroups": [{"image": {"distribution": "ubuntu-22.04"}}],
    },
    "listed": {
        "name": "blue",
        "network": {"dhcpOptions": "dopt-01234567"},
        "api": {
            "allowedPrefixLists": [{"id": "pl-01234567", "maxEntries": 30}, {"id": "pl-76543210", "maxEntries": 30}]
        },
    },
}
OTHERS: dict[str, list[dict[str, Any]]] = {
    "several": [
        # A new instance of each master starts also when its type is sold out; no other instance takes its place.
        {
            "MasterBCapacityReservation.AvailabilityZone": "!ZoneB",
            "MasterBCapacityReservation.InstanceType": "!MasterInstanceType",
            "MasterBCapacityReservation.InstanceCount": 1,
            "MasterBCapacityReservation.InstanceMatchCriteria": "targeted",
            "MasterBCapacityReservation.InstancePlatform": "Linux/UNIX",
            "MasterBCapacityReservation.TagSpecifications.0.ResourceType": "capacity-reservation",
            "MasterBCapacityReservation.TagSpecifications.0.Tags.Name": "blue-master-b",
            "MasterBLaunchTemplate.LaunchTemplateData.CapacityReservationSpecification": {
                "CapacityReservationTarget": {"CapacityReservationId": "!MasterBCapacityReservation"}
            },
        },
        # TLS goes through as it is; a zone without a healthy master is served by the others', and no Local Zone is
        # among the balancer's (CreateLoadBalancer, Elastic Load Balancing API Reference).
        {
            "ApiLoadBalancer.Name": "blue-api",
            "ApiLoadBalancer.Type": "network",
            "ApiLoadBalancer.Scheme": "internet-facing",
            "ApiLoadBalancer.IpAddressType": "ipv4",
            "ApiLoadBalancer.Subnets": ["!SubnetA.SubnetId", "!SubnetB.SubnetId"],
            "ApiLoadBalancer.SecurityGroups": [f"!{BALANCER}.GroupId"],
            "ApiLoadBalancer.LoadBalancerAttributes": [{"Key": "load_balancing.cross_zone.enabled", "Value": "true"}],
            "ApiLoadBalancer.DependsOn": [
                "InternetGatewayAttachment",
                "MasterANetworkInterface",
                "MasterBNetworkInterface",
                "MasterCNetworkInterface",
            ],
            "ApiLoadBalancer.Tags.Name": "blue-api",
            "ApiListener.LoadBalancerArn": "!ApiLoadBalancer",
            "ApiListener.Protocol": "TCP",
            "ApiListener.Port": 443,
            "ApiListener.DefaultActions": [{"Type": "forward", "TargetGroupArn": "!ApiTargetGroup"}],
            "ApiListener.Tags.Name": "blue-api",
            "ApiTargetGroup.VpcId": "!Vpc",
            "ApiTargetGroup.Protocol": "TCP",
            "ApiTargetGroup.Port": 443,
            "ApiTargetGroup.TargetType": "ip",
            "ApiTargetGroup.Tags.Name": "blue-api",
            "ApiTargetGroup.Targets": [
                {"Id": f"!Master{letter}NetworkInterface.PrimaryPrivateIpAddress", "Port": 443} for letter in "ABC"
            ],
        },
        # Twenty seconds take a master out that does not answer; /readyz says so of itself.
        {
            "ApiTargetGroup.HealthCheckEnabled": True,
            "ApiTargetGroup.HealthCheckProtocol": "HTTPS",
            "ApiTargetGroup.HealthCheckPath": "/readyz",
            "ApiTargetGroup.HealthCheckIntervalSeconds": 10,
            "ApiTargetGroup.HealthCheckTimeoutSeconds": 6,
            "ApiTargetGroup.HealthyThresholdCount": 2,
            "ApiTargetGroup.UnhealthyThresholdCount": 2,
            "ApiTargetGroup.TargetGroupAttributes": [
                {"Key": "deregistration_delay.timeout_seconds", "Value": "60"},
                {"Key": "preserve_client_ip.enabled", "Value": "false"},
                {"Key": "target_health_state.unhealthy.connection_termination.enabled", "Value": "true"},
            ],
        },
        # People come through the balancer, and it reaches API servers only; Kubernetes must not take its group for
        # the cluster's.
        {
            f"{BALANCER}.GroupDescription": "Kubernetes cluster blue: load balancer of the API",
            f"{BALANCER}.VpcId": "!Vpc",
            f"{BALANCER}.SecurityGroupEgress.0.DestinationSecurityGroupId": OF_MASTERS,
            f"{BALANCER}.SecurityGroupEgress.0.IpProtocol": "tcp",
            f"{BALANCER}.SecurityGroupEgress.0.FromPort": 443,
            f"{BALANCER}.SecurityGroupEgress.0.ToPort": 443,
            f"{BALANCER}.SecurityGroupEgress.1": None,
            f"{BALANCER}.Tags.KubernetesCluster": "blue",
            f"{BALANCER}.Tags.Name": "blue-api",
            f"{BALANCER}.{CLUSTER_TAG}": None,
            "MasterApiFromAllowedCidr": None,
            "ApiLoadBalancerFromMasters": None,
        },
        rule("MasterApiFromLoadBalancer", MASTER, f"!{BALANCER}.GroupId", "tcp", (443, 443)),
        rule("ApiLoadBalancerFromAllowedCidr", BALANCER, "!ApiAllowedCidr", "tcp", (443, 443)),
        # Each master in the subnet of its address, after the one before it, with a way out of its own.
        {
            "MasterBNetworkInterface.SubnetId": "!SubnetB.SubnetId",
            "MasterBNetworkInterface.PrivateIpAddress": "!MasterBAddress",
            "MasterBVolume.AvailabilityZone": "!ZoneB",
            "MasterBAutoScalingGroup.AvailabilityZones": ["!ZoneB"],
            "MasterBAutoScalingGroup.DependsOn": [
                "InternetRoute",
                "MasterAAutoScalingGroup",
                "MasterBElasticIpAssociation",
                "SubnetBRouteTableAssociation",
            ],
            "MasterBElasticIpAssociation.NetworkInterfaceId": "!MasterBNetworkInterface",
            "MasterCNetworkInterface.SubnetId": "!SubnetA.SubnetId",
            "MasterCAutoScalingGroup.DependsOn": [
                "InternetRoute",
                "MasterBAutoScalingGroup",
                "MasterCElasticIpAssociation",
                "SubnetARouteTableAssociation",
            ],
            "SubnetLax1A.AvailabilityZone": "!ZoneLax1A",
            "SubnetLax1A.CidrBlock": "!SubnetLax1ACidr",
        },
    ],
    "private": [
        # No address of the internet anywhere; the balancer is another one than a public cluster's, which cannot change.
        {
            "InternalApiLoadBalancer.Name": "blue-int",
            "InternalApiLoadBalancer.Scheme": "internal",
            "InternalApiLoadBalancer.Subnets": ["!SubnetAId", "!SubnetBId"],
            "InternalApiLoadBalancer.DependsOn": [f"Master{letter}NetworkInterface" for letter in "ABC"],
            "InternalApiListener.Port": 6443,
            "InternalApiListener.LoadBalancerArn": "!InternalApiLoadBalancer",
            "InternalApiTargetGroup.VpcId": "!VpcId",
            "InternalApiTargetGroup.Port": 6443,
            "InternalApiTargetGroup.Targets.2": {
                "Id": "!MasterCNetworkInterface.PrimaryPrivateIpAddress",
                "Port": 6443,
            },
            "ApiLoadBalancer": None,
            "MasterCElasticIp": None,
            "MasterAElasticIpAssociation": None,
            "Vpc": None,
            "NodeGroupNodesLaunchTemplate.LaunchTemplateData.NetworkInterfaces.0.AssociatePublicIpAddress": False,
        },
        # Inside the VPC instances and pods come to the balancer with addresses of their own.
        rule("ApiLoadBalancerFromMasters", BALANCER, OF_MASTERS, "tcp", (6443, 6443)),
        rule("ApiLoadBalancerFromNodes", BALANCER, OF_NODES, "tcp", (6443, 6443)),
        rule("MasterApiFromNodes", MASTER, OF_NODES, "tcp", (6443, 6443)),
        # Pods have addresses of interfaces, so each carries its own packets; and nodes must not touch the masters'.
        {
            "MasterCNetworkInterface.SubnetId": "!SubnetAId",
            "MasterCNetworkInterface.SourceDestCheck": True,
            "MasterCNetworkInterface.GroupSet": [OF_MASTERS, "sg-01234567"],
            "MasterCNetworkInterface.Tags.k8s.io/role/master": "1",
            "PodAddressesPolicy.Roles": ["!MasterRole"],
        },
        # What the cluster file says of the volume, the key and the role.
        {
            "MasterCVolume.VolumeType": "!MasterVolumeType",
            "MasterCVolume.Iops": 5000,
            "MasterCVolume.KmsKeyId": KMS_KEY,
            "MasterCVolume.Throughput": None,
            "MasterRole.ManagedPolicyArns": ["arn:aws:iam::aws:policy/a"],
            "NodeRole.ManagedPolicyArns": None,
            "SshKeyPair.PublicKeyMaterial": "ssh-ed25519 AAAA",
            "SshKeyPair.Tags.Name": "blue-ssh",
            "MasterCLaunchTemplate.LaunchTemplateData.KeyName": "!SshKeyPair",
            "NodeGroupNodesLaunchTemplate.LaunchTemplateData.KeyName": "!SshKeyPair",
            "MasterCWaitCondition.CreationPolicy.ResourceSignal": {"Count": 1, "Timeout": "PT30M"},
            "MasterCAutoScalingGroup.UpdatePolicy.AutoScalingRollingUpdate.PauseTime": "PT45M",
            "MasterCAutoScalingGroup.DependsOn": ["MasterBAutoScalingGroup"],
            "MasterAAutoScalingGroup.DependsOn": None,
            "BackupBucket": None,
            "BackupBucketPolicy": None,
        },
    ],
    "groups": [
        # Cilium's tunnel and health checks (its system requirements); of ICMP the type, and any code.
        rule("MasterVxlanFromNodes", MASTER, OF_NODES, "udp", (8472, 8472)),
        rule("MasterCiliumHealthFromNodes", MASTER, OF_NODES, "tcp", (4240, 4240)),
        rule("MasterCiliumPingFromNodes", MASTER, OF_NODES, "icmp", (8, -1)),
        {
            "MasterDnsTcpFromNodes": None,
            "MasterANetworkInterface.SourceDestCheck": True,
            "MasterAElasticIp": None,
            "MasterAElasticIpAssociation.AllocationId": "!ApiElasticIpAllocationId",
            "BackupBucket": None,
        },
        # One-time requests, which an Auto Scaling group renews itself; as many as are desired must report.
        {
            "NodeGroupSpotLaunchTemplate.LaunchTemplateData.InstanceMarketOptions": {
                "MarketType": "spot",
                "SpotOptions": {"MaxPrice": "!NodeGroupSpotSpotPrice", "SpotInstanceType": "one-time"},
            },
            "NodeGroupSpotAutoScalingGroup.DesiredCapacity": "2",
            "NodeGroupSpotAutoScalingGroup.CreationPolicy.ResourceSignal": {"Count": "2", "Timeout": "PT30M"},
            "NodeGroupSpotAutoScalingGroup.UpdatePolicy.AutoScalingRollingUpdate.PauseTime": "PT50M",
            "NodeGroupSpotAutoScalingGroup.LifecycleHookSpecificationList": None,
            "NodeGroupArmALaunchTemplate.LaunchTemplateData.InstanceMarketOptions": None,
            "NodeGroupArmAAutoScalingGroup.UpdatePolicy.AutoScalingRollingUpdate.PauseTime": "PT60M",
        },
        # What cluster-autoscaler must know of a group without nodes.
        {
            "NodeGroupSpotAutoScalingGroup.Tags.k8s.io/cluster-autoscaler/node-template/label/team": "a (of the group)",
            "NodeGroupSpotAutoScalingGroup.Tags.k8s.io/cluster-autoscaler/node-template/taint/gpu": (
                "yes:NoSchedule (of the group)"
            ),
        },
        # The root volume as the cluster file has it; further groups beside the cluster's own.
        {
            "NodeGroupSpotLaunchTemplate.LaunchTemplateData.BlockDeviceMappings.0.Ebs": {
                "DeleteOnTermination": True,
                "VolumeSize": "!NodeGroupSpotRootVolumeSize",
                "Encrypted": True,
                "VolumeType": "gp3",
                "Iops": 6000,
                "Throughput": 500,
                "KmsKeyId": KMS_KEY,
            },
            "NodeGroupSpotLaunchTemplate.LaunchTemplateData.NetworkInterfaces.0.Groups": [
                OF_NODES,
                "!NodeGroupSpotSecurityGroup.GroupId",
                "sg-01234567",
            ],
            "NodeGroupSpotLaunchTemplate.LaunchTemplateData.IamInstanceProfile.Arn": "!NodeInstanceProfile.Arn",
            "NodeGroupArmALaunchTemplate.LaunchTemplateData.NetworkInterfaces.0.Groups": [
                OF_NODES,
                "!NodeGroupArmASecurityGroup.GroupId",
            ],
            "NodeGroupArmALaunchTemplate.LaunchTemplateData.ImageId": "!NodeImageDebian13Arm64",
            "NodeGroupArmALaunchTemplate.LaunchTemplateData.BlockDeviceMappings.0.DeviceName": "/dev/xvda",
        },
        # A group with policies of its own has a role of its own, bounded as every role.
        {
            "NodeGroupArmARole.ManagedPolicyArns": ["arn:aws:iam::aws:policy/a"],
            "NodeGroupArmARole.PermissionsBoundary": "arn:aws:iam::123456789012:policy/b",
            "NodeGroupArmARole.Tags.Name": "blue node group arm-a",
            "NodeGroupArmAInstanceProfile.Roles": ["!NodeGroupArmARole"],
            "NodeGroupArmALaunchTemplate.LaunchTemplateData.IamInstanceProfile": {
                "Arn": "!NodeGroupArmAInstanceProfile.Arn"
            },
            "MasterRole.PermissionsBoundary": "arn:aws:iam::123456789012:policy/b",
        },
    ],
    "added": [
        # In somebody's VPC only the subnets and their table are made, and the gateway is theirs.
        {
            "Vpc": None,
            "InternetGatewayAttachment": None,
            "RouteTable.VpcId": "!VpcId",
            "InternetRoute.GatewayId": "!InternetGatewayId",
            "InternetRoute.DependsOn": None,
            "SubnetA.VpcId": "!VpcId",
            "MasterAElasticIp.DependsOn": None,
        },
        # An image of one's own, and its root device; another distribution's newest image beside it.
        {
            "MasterALaunchTemplate.LaunchTemplateData.ImageId": "!MasterImageAmi0123456789abcdef0",
            "MasterALaunchTemplate.LaunchTemplateData.BlockDeviceMappings.0.DeviceName": "/dev/xvdz",
            "NodeGroupNodesLaunchTemplate.LaunchTemplateData.ImageId": "!NodeImageUbuntu2204Amd64",
            "NodeGroupNodesLaunchTemplate.LaunchTemplateData.BlockDeviceMappings.0.DeviceName": "/dev/sda1",
        },
    ],
    "listed": [
        {"DhcpOptions": None, "DhcpOptionsAssociation.DhcpOptionsId": "dopt-01234567"},
        # A list that does not fit beside the others opens the port from a further group, which is not the cluster's.
        rule("MasterApiFromPl01234567", MASTER, "pl-01234567", "tcp", (443, 443)),
        rule("MasterApiFromPl76543210", "MasterAccessSecurityGroup2", "pl-76543210", "tcp", (443, 443)),
        {
            "MasterAccessSecurityGroup2.VpcId": "!Vpc",
            "MasterAccessSecurityGroup2.SecurityGroupEgress.0.CidrIp": "0.0.0.0/0",
            "MasterAccessSecurityGroup2.Tags.Name": "blue-masters-2",
            "MasterAccessSecurityGroup2.Tags.KubernetesCluster": "blue",
            f"MasterAccessSecurityGroup2.{CLUSTER_TAG}": None,
            "MasterANetworkInterface.GroupSet": [OF_MASTERS, "!MasterAccessSecurityGroup2.GroupId"],
            "ApiAllowedCidr": None,
        },
    ],
}

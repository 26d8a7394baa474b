"""What Kubernetes makes in AWS beside the stack, made as its controllers make it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cfngen.deploy.aws.account import Account

EVERYWHERE = [{"CidrIp": "0.0.0.0/0"}]


@dataclass(frozen=True)
class Place:
    """Where a cluster is: an account, a VPC, a subnet, and the security group of its nodes."""

    account: Account
    vpc_id: str
    subnet_id: str
    node_group: str

    @property
    def ec2(self) -> Any:
        return self.account.client("ec2")


@dataclass(frozen=True)
class Balancer:
    """A load balancer with what belongs to it; an ARN, or a name if it is a classic one."""

    id: str
    name: str
    group: str = ""
    target_group: str = ""


def pairs(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def new_place(account: Account, cluster: str, cidr: str = "10.0.0.0/16") -> Place:
    """A VPC with a subnet and a security group for nodes, none of them of a stack."""
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock=cidr)["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr.replace("/16", "/24"))["Subnet"]["SubnetId"]
    return Place(account, vpc, subnet, node_group(account, vpc, cluster))


def node_group(account: Account, vpc_id: str, name: str) -> str:
    """A security group that bears no tag."""
    ec2 = account.client("ec2")
    group = ec2.create_security_group(GroupName=f"{name}-nodes", Description="nodes", VpcId=vpc_id)["GroupId"]
    return str(group)


def classic(place: Place, cluster: str, service: str = "default/web", lifecycle: str = "owned") -> Balancer:
    """A Classic Load Balancer of the cloud controller manager, its security group, and the rule for it at the nodes."""
    name = "a" + service.replace("/", "").replace("-", "").ljust(31, "0")[:31]
    tags = {f"kubernetes.io/cluster/{cluster}": lifecycle, "kubernetes.io/service-name": service}
    group = security_group(place, f"k8s-elb-{name}", {f"kubernetes.io/cluster/{cluster}": lifecycle})
    admit(place.account, place.node_group, group)
    place.account.client("elb").create_load_balancer(
        LoadBalancerName=name,
        Listeners=[{"Protocol": "tcp", "LoadBalancerPort": 80, "InstanceProtocol": "tcp", "InstancePort": 30080}],
        Subnets=[place.subnet_id],
        SecurityGroups=[group],
        Tags=pairs(tags),
    )
    return Balancer(name, name, group)


def network(place: Place, cluster: str, service: str = "default/api", *, protected: bool = False) -> Balancer:
    """A Network Load Balancer with a listener and a target group."""
    elbv2 = place.account.client("elbv2")
    tags = pairs({f"kubernetes.io/cluster/{cluster}": "owned", "kubernetes.io/service-name": service})
    name = f"n-{cluster}-{service.partition('/')[2]}"[:32]
    made = elbv2.create_load_balancer(Name=name, Type="network", Subnets=[place.subnet_id], Tags=tags)
    arn = made["LoadBalancers"][0]["LoadBalancerArn"]
    target = elbv2.create_target_group(Name=name, Protocol="TCP", Port=30443, VpcId=place.vpc_id, Tags=tags)
    target_arn = target["TargetGroups"][0]["TargetGroupArn"]
    forward = [{"Type": "forward", "TargetGroupArn": target_arn}]
    elbv2.create_listener(LoadBalancerArn=arn, Protocol="TCP", Port=443, DefaultActions=forward)
    if protected:
        on = [{"Key": "deletion_protection.enabled", "Value": "true"}]
        elbv2.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=on)
    return Balancer(arn, name, target_group=target_arn)


def by_controller(place: Place, cluster: str) -> Balancer:
    """A Network Load Balancer of the AWS load balancer controller, with its security groups; no tag names ownership."""
    elbv2 = place.account.client("elbv2")
    tags = {"elbv2.k8s.aws/cluster": cluster, "service.k8s.aws/stack": "shop/front"}
    group = security_group(place, f"k8s-traffic-{cluster}", {"elbv2.k8s.aws/cluster": cluster})
    name = f"k8s-shop-{cluster}"[:32]
    made = elbv2.create_load_balancer(Name=name, Type="network", Subnets=[place.subnet_id], Tags=pairs(tags))
    admit(place.account, place.node_group, group)
    return Balancer(made["LoadBalancers"][0]["LoadBalancerArn"], name, group)


def security_group(place: Place, name: str, tags: dict[str, str]) -> str:
    described = f"Security group {name}"
    group = place.ec2.create_security_group(GroupName=name, Description=described, VpcId=place.vpc_id)["GroupId"]
    if tags:
        place.ec2.create_tags(Resources=[group], Tags=pairs(tags))
    return str(group)


def admit(account: Account, group: str, source: str) -> None:
    """A rule that lets everything from one group into another."""
    rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": source, "Description": "from the load balancer"}]}
    account.client("ec2").authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])


def interface(place: Place, description: str, *groups: str, **tags: str) -> str:
    made = place.ec2.create_network_interface(
        SubnetId=place.subnet_id, Description=description, Groups=list(groups or [place.node_group])
    )["NetworkInterface"]["NetworkInterfaceId"]
    if tags:
        place.ec2.create_tags(Resources=[made], Tags=pairs(tags))
    return str(made)


def volume(account: Account, tags: dict[str, str], size: int = 8, zone: str = "us-west-2a") -> str:
    specification = [{"ResourceType": "volume", "Tags": pairs(tags)}] if tags else []
    made = account.client("ec2").create_volume(AvailabilityZone=zone, Size=size, TagSpecifications=specification)
    return str(made["VolumeId"])


def claimed(cluster: str, claim: str = "data-db-0") -> dict[str, str]:
    """Tags of a volume of the EBS CSI driver that was told the cluster's name."""
    return {
        "ebs.csi.aws.com/cluster": "true",
        "CSIVolumeName": f"pvc-{claim}",
        f"kubernetes.io/cluster/{cluster}": "owned",
        "KubernetesCluster": cluster,
        "kubernetes.io/created-for/pvc/name": claim,
        "kubernetes.io/created-for/pvc/namespace": "shop",
    }


def rules_naming(account: Account, group: str) -> list[str]:
    """Groups with rules that name a group."""
    found = account.client("ec2").describe_security_groups()["SecurityGroups"]
    return [
        each["GroupId"]
        for each in found
        for rule in (*each["IpPermissions"], *each["IpPermissionsEgress"])
        if group in [pair["GroupId"] for pair in rule.get("UserIdGroupPairs", ())]
    ]


def group_ids(account: Account) -> set[str]:
    return {
        security_group["GroupId"]
        for security_group in account.client("ec2").describe_security_groups()["SecurityGroups"]
    }


def balancer_names(account: Account) -> set[str]:
    """Names of all load balancers of either generation."""
    old = account.client("elb").describe_load_balancers()["LoadBalancerDescriptions"]
    new = account.client("elbv2").describe_load_balancers()["LoadBalancers"]
    return {each["LoadBalancerName"] for each in (*old, *new)}

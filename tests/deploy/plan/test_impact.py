"""What single changes mean for the cluster, word by word: what a person decides by, before anything happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from recorded import default_cluster
from test_impact_of_several_masters import THREE

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.impact.context import owner_of
from cfngen.deploy.plan.plan import Change, PropertyChange, Replacement
from cfngen.userdata.changed_parts import ARCHITECTURE_CHANGE, PROGRAM_CHANGES, UNKNOWN_CHANGE

NONE, DISRUPTIVE, DANGEROUS = Danger.NONE, Danger.DISRUPTIVE, Danger.DANGEROUS
WILL, MIGHT = Replacement.WILL, Replacement.MIGHT

EC2, ELB = "AWS::EC2::", "AWS::ElasticLoadBalancingV2::"
ASG, TEMPLATE, VOLUME = "AWS::AutoScaling::AutoScalingGroup", f"{EC2}LaunchTemplate", f"{EC2}Volume"
ENI, EIP, ASSOCIATION = f"{EC2}NetworkInterface", f"{EC2}EIP", f"{EC2}EIPAssociation"
VPC, SUBNET, ROUTE = f"{EC2}VPC", f"{EC2}Subnet", f"{EC2}Route"
SECURITY_GROUP, RULE = f"{EC2}SecurityGroup", f"{EC2}SecurityGroupIngress"
BALANCER, TARGETS, LISTENER = f"{ELB}LoadBalancer", f"{ELB}TargetGroup", f"{ELB}Listener"
BUCKET, KMS, SECRET = "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::SecretsManager::Secret"
ROLE, KEY_PAIR, PROGRAM = "AWS::IAM::Role", f"{EC2}KeyPair", "AWS::CloudFormation::WaitConditionHandle"

GROUP, NODES_TEMPLATE = "NodeGroupNodesAutoScalingGroup", "NodeGroupNodesLaunchTemplate"
SIZES = {"MinSize": "2", "MaxSize": "4"}
Path = tuple[str, str | None, str | None]


@dataclass(frozen=True)
class Changed:
    """A change of one resource.

    Attributes:
        how: further arguments of `meaning`.
    """

    logical_id: str
    type: str
    paths: tuple[Path, ...]
    how: dict[str, Any] = field(default_factory=dict)

    @property
    def meaning(self) -> Impact | None:
        return meaning(self.logical_id, self.type, *self.paths, **self.how)


def of(logical_id: str, type_: str, *paths: Path, **how: Any) -> Changed:
    return Changed(logical_id, type_, paths, how)


def touched(path: str) -> Path:
    return path, "a", "b"


def meaning(
    logical_id: str,
    type_: str,
    *paths: Path,
    cluster: Cluster | None = None,
    action: str = "update",
    replacement: Replacement = Replacement.NO,
    policy: str = "",
    certain: bool = True,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    note: str = "",
    masters: int = 0,
    instances: int | None = None,
) -> Impact | None:
    """What a change of a resource means, whose properties change at some paths; a new value of None is not told."""
    properties = tuple(
        PropertyChange(
            path if path[0] == "/" else f"/Properties/{path}",
            old,
            new,
            known=new is not None,
            certain=certain,
            note=note,
        )
        for path, old, new in paths
    )
    change = Change(logical_id, "id", type_, action, replacement, policy, properties)
    entry = ResourceChange(
        "Modify", logical_id, "id", type_, before={"Properties": before or {}}, after={"Properties": after or {}}
    )
    assessment = ImpactAssessment(cluster or default_cluster(), masters)
    return assessment.of_resource(change, entry, instance_count=instances)


def name(value: Any) -> str:
    return value.logical_id if isinstance(value, Changed) else ""


PAUSE = "in place, while it is in use; after that AWS allows no further change for about six hours"
LOST = "its data (etcd) would be LOST to the cluster"
UNREACHED = "existing nodes can no longer reach the API"
KUBECONFIGS = "existing kubeconfigs stop working, and its certificate names the old address until the"
EMPTIED = "(empty ones: what is on those of a replaced node is deleted with it)"
ARM = (
    "CPU architecture amd64 becomes arm64; pods whose images are not built for arm64 do not start on the new "
    "instances: look for such images first, or add a node group beside this one and move pods to it by the node label "
    "kubernetes.io/arch"
)
AMAZON_VPC = parse({"network": {"plugin": "amazon-vpc"}})
MAX_PODS = parse({"network": {"plugin": "amazon-vpc"}, "kubernetes": {"kubeletConfiguration": {"maxPods": 17}}})
MEANINGS: list[tuple[Changed, Danger, str]] = [
    (of("MasterAElasticIp", EIP, replacement=MIGHT), DANGEROUS,
     f"API address changes: its public address might be replaced; {KUBECONFIGS} master is replaced"),
    (of("MasterAElasticIp", EIP, action="remove"), DANGEROUS,
     f"API address changes: its public address is removed; {KUBECONFIGS} master is replaced"),
    (of("OtherElasticIp", EIP, replacement=WILL, cluster=THREE), DISRUPTIVE,
     "the public address by which a master reaches the internet is replaced"),
    (of("MasterANetworkInterface", ENI, replacement=WILL), DANGEROUS,
     f"API address changes: the private address of master a (its network interface) is replaced; {UNREACHED}"),
    (of("MasterANetworkInterface", ENI, action="remove"), DANGEROUS,
     f"API address changes: the private address of master a (its network interface) is removed; {UNREACHED}"),
    (of("MasterANetworkInterface", ENI, replacement=WILL, before={"PrivateIpAddress": "172.20.0.9"},
        after={"PrivateIpAddress": "172.20.0.9"}), DANGEROUS,
     ("API address changes: the private address of master a (its network interface) is replaced; the new "
      f"interface cannot get the address while the old one uses it, so the update may fail; {UNREACHED}")),
    (of("MasterANetworkInterface", ENI, replacement=WILL, before={"PrivateIpAddress": "172.20.0.9"},
        after={"PrivateIpAddress": "172.20.1.9"}), DANGEROUS,
     ("API address changes: the private address of master a (its network interface) is replaced from 172.20.0.9 "
      f"to 172.20.1.9; {UNREACHED}")),
    (of("MasterANetworkInterface", ENI, ("SubnetId", "subnet-1", "subnet-2"), replacement=MIGHT,
        before={"PrivateIpAddress": "172.20.0.9"}, after={"PrivateIpAddress": "172.20.0.9"}), DANGEROUS,
     f"API address changes: the private address of master a (its network interface) might be replaced; {UNREACHED}"),
    (of("OtherNetworkInterface", ENI, action="remove"), DANGEROUS,
     f"API address changes: the private address of a master (its network interface) is removed; {UNREACHED}"),
    (of("MasterANetworkInterface", ENI, action="remove", before={"PrivateIpAddress": "10.0.0.9"},
        after={"PrivateIpAddress": "10.0.0.9"}), DANGEROUS,
     f"API address changes: the private address of master a (its network interface) is removed; {UNREACHED}"),
    (of("MasterANetworkInterface", ENI, replacement=WILL, before={"PrivateIpAddress": "10.0.0.9"}), DANGEROUS,
     f"API address changes: the private address of master a (its network interface) is replaced; {UNREACHED}"),
    (of("MasterANetworkInterface", ENI, replacement=WILL, after={"PrivateIpAddress": "10.0.0.9"}), DANGEROUS,
     f"API address changes: the private address of master a (its network interface) is replaced; {UNREACHED}"),
    (of("MasterANetworkInterface", ENI, replacement=WILL, before={"PrivateIpAddress": "10.0.0.9"},
        after={"PrivateIpAddress": {"Fn::GetAtt": ["Other", "Address"]}}), DANGEROUS,
     f"API address changes: the private address of master a (its network interface) is replaced; {UNREACHED}"),
    (of("OtherNetworkInterface", ENI, touched("GroupSet/0")), DISRUPTIVE,
     "other security groups apply to a master at once"),
    (of("MasterAElasticIpAssociation", ASSOCIATION, action="remove"), DANGEROUS,
     ("API address changes: the master is reached by another public address, or by none; existing kubeconfigs "
      "stop working")),
    (of("MasterAElasticIpAssociation", ASSOCIATION, ("AllocationId", "eipalloc-1", "eipalloc-2"),
        replacement=WILL), DANGEROUS,
     ("API address changes: the master is reached by another public address, or by none; existing kubeconfigs "
      "stop working")),
    (of("MasterAElasticIpAssociation", ASSOCIATION, ("NetworkInterfaceId", "eni-1", None),
        replacement=MIGHT), DISRUPTIVE, "the API's public address might move to another network interface"),
    (of("MasterBElasticIpAssociation", ASSOCIATION, action="remove", cluster=THREE), DISRUPTIVE,
     "master b reaches the internet from another public address"),
    (of("OtherAssociation", ASSOCIATION, action="remove", cluster=THREE), DISRUPTIVE,
     "a master reaches the internet from another public address"),
    (of("MasterAElasticIpAssociation", ASSOCIATION, touched("NetworkInterfaceId"), replacement=WILL), DISRUPTIVE,
     "the API's public address moves to another network interface"),
    (of("ApiLoadBalancer", BALANCER, replacement=WILL), DANGEROUS,
     f"API address changes: its load balancer is replaced; {KUBECONFIGS} masters are replaced"),
    (of("ApiLoadBalancer", BALANCER, action="add"), DISRUPTIVE,
     "the API is reached through a load balancer from now on: fetch kubeconfigs again"),
    (of("ApiLoadBalancer", BALANCER, ("Subnets/1", "subnet-1", None)), DISRUPTIVE,
     "the API's load balancer gets an address in other zones, or loses one"),
    (of("ApiLoadBalancer", BALANCER, ("SecurityGroups/0", "sg-1", "sg-2")), DISRUPTIVE,
     "who may reach the API changes at once"),
    (of("ApiLoadBalancer", BALANCER, action="remove"), DANGEROUS,
     f"API address changes: its load balancer is removed; {KUBECONFIGS} masters are replaced"),
    (of("ApiTargetGroup", TARGETS, replacement=WILL), DISRUPTIVE,
     ("the target group of the API's load balancer is replaced; the API is unavailable until the masters are "
      "healthy again")),
    (of("ApiTargetGroup", TARGETS, ("Targets/2", None, "10.0.0.9")), NONE,
     "the API's load balancer forwards to other masters, to each as soon as it is healthy"),
    (of("ApiTargetGroup", TARGETS, ("HealthCheckPath", "/healthz", "/readyz")), NONE,
     "the settings of the API's load balancer's target group change"),
    (of("ApiListener", LISTENER, replacement=MIGHT), DISRUPTIVE,
     "the listener of the API's load balancer might be replaced; connections are interrupted"),
    (of("Vpc", VPC, replacement=WILL), DANGEROUS,
     ("network: the VPC is replaced, and with it everything in it: all instances, addresses and routes. Create "
      "a new cluster instead")),
    (of("Vpc", VPC, action="remove"), DANGEROUS,
     ("network: the VPC is removed, and with it everything in it: all instances, addresses and routes. Create a "
      "new cluster instead")),
    (of("Vpc", VPC, touched("/Properties/Tags[team]")), NONE, "tags only"),
    (of("Vpc", VPC, touched("/CreationPolicy"), touched("/UpdatePolicy")), NONE,
     "how instances are replaced from now on; none is replaced now"),
    (of("Vpc", VPC, touched("/DeletionPolicy"), touched("/UpdateReplacePolicy")), NONE,
     "what happens to it when it is removed or replaced later; nothing happens now"),
    (of("SubnetA", SUBNET, replacement=WILL), DANGEROUS,
     "network: the subnet in us-west-2a is replaced, with every instance and address in it, those of masters too"),
    (of("SubnetB", SUBNET, action="remove"), DANGEROUS,
     "network: the subnet in us-west-2b is removed, with every instance and address in it, those of masters too"),
    (of("SomebodysSubnet", SUBNET, replacement=WILL), DANGEROUS,
     "network: SomebodysSubnet is replaced, with every instance and address in it, those of masters too"),
    (of("RouteTo10x64x0x0x16InPrivateRouteTableA", ROUTE, action="remove"), DISRUPTIVE,
     "network: the route to 10.64.0.0/16 is removed; connections to it are interrupted"),
    (of("RouteToPl0123456789InRouteTable", ROUTE, ("TransitGatewayId", "tgw-1", "tgw-2")), DISRUPTIVE,
     "network: the way to pl-0123456789 changes at once"),
    (of("RouteTable", f"{EC2}RouteTable", replacement=WILL), DISRUPTIVE,
     ("network: the route table is replaced; pods of different nodes do not reach each other until the cloud "
      "controller manager has written its routes again")),
    (of("InternetGateway", f"{EC2}InternetGateway", action="remove"), DISRUPTIVE,
     "network: the route to the internet is removed; connections are interrupted"),
    (of("VpcCidrBlock100x64x0x0x16", f"{EC2}VPCCidrBlock", action="remove"), DISRUPTIVE,
     "network: the VPC's range 100.64.0.0/16 is removed; EC2 refuses that while a subnet lies in it"),
    (of("SubnetARouteTableAssociation", f"{EC2}SubnetRouteTableAssociation", replacement=WILL), DISRUPTIVE,
     "network: the route to the internet is replaced; connections are interrupted"),
    (of("InternetGatewayAttachment", f"{EC2}VPCGatewayAttachment", replacement=WILL), DISRUPTIVE,
     "network: the route to the internet is replaced; connections are interrupted"),
    (of("MasterSecurityGroup", SECURITY_GROUP, replacement=WILL), DISRUPTIVE,
     "the security group of the masters is replaced, with every rule in it"),
    (of("MasterSecurityGroup", SECURITY_GROUP, touched("SecurityGroupEgress/0/CidrIp")), DISRUPTIVE,
     "what instances may reach changes at once"),
    (of("ApiLoadBalancerSecurityGroup", SECURITY_GROUP, replacement=WILL), DISRUPTIVE,
     "the security group of the API's load balancer is replaced, with every rule in it"),
    (of("NodeSecurityGroup", SECURITY_GROUP, touched("SecurityGroupIngress/0/CidrIp")), DISRUPTIVE,
     "who may reach instances changes at once"),
    (of("MasterApiFrom10x0x0x0x8", RULE, action="add", after={"CidrIp": "0.0.0.0/0"}), DISRUPTIVE,
     "the API becomes reachable from 0.0.0.0/0 in addition: from the whole internet"),
    (of("MasterApiFromNodes", RULE, ("GroupId", "sg-1", None), replacement=WILL), NONE,
     "a rule between masters and nodes is recreated"),
    (of("NodeSshFrom10x0x0x0x8", RULE, action="add", after={"CidrIp": "0.0.0.0/0"}), DISRUPTIVE,
     "SSH of the nodes becomes reachable from 0.0.0.0/0 in addition: from the whole internet"),
    (of("MasterApiFromAllowedCidr", RULE, action="add"), NONE,
     "the API becomes reachable from a further range in addition"),
    (of("MasterApiFromAllowedCidr", RULE, action="remove"), DISRUPTIVE,
     "the API is no longer reachable from a range"),
    (of("ApiLoadBalancerFrom10x0x0x0x8", RULE, action="add", after={"SourcePrefixListId": "pl-1"}), NONE,
     "the API becomes reachable from pl-1 in addition"),
    (of("MasterApiFromAllowedCidr", RULE, ("CidrIp", "10.0.0.0/8", "0.0.0.0/0"), replacement=WILL), DISRUPTIVE,
     "the API becomes reachable from 0.0.0.0/0: from the whole internet, and no longer from 10.0.0.0/8"),
    (of("MasterApiFromAllowedCidr", RULE, ("GroupId", "sg-1", None), replacement=WILL,
        before={"CidrIp": "10.0.0.0/8"}, after={"CidrIp": "10.0.0.0/8"}), NONE,
     "the rule that lets 10.0.0.0/8 reach the API is recreated"),
    (of("MasterApiFromNodes", RULE, action="remove"), DISRUPTIVE,
     "masters and nodes may no longer reach each other by this rule"),
    (of("MasterKubeletFromMasters", RULE, touched("IpProtocol")), DISRUPTIVE,
     "masters and nodes may reach each other on other ports"),
    (of("MasterKubeletFromMasters", RULE, touched("FromPort")), DISRUPTIVE,
     "masters and nodes may reach each other on other ports"),
    (of("MasterKubeletFromMasters", RULE, touched("ToPort")), DISRUPTIVE,
     "masters and nodes may reach each other on other ports"),
    (of("NodeSshFrom10x0x0x0x8", RULE, action="remove"), DISRUPTIVE,
     "SSH of the nodes is no longer reachable from 10.0.0.0/8"),
    (of("NodeSshFrom10x0x0x0x8", RULE, action="remove", before={"SourcePrefixListId": "pl-1"}), DISRUPTIVE,
     "SSH of the nodes is no longer reachable from pl-1"),
    (of("NodeSshFrom10x0x0x0x8", RULE, action="remove", before={"SourceSecurityGroupId": "sg-1"}), DISRUPTIVE,
     "SSH of the nodes is no longer reachable from sg-1"),
    (of("MasterApiFrom10x0x0x0x8", RULE, ("CidrIp", None, "10.1.0.0/16"), replacement=WILL), DISRUPTIVE,
     "the API becomes reachable from 10.1.0.0/16, and no longer from 10.0.0.0/8"),
    (of("MasterApiFromAllowedCidr", RULE, touched("GroupId"), replacement=MIGHT,
        after={"CidrIp": "10.0.0.0/8"}), NONE, "the rule that lets a range reach the API is recreated"),
    (of("MasterApiFrom10x0x0x0x8", RULE, action="add", cluster=THREE), NONE,
     "the API becomes reachable from 10.0.0.0/8 in addition"),
    (of("MasterApiFrom10x0x0x0x8", RULE, touched("GroupId"), replacement=WILL, cluster=THREE), NONE,
     "the rule that lets 10.0.0.0/8 reach the API is recreated"),
    (of("MasterApiFrom10x0x0x0x8", RULE, action="remove", cluster=THREE, before={"CidrIp": "10.2.0.0/16"}), NONE,
     "10.2.0.0/16 no longer reaches masters directly, but through the API's load balancer"),
    (of("MasterApiFrom10x0x0x0x8", RULE, action="remove", cluster=THREE), NONE,
     "10.0.0.0/8 no longer reaches masters directly, but through the API's load balancer"),
    (of("MasterApiFromAllowedCidr", RULE, action="remove", cluster=THREE), NONE,
     "a range no longer reaches masters directly, but through the API's load balancer"),
    (of("ApiLoadBalancerFrom10x0x0x0x8", RULE, action="remove", cluster=THREE), DISRUPTIVE,
     "the API is no longer reachable from 10.0.0.0/8"),
    (of("NodeGroupNodesTcp30080From10x0x0x0x8", RULE, action="add"), NONE,
     "TCP 30080 of node group `nodes` becomes reachable from 10.0.0.0/8 in addition"),
    (of("NodeGroupNodesTcp30000To32767FromSg0123abcd", RULE, action="add"), NONE,
     "TCP 30000-32767 of node group `nodes` becomes reachable from sg-0123abcd in addition"),
    (of("NodeGroupNodesAllFromPl0123abcd", RULE, action="remove"), DISRUPTIVE,
     "all traffic of node group `nodes` is no longer reachable from pl-0123abcd"),
    (of("NodeGroupNodesTcp80From0x0x0x0x0", RULE, action="add"), DANGEROUS,
     "TCP 80 of node group `nodes` becomes reachable from 0.0.0.0/0 in addition: from the whole internet"),
    (of("MasterIcmpFrom0x0x0x0x0", RULE, action="add"), DANGEROUS,
     "ICMP of the masters becomes reachable from 0.0.0.0/0 in addition: from the whole internet"),
    (of("BastionUdp51820From10x0x0x0x8", RULE, ("CidrIp", "10.0.0.0/8", "0.0.0.0/0"), replacement=WILL), DANGEROUS,
     ("UDP 51820 of the bastion becomes reachable from 0.0.0.0/0: from the whole internet, and no longer from "
      "10.0.0.0/8")),
    (of("NodeGroupNodesSecurityGroup", SECURITY_GROUP, action="add"), NONE,
     ("node group `nodes` gets a security group of its own: nodes that run without it are replaced once, and no rule "
      "that is added to it later replaces any")),
    (of("NodeGroupNodesSecurityGroup", SECURITY_GROUP, action="remove"), DISRUPTIVE,
     "the security group of the node group `nodes` is removed, with every rule in it"),
    (of("MasterAAutoScalingGroup", ASG, action="remove"), DANGEROUS, "master a is removed: the API is lost with it"),
    (of("NodeGroupGoneByNowAutoScalingGroup", ASG, action="remove"), DISRUPTIVE,
     "node group `gone-by-now` is removed with its instances, all at once; their pods are not drained first"),
    (of(GROUP, ASG, ("MinSize", "2", "1"), ("MaxSize", "4", "8")), NONE,
     "node group `nodes` changes from 2-4 to 1-8: no instance is replaced"),
    (of(GROUP, ASG, touched("Tags/0/Value")), NONE, "tags only; instances get them when they are next replaced"),
    (of(GROUP, ASG, ("MaxSize", "4", "8"), before=SIZES, after={"MinSize": "2", "MaxSize": "8"}), NONE,
     "node group `nodes` grows from 2-4 to 2-8: no instance is replaced"),
    (of(GROUP, ASG, ("LaunchTemplate/Version", "1", None), ("MinSize", "4", "1"), ("MaxSize", "4", "2")), DISRUPTIVE,
     ("node group `nodes`: its instances are replaced one at a time; pods are not drained first; node group "
      "`nodes` shrinks from 4 to 1-2: instances above 2 are terminated; their pods are not drained first")),
    (of(GROUP, ASG, ("LaunchTemplate/Version", "1", None), ("MinSize", "0", "0"), ("MaxSize", "3", "8"),
        instances=0), NONE,
     ("node group `nodes` has no instances now; future instances get the new configuration; it grows from 0-3 "
      "to 0-8")),
    (of(GROUP, ASG, ("LaunchTemplate/Version", "1", None), ("MinSize", "0", "0"), ("MaxSize", "3", "8")), DISRUPTIVE,
     ("node group `nodes`: its instances are replaced one at a time; pods are not drained first; it grows from "
      "0-3 to 0-8")),
    (of("MasterAAutoScalingGroup", ASG, replacement=MIGHT), DANGEROUS,
     "master a might be replaced: the API is lost with it"),
    (of(GROUP, ASG, action="remove",
        before={"LifecycleHookSpecificationList": [{"LifecycleHookName": "cfngen-drain"}]}), DISRUPTIVE,
     "node group `nodes` is removed with its instances, all at once; their pods are drained first"),
    (of("MasterAAutoScalingGroup", ASG, ("LaunchTemplate/Version", "1", "2")), DISRUPTIVE,
     ("master a is replaced; it is the only master, so the API is unavailable while it boots. Pods keep running "
      "meanwhile")),
    (of(GROUP, ASG, ("VPCZoneIdentifier/0", "subnet-1", "subnet-2"),
        before={"LifecycleHookSpecificationList": [{"LifecycleHookName": "cfngen-drain"}]}), DISRUPTIVE,
     ("node group `nodes`: its instances are replaced one at a time; pods are drained first; node group `nodes` "
      "may launch instances in other subnets, and so in other zones")),
    (of(GROUP, ASG, ("LifecycleHookSpecificationList/0/LifecycleHookName", None, "cfngen-drain"),
        after={"LifecycleHookSpecificationList": [{"LifecycleHookName": "cfngen-drain"}]}), NONE,
     "from now on pods of node group `nodes` are drained before an instance is terminated"),
    (of(GROUP, ASG, ("LifecycleHookSpecificationList/0/LifecycleHookName", "cfngen-drain", None),
        before={"LifecycleHookSpecificationList": [{"LifecycleHookName": "cfngen-drain"}]}), NONE,
     "from now on pods of node group `nodes` are no longer drained before an instance is terminated"),
    (of(GROUP, ASG, ("MinSize", "4", "1"), ("MaxSize", "8", "2"),
        before={"LifecycleHookSpecificationList": [{"LifecycleHookName": "cfngen-drain"}]}), DISRUPTIVE,
     "node group `nodes` shrinks from 4-8 to 1-2: instances above 2 are terminated; their pods are drained first"),
    (of(GROUP, ASG, ("MinSize", "4", "2"), ("MaxSize", "8", "8")), NONE,
     "node group `nodes` shrinks from 4-8 to 2-8: no instance is replaced"),
    (of(GROUP, ASG, ("DesiredCapacity", "2", "3"), before=SIZES, after=SIZES), DISRUPTIVE,
     "node group `nodes` is set to 3 instances"),
    (of(GROUP, ASG, ("DesiredCapacity", "2", "1"), before=SIZES, after=SIZES), DISRUPTIVE,
     "node group `nodes` is set to 1 instance"),
    (of(GROUP, ASG, ("DesiredCapacity", "2", "0"), before=SIZES, after=SIZES), DISRUPTIVE,
     "node group `nodes` is set to 0 instances"),
    (of(GROUP, ASG,
        ("Tags[k8s.io/cluster-autoscaler/node-template/autoscaling-options/scaledownunneededtime]", None, "5m")), NONE,
     ("cluster-autoscaler gets other settings of node group `nodes` within a minute; no instance is replaced "
      "for that")),
    (of(GROUP, ASG, ("Tags[k8s.io/cluster-autoscaler/node-template/resources/cpu]", "1900m", "3900m")), NONE,
     ("cluster-autoscaler gets other settings of node group `nodes` within a minute; no instance is replaced "
      "for that")),
    (of(GROUP, ASG, ("Tags[k8s.io/cluster-autoscaler/enabled]", "true", None)), NONE,
     "cluster-autoscaler leaves node group `nodes` alone from now on: only you change its size"),
    (of(GROUP, ASG, ("Tags[k8s.io/cluster-autoscaler/enabled]", None, "true")), NONE,
     "cluster-autoscaler may change the size of node group `nodes` from now on"),
    (of("MasterAAutoScalingGroup", ASG, replacement=WILL), DANGEROUS,
     "master a is replaced: the API is lost with it"),
    (of("Others", ASG, action="remove"), DISRUPTIVE,
     "Others is removed with its instances, all at once; their pods are not drained first"),
    (of("MasterBAutoScalingGroup", ASG, action="add"), NONE, "new master b: it joins the existing masters"),
    (of(GROUP, ASG, touched("AvailabilityZones/0")), DISRUPTIVE,
     "node group `nodes`: its instances are replaced one at a time; pods are not drained first"),
    (of(GROUP, ASG, touched("MixedInstancesPolicy/0")), DISRUPTIVE,
     "node group `nodes`: its instances are replaced one at a time; pods are not drained first"),
    (of(GROUP, ASG, touched("LaunchTemplate/Version"), certain=False), DISRUPTIVE,
     "node group `nodes`: its instances might be replaced one at a time; pods are not drained first"),
    (of("MasterAAutoScalingGroup", ASG, touched("LaunchTemplate/Version"), certain=False, masters=3), DISRUPTIVE,
     "master a might be replaced, one master at a time; the API stays up while the others work"),
    (of("MasterAAutoScalingGroup", ASG, touched("LaunchTemplate/Version"), cluster=THREE), DISRUPTIVE,
     "master a is replaced, one master at a time; the API stays up while the others work"),
    (of(GROUP, ASG, ("DesiredCapacity", "3", None), before=SIZES, after=SIZES), DISRUPTIVE,
     "node group `nodes` has no desired size any more"),
    (of(GROUP, ASG, ("DesiredCapacity", "2", "3"), before={"MaxSize": "4"}, after=SIZES), NONE,
     "node group `nodes` is resized"),
    (of(GROUP, ASG, ("DesiredCapacity", "2", "3"), before={"MinSize": "2"}, after=SIZES), NONE,
     "node group `nodes` is resized"),
    (of(GROUP, ASG, ("DesiredCapacity", "2", "3"), before=SIZES, after={"MaxSize": "4"}), NONE,
     "node group `nodes` is resized"),
    (of(GROUP, ASG, ("DesiredCapacity", "2", "3"), before=SIZES, after={"MinSize": "2"}), NONE,
     "node group `nodes` is resized"),
    (of(GROUP, ASG, ("MinSize", "2", "2"), ("MaxSize", "4", "3")), DISRUPTIVE,
     ("node group `nodes` shrinks from 2-4 to 2-3: instances above 3 are terminated; their pods are not drained "
      "first")),
    (of(GROUP, ASG, ("MinSize", "2", "3"), ("MaxSize", "4", "4")), NONE,
     "node group `nodes` grows from 2-4 to 3-4: no instance is replaced, and 3 run at least"),
    (of(GROUP, ASG, ("MinSize", "2", "3"), ("MaxSize", "8", "4")), DISRUPTIVE,
     ("node group `nodes` changes from 2-8 to 3-4: instances above 4 are terminated; their pods are not drained "
      "first")),
    (of(GROUP, ASG, touched("VPCZoneIdentifier/0"),
        ("LifecycleHookSpecificationList/0/LifecycleHookName", "a", None), certain=False), DISRUPTIVE,
     ("node group `nodes`: its instances might be replaced one at a time; pods are not drained first; node "
      "group `nodes` may launch instances in other subnets, and so in other zones; from now on pods of node "
      "group `nodes` are no longer drained before an instance is terminated")),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "t3.small", "t3.large"),
        ("LaunchTemplateData/ImageId", "ami-1", "ami-2"),
        ("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeSize", "32", "64")), NONE,
     "new instances have type t3.large, the image ami-2 and root volumes of 64 GiB"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "m6i.large", "m7g.large")), DISRUPTIVE,
     f"new instances have type m7g.large; node group `nodes`: {ARM}"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "g5.xlarge", "m6i.xlarge")), DISRUPTIVE,
     ("new instances have type m6i.xlarge; node group `nodes`: no GPUs any more (1 A10G before); pods that request "
      "them stay pending; node group `nodes`: no local disks any more (250 GB before)")),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "g5.12xlarge", "g5.xlarge")), DISRUPTIVE,
     ("new instances have type g5.xlarge; node group `nodes`: GPUs: 1 A10G instead of 4 A10G; node group `nodes`: "
      "local disks of 250 GB instead of 3800 GB")),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "g5.12xlarge", "g5.24xlarge")), NONE,
     "new instances have type g5.24xlarge"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "g5.8xlarge", "g4dn.16xlarge")), DISRUPTIVE,
     "new instances have type g4dn.16xlarge; node group `nodes`: GPUs: 1 T4 instead of 1 A10G"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "m6i.large", "t3.medium"), cluster=AMAZON_VPC),
     DISRUPTIVE,
     ("new instances have type t3.medium; node group `nodes`: 17 pods at most on an instance instead of 29; others "
      "wait for further nodes")),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "m6i.large", "t3.medium"), cluster=MAX_PODS),
     NONE, "new instances have type t3.medium"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "m6i.xlarge", "g5.xlarge")), NONE,
     "new instances have type g5.xlarge"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/UserData", "a", "b"),
        note=ARCHITECTURE_CHANGE.format(old="amd64", new="arm64")), DISRUPTIVE,
     f"new instances have another configuration; node group `nodes`: {ARM}"),
    (of("MasterALaunchTemplate", TEMPLATE, ("LaunchTemplateData/UserData", "a", "b"),
        note="add-on headlamp 0.45.0 is installed"), NONE,
     ("new instances have another configuration; a new master applies the add-ons to the cluster; no node is replaced "
      "for them")),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/UserData", "a", "b"), note=f"{PROGRAM_CHANGES} (machine)"),
     NONE, "new instances have another boot program"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/UserData", "a", "b"), note=f"a changes; {PROGRAM_CHANGES} (b)"),
     NONE, "new instances have another boot program and configuration"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/UserData", "a", "b"), note=UNKNOWN_CHANGE), NONE,
     "new instances have another boot program or configuration"),
    (of(NODES_TEMPLATE, TEMPLATE, replacement=WILL), NONE,
     "a new launch template replaces it, and its group uses the new one"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceMarketOptions", None, "spot")), NONE,
     "new instances have spot pricing, so AWS may reclaim them at any time"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceMarketOptions", "spot", None)), NONE,
     "new instances have another purchase option (spot or on demand)"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/InstanceType", "a", None)), NONE,
     "new instances have another type"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/ImageId", "a", None)), NONE,
     "new instances have another image"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeSize", "a", None)), NONE,
     "new instances have other root volumes"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/UserData", "a", None)), NONE,
     "new instances have another boot program or configuration"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/IamInstanceProfile/Arn", "a", None)), NONE,
     "new instances have another instance profile"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/NetworkInterfaces/0/Groups", "a", None)), NONE,
     "new instances have other network settings"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/KeyName", "a", None)), NONE,
     "new instances have another SSH key"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/MetadataOptions/HttpTokens", "a", None)), NONE,
     "new instances have other metadata settings"),
    (of(NODES_TEMPLATE, TEMPLATE, ("LaunchTemplateData/TagSpecifications/0/Tags", "a", None)), NONE,
     "new instances have other tags"),
    (of(NODES_TEMPLATE, TEMPLATE, touched("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeType"),
        after={"LaunchTemplateData": {"BlockDeviceMappings": [{"Ebs": {"VolumeSize": "32"}}]}}), NONE,
     "new instances have other root volumes"),
    (of(NODES_TEMPLATE, TEMPLATE, touched("LaunchTemplateData/BlockDeviceMappings"),
        after={"LaunchTemplateData": {"BlockDeviceMappings": []}}), NONE, "new instances have other root volumes"),
    (of(NODES_TEMPLATE, TEMPLATE, touched("LaunchTemplateData/BlockDeviceMappings"),
        ("LaunchTemplateData/BlockDeviceMappings/1/Ebs/VolumeSize", "1", "2"),
        after={"LaunchTemplateData": {"BlockDeviceMappings": [{"Ebs": {"VolumeSize": "64"}}]}}), NONE,
     "new instances have root volumes of 64 GiB"),
    (of(NODES_TEMPLATE, TEMPLATE, touched("LaunchTemplateData/BlockDeviceMappings/1/Ebs/VolumeSize"),
        after={"LaunchTemplateData": {"BlockDeviceMappings": [{}, {"Ebs": {"VolumeSize": "64"}}]}}), NONE,
     f"new instances have different further volumes {EMPTIED}"),
    (of(NODES_TEMPLATE, TEMPLATE, touched("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeSize"),
        before={"LaunchTemplateData": {"BlockDeviceMappings": [{}, {}]}}), NONE,
     "new instances have root volumes of b GiB"),
    (of(NODES_TEMPLATE, TEMPLATE, touched("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeSize"),
        touched("LaunchTemplateData/BlockDeviceMappings/1"),
        before={"LaunchTemplateData": {"BlockDeviceMappings": [{}, {}]}}), NONE,
     f"new instances have root volumes of b GiB and different further volumes {EMPTIED}"),
    (of(NODES_TEMPLATE, TEMPLATE, touched("LaunchTemplateName")), NONE,
     "new instances are launched with other settings"),
    (of("MasterAVolume", VOLUME, action="remove", policy="snapshot"), DANGEROUS,
     f"the data volume of master a is removed: {LOST}; only a snapshot of the old volume is kept"),
    (of("MasterAVolume", VOLUME, action="remove", policy="delete"), DANGEROUS,
     f"the data volume of master a is removed: {LOST}; the old volume is deleted for good"),
    (of("MasterAVolume", VOLUME, action="remove", policy="retain"), DANGEROUS,
     f"the data volume of master a is removed: {LOST}; the old volume is kept, unattached"),
    (of("MasterAVolume", VOLUME, replacement=WILL), DANGEROUS,
     (f"the data volume of master a is replaced: {LOST}, and the master refuses to start with an empty volume; "
      "CloudFormation does not say what happens to the old volume")),
    (of("MasterAVolume", VOLUME, replacement=MIGHT), DANGEROUS,
     (f"the data volume of master a might be replaced: {LOST}, and the master refuses to start with an empty "
      "volume; CloudFormation does not say what happens to the old volume")),
    (of("MasterAVolume", VOLUME, ("Size", "40", "20")), DISRUPTIVE,
     "the data volume of master a would shrink from 40 to 20 GiB: AWS refuses that, and the update fails"),
    (of("MasterAVolume", VOLUME, ("Size", "20", "40")), NONE,
     (f"the data volume of master a grows from 20 to 40 GiB {PAUSE}; its file system follows at the master's "
      "next boot")),
    (of("MasterAVolume", VOLUME, ("VolumeType", "gp2", "gp3")), NONE,
     f"the data volume of master a becomes gp3 {PAUSE}"),
    (of("MasterAVolume", VOLUME, action="remove"), DANGEROUS,
     f"the data volume of master a is removed: {LOST}; CloudFormation does not say what happens to the old volume"),
    (of("OtherVolume", VOLUME, action="remove", policy="retain"), DANGEROUS,
     f"the data volume of a master is removed: {LOST}; the old volume is kept, unattached"),
    (of("OtherVolume", VOLUME, replacement=MIGHT, policy="delete"), DANGEROUS,
     (f"the data volume of a master might be replaced: {LOST}, and the master refuses to start with an empty "
      "volume; the old volume is deleted for good")),
    (of("MasterAVolume", VOLUME, replacement=WILL, policy="snapshot"), DANGEROUS,
     (f"the data volume of master a is replaced: {LOST}, and the master refuses to start with an empty volume; "
      "only a snapshot of the old volume is kept")),
    (of("MasterAVolume", VOLUME, touched("AvailabilityZone")), DISRUPTIVE,
     "the data volume of master a would change in a way that AWS refuses: the update fails"),
    (of("MasterAVolume", VOLUME, touched("Encrypted")), DISRUPTIVE,
     "the data volume of master a would change in a way that AWS refuses: the update fails"),
    (of("MasterAVolume", VOLUME, touched("KmsKeyId")), DISRUPTIVE,
     "the data volume of master a would change in a way that AWS refuses: the update fails"),
    (of("MasterAVolume", VOLUME, touched("SnapshotId")), DISRUPTIVE,
     "the data volume of master a would change in a way that AWS refuses: the update fails"),
    (of("MasterAVolume", VOLUME, touched("OutpostArn")), DISRUPTIVE,
     "the data volume of master a would change in a way that AWS refuses: the update fails"),
    (of("MasterAVolume", VOLUME, touched("Throughput"), after={"VolumeType": "gp3"}), NONE,
     f"the data volume of master a changes {PAUSE}"),
    (of("MasterAVolume", VOLUME, ("VolumeType", "gp2", None)), NONE, f"the data volume of master a changes {PAUSE}"),
    (of("MasterAVolume", VOLUME, ("Size", "20", None), ("Iops", "1", "2")), NONE,
     f"the data volume of master a changes {PAUSE}"),
    (of("MasterAVolume", VOLUME, ("Size", None, "20"), ("Iops", "1", "2")), NONE,
     f"the data volume of master a changes {PAUSE}"),
    (of("MasterAVolume", VOLUME, touched("Iops"), before={"Size": "20"}, after={"Size": "20"}), NONE,
     f"the data volume of master a changes {PAUSE}"),
    (of("NodeRole", ROLE, replacement=WILL), DISRUPTIVE, "permissions: the role of the nodes is replaced"),
    (of("NodeGroupNodesRole", ROLE, action="remove"), DISRUPTIVE,
     "permissions: the role of the nodes of node group `nodes` is removed"),
    (of("MasterRole", ROLE, ("Policies/0/PolicyDocument", "{}", "[]")), NONE,
     "permissions of the masters change at once"),
    (of("NodeRole", ROLE, touched("ManagedPolicyArns")), NONE, "permissions of the nodes change at once"),
    (of("NodeRole", ROLE, touched("PermissionsBoundary")), NONE, "permissions of the nodes change at once"),
    (of("NodeRole", ROLE, touched("AssumeRolePolicyDocument")), NONE, "permissions of the nodes change at once"),
    (of("NodeGroupNodesRole", ROLE, touched("Policies/0")), NONE,
     "permissions of the nodes of node group `nodes` change at once"),
    (of("SshKeyPair", KEY_PAIR, action="remove"), NONE,
     "the SSH key pair is removed; running instances keep the key"),
    (of("SshKeyPair", KEY_PAIR, replacement=WILL), NONE,
     "the SSH key pair is replaced; instances get it when they are replaced"),
    (of("MasterAProgram0123456789ab", PROGRAM, action="remove"), NONE,
     "the previous boot program of master a; no instance downloads it any more"),
    (of("NodeGroupNodesProgram0123456789ab", PROGRAM, action="add"), NONE,
     "the boot program of node group `nodes`, stored as metadata; nothing is created in AWS"),
    (of("Program0123456789ab", PROGRAM, action="add"), NONE,
     "the boot program of the masters, stored as metadata; nothing is created in AWS"),
    (of("SecretsKey", KMS, action="remove"), DANGEROUS,
     ("secrets: the key that encrypts them is removed; certificate authorities would be lost with it once its "
      "waiting period is over")),
    (of("SecretsKey", KMS, touched("KeyPolicy")), NONE, "who may use the key of the cluster's secrets changes"),
    (of("SecretsKey", KMS, replacement=WILL), DANGEROUS,
     ("secrets: the key that encrypts them is replaced; certificate authorities would be lost with it once its "
      "waiting period is over")),
    (of("CaSecret", SECRET, replacement=WILL), DANGEROUS,
     ("secrets: the certificate authorities is replaced and would be lost; no instance could join, and no "
      "replaced master would start")),
    (of("JoinSecret", SECRET, replacement=WILL), DISRUPTIVE,
     "secrets: the join information is replaced; no node joins until the masters have written it again"),
    (of("CaSecret", SECRET, action="remove"), DANGEROUS,
     ("secrets: the certificate authorities is removed and would be lost; no instance could join, and no "
      "replaced master would start")),
    (of("BackupBucket", BUCKET, ("LifecycleConfiguration/Rules/0/ExpirationInDays", "7", "3")), NONE,
     "backups: the retention of snapshots changes, also for existing snapshots"),
    (of("BackupBucket", BUCKET, touched("ObjectLockEnabled")), DISRUPTIVE,
     ("backups: S3 Object Lock is turned on for the bucket, and can never be turned off again, not even by a "
      "rollback; masters lock each new snapshot, existing ones stay without a lock")),
    (of("EtcdBackupBucket", BUCKET, replacement=WILL), DISRUPTIVE,
     ("backups: the bucket id no longer belongs to the cluster; it is kept with all its snapshots, but `cfngen "
      "etcd list` no longer finds them")),
]  # fmt: skip


@pytest.mark.parametrize(("change", "danger", "text"), MEANINGS, ids=name)
def test_what_a_change_means(change: Changed, danger: Danger, text: str) -> None:
    impact = change.meaning
    assert impact is not None
    assert (impact.text, impact.danger) == (text, danger)


@pytest.mark.parametrize(
    "change",
    [
        of("MasterAElasticIp", EIP, touched("Tags/0/Value"), action="add"),
        of("ApiTargetGroup", TARGETS, action="add"),
        of("Vpc", VPC, action="add"),
        of("SubnetA", SUBNET, action="add"),
        of("ApiListener", LISTENER, action="add"),
        of("NodeRole", ROLE, action="add"),
        of(NODES_TEMPLATE, TEMPLATE, action="add"),
        of(GROUP, ASG, action="add"),
        of("MasterAVolume", VOLUME, action="add"),
        of("SshKeyPair", KEY_PAIR, action="add"),
        of("MasterANetworkInterface", ENI, touched("Description")),
        of("MasterAElasticIpAssociation", ASSOCIATION, touched("AllocationId"), action="add"),
        of("ApiLoadBalancer", BALANCER, touched("LoadBalancerAttributes")),
        of("ApiListener", LISTENER, touched("DefaultActions")),
        of("Vpc", VPC, touched("EnableDnsSupport")),
        of("SubnetA", SUBNET, touched("MapPublicIpOnLaunch")),
        of("RouteTable", f"{EC2}RouteTable", touched("Routes")),
        of("NodeSecurityGroup", SECURITY_GROUP, touched("Other")),
        of("MasterKubeletFromMasters", RULE, touched("Description")),
        of("MasterKubeletFromMasters", RULE, touched("Description"), action="add"),
        of("MasterApiFrom10x0x0x0x8", RULE, touched("Description")),
        of("MasterAVolume", VOLUME, touched("AutoEnableIO")),
        of("NodeRole", ROLE, touched("Description")),
        of("SshKeyPair", KEY_PAIR, touched("Other")),
        of("SecretsKey", KMS, touched("Enabled")),
        of("CaSecret", SECRET, touched("Description")),
        of("EtcdBackupBucket", BUCKET, touched("VersioningConfiguration")),
        of(GROUP, ASG, touched("Cooldown")),
        of("Vpc", VPC, touched("/Metadata")),
        of("Something", f"{EC2}DHCPOptions", touched("Other")),
    ],
    ids=name,
)
def test_what_hurts_nobody_needs_no_words(change: Changed) -> None:
    assert change.meaning is None


@pytest.mark.parametrize(
    ("logical_id", "whose", "master"),
    [
        ("MasterAAutoScalingGroup", "master a", True),
        ("MasterELaunchTemplate", "master e", True),
        ("MasterFLaunchTemplate", "", False),
        ("MasterSecurityGroup", "", False),
        ("NodeGroupNodesStack", "node group `nodes`", False),
        ("NodeGroupSpotOnesLaunchTemplate", "node group `spot-ones`", False),
        ("NodeGroupSpotOnesProgram0123456789ab", "node group `spot-ones`", False),
        ("MasterProgram0123456789ab", "", False),
        # No template has these.
        ("NodeGroupSpotOnesWaitCondition", "", False),
        ("MasterAStack", "", False),
        ("MasterARole", "", False),
        ("NodeGroupNodes", "", False),
        *(
            (f"MasterA{part}", "master a", True)
            for part in (
                "Address",
                "Program0123456789ab",
                "LaunchTemplate",
                "AutoScalingGroup",
                "NetworkInterface",
                "Volume",
                "ElasticIp",
                "ElasticIpAssociation",
                "WaitCondition",
            )
        ),
    ],
)
def test_whose_a_resource_is(logical_id: str, whose: str, master: bool) -> None:
    assert owner_of(default_cluster(), logical_id) == (whose, master)


@pytest.mark.parametrize(
    "type_",
    [
        "AWS::CloudFormation::Stack",
        "AWS::DynamoDB::Table",
        EIP,
        ENI,
        SUBNET,
        VPC,
        VOLUME,
        "AWS::EFS::FileSystem",
        BALANCER,
        KMS,
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        BUCKET,
        SECRET,
    ],
)
def test_what_lasts_is_dangerous_to_lose_and_not_to_make_or_change(type_: str) -> None:
    def danger(action: str, replacement: Replacement = Replacement.NO) -> Danger:
        return ImpactAssessment(default_cluster()).danger(Change("Thing", "id", type_, action, replacement))

    assert {danger("remove"), danger("update", WILL), danger("update", MIGHT)} == {DANGEROUS}
    assert {danger("add"), danger("update")} == {NONE}


def test_what_holds_nothing_may_go() -> None:
    gone = Change("Thing", "id", "AWS::EC2::DHCPOptions", "remove", Replacement.NO)
    assert ImpactAssessment(default_cluster()).danger(gone) is NONE


def test_of_a_group_that_rolls_and_grows_only_the_rolling_hurts():
    rolls, grows = ("LaunchTemplate/Version", "1", None), [("MinSize", "3", "3"), ("MaxSize", "6", "8")]
    both = meaning("NodeGroupNodesAutoScalingGroup", ASG, rolls, *grows, instances=3)
    assert (both.danger, both.dangerous_part) == (
        DISRUPTIVE,
        "node group `nodes`: its instances are replaced one at a time; pods are not drained first",
    )
    assert both.text == f"{both.dangerous_part}; it grows from 3-6 to 3-8"
    alone = meaning("NodeGroupNodesAutoScalingGroup", ASG, *grows, instances=3)
    assert (alone.danger, alone.dangerous_part) == (NONE, "")


def test_what_aws_refuses_is_marked_so() -> None:
    for change in (("Encrypted", "false", "true"), ("Size", "40", "20")):
        impact = meaning("MasterAVolume", VOLUME, change)
        assert impact is not None
        assert impact.fails
    growing = meaning("MasterAVolume", VOLUME, ("Size", "20", "40"))
    assert growing is not None
    assert not growing.fails

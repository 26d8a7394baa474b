"""Dangers of network and instance changes, word by word: what a person decides by, before anything happens."""

from __future__ import annotations

from typing import Any

import pytest
from test_impact import (
    ASG,
    ASSOCIATION,
    DANGEROUS,
    DISRUPTIVE,
    EC2,
    EIP,
    ENI,
    MIGHT,
    NONE,
    RULE,
    TEMPLATE,
    VOLUME,
    WILL,
    meaning,
)

ELB = "AWS::ElasticLoadBalancingV2::"
BALANCER, TARGETS, LISTENER = f"{ELB}LoadBalancer", f"{ELB}TargetGroup", f"{ELB}Listener"
ALLOCATION = ("AllocationId", "eipalloc-1", "eipalloc-2")

NETWORK: list[tuple[tuple[Any, ...], dict[str, Any], Any, str]] = [
    (
        ("MasterANetworkInterface", ENI),
        {
            "replacement": WILL,
            "before": {"PrivateIpAddress": "172.20.0.9"},
            "after": {"PrivateIpAddress": "172.20.1.9"},
        },
        DANGEROUS,
        (
            "API address changes: the private address of master a (its network interface) is replaced from "
            "172.20.0.9 to 172.20.1.9; existing nodes can no longer reach the API"
        ),
    ),
    (
        ("MasterANetworkInterface", ENI, ("SubnetId", "subnet-1", "subnet-2")),
        {
            "replacement": MIGHT,
            "before": {"PrivateIpAddress": "172.20.0.9"},
            "after": {"PrivateIpAddress": "172.20.0.9"},
        },
        DANGEROUS,
        (
            "API address changes: the private address of master a (its network interface) might be "
            "replaced; existing nodes can no longer reach the API"
        ),
    ),
    (
        ("MasterAElasticIp", EIP),
        {"action": "remove"},
        DANGEROUS,
        (
            "API address changes: its public address is removed; existing kubeconfigs stop working, and its "
            "certificate names the old address until the master is replaced"
        ),
    ),
    (
        ("MasterAElasticIpAssociation", ASSOCIATION, ALLOCATION),
        {"replacement": WILL},
        DANGEROUS,
        (
            "API address changes: the master is reached by another public address, or by none; existing "
            "kubeconfigs stop working"
        ),
    ),
    (
        ("MasterAElasticIpAssociation", ASSOCIATION, ("NetworkInterfaceId", "eni-1", None)),
        {"replacement": MIGHT},
        DISRUPTIVE,
        "the API's public address might move to another network interface",
    ),
    (
        ("ApiLoadBalancer", BALANCER),
        {"replacement": WILL},
        DANGEROUS,
        (
            "API address changes: its load balancer is replaced; existing kubeconfigs stop working, and its "
            "certificate names the old address until the masters are replaced"
        ),
    ),
    (
        ("ApiLoadBalancer", BALANCER),
        {"action": "add"},
        DISRUPTIVE,
        "the API is reached through a load balancer from now on: fetch kubeconfigs again",
    ),
    (
        ("ApiLoadBalancer", BALANCER, ("Subnets/1", "subnet-1", None)),
        {},
        DISRUPTIVE,
        "the API's load balancer gets an address in other zones, or loses one",
    ),
    (
        ("ApiLoadBalancer", BALANCER, ("SecurityGroups/0", "sg-1", "sg-2")),
        {},
        DISRUPTIVE,
        "who may reach the API changes at once",
    ),
    (
        ("ApiTargetGroup", TARGETS),
        {"replacement": WILL},
        DISRUPTIVE,
        (
            "the target group of the API's load balancer is replaced; the API is unavailable until the "
            "masters are healthy again"
        ),
    ),
    (
        ("ApiTargetGroup", TARGETS, ("Targets/2", None, "10.0.0.9")),
        {},
        NONE,
        "the API's load balancer forwards to other masters, to each as soon as it is healthy",
    ),
    (
        ("ApiTargetGroup", TARGETS, ("HealthCheckPath", "/healthz", "/readyz")),
        {},
        NONE,
        "the settings of the API's load balancer's target group change",
    ),
    (
        ("ApiListener", LISTENER),
        {"replacement": MIGHT},
        DISRUPTIVE,
        "the listener of the API's load balancer might be replaced; connections are interrupted",
    ),
    (
        ("SubnetB", f"{EC2}Subnet"),
        {"action": "remove"},
        DANGEROUS,
        "network: the subnet in us-west-2b is removed, with every instance and address in it, those of masters too",
    ),
    (
        ("SomebodysSubnet", f"{EC2}Subnet"),
        {"replacement": WILL},
        DANGEROUS,
        "network: SomebodysSubnet is replaced, with every instance and address in it, those of masters too",
    ),
    (
        ("RouteTable", f"{EC2}RouteTable"),
        {"replacement": WILL},
        DISRUPTIVE,
        (
            "network: the route table is replaced; pods of different nodes do not reach each other until the "
            "cloud controller manager has written its routes again"
        ),
    ),
    *(
        (
            (name, kind),
            {"replacement": WILL},
            DISRUPTIVE,
            "network: the route to the internet is replaced; connections are interrupted",
        )
        for name, kind in (
            ("DefaultRoute", f"{EC2}Route"),
            ("SubnetARouteTableAssociation", f"{EC2}SubnetRouteTableAssociation"),
            ("InternetGatewayAttachment", f"{EC2}VPCGatewayAttachment"),
        )
    ),
    *(
        (
            (name, f"{EC2}SecurityGroup"),
            {"replacement": WILL},
            DISRUPTIVE,
            f"the security group of the {whose} is replaced, with every rule in it",
        )
        for name, whose in (
            ("MasterSecurityGroup", "masters"),
            ("NodeSecurityGroup", "nodes"),
            ("ApiLoadBalancerSecurityGroup", "API's load balancer"),
        )
    ),
    (
        ("NodeSecurityGroup", f"{EC2}SecurityGroup", ("SecurityGroupIngress/0/CidrIp", "a", "b")),
        {},
        DISRUPTIVE,
        "who may reach instances changes at once",
    ),
]

RULES: list[tuple[tuple[Any, ...], dict[str, Any], Any, str]] = [
    (
        ("MasterSshFrom10x0x0x0x8", RULE),
        {"action": "remove", "before": {"CidrIp": "10.0.0.0/8"}},
        DISRUPTIVE,
        "SSH of the masters is no longer reachable from 10.0.0.0/8",
    ),
    (
        ("NodeSshFrom10x0x0x0x8", RULE),
        {"action": "add", "after": {"CidrIp": "0.0.0.0/0"}},
        DISRUPTIVE,
        "SSH of the nodes becomes reachable from 0.0.0.0/0 in addition: from the whole internet",
    ),
    (
        # Where values are not told, the name tells.
        ("MasterApiFrom10x0x0x0x8", RULE),
        {"action": "add"},
        NONE,
        "the API becomes reachable from 10.0.0.0/8 in addition",
    ),
    (
        ("MasterApiFromAllowedCidr", RULE),
        {"action": "add"},
        NONE,
        "the API becomes reachable from a further range in addition",
    ),
    (
        ("MasterApiFromAllowedCidr", RULE),
        {"action": "remove"},
        DISRUPTIVE,
        "the API is no longer reachable from a range",
    ),
    (
        ("ApiLoadBalancerFrom10x0x0x0x8", RULE),
        {"action": "add", "after": {"SourcePrefixListId": "pl-1"}},
        NONE,
        "the API becomes reachable from pl-1 in addition",
    ),
    (
        ("MasterApiFromAllowedCidr", RULE, ("CidrIp", "10.0.0.0/8", "0.0.0.0/0")),
        {"replacement": WILL},
        DISRUPTIVE,
        "the API becomes reachable from 0.0.0.0/0: from the whole internet, and no longer from 10.0.0.0/8",
    ),
    (
        ("MasterApiFromAllowedCidr", RULE, ("GroupId", "sg-1", None)),
        {"replacement": WILL, "before": {"CidrIp": "10.0.0.0/8"}, "after": {"CidrIp": "10.0.0.0/8"}},
        NONE,
        "the rule that lets 10.0.0.0/8 reach the API is recreated",
    ),
    (
        ("MasterKubeletFromMasters", RULE),
        {"action": "remove"},
        DISRUPTIVE,
        "masters and nodes may no longer reach each other by this rule",
    ),
    (
        ("MasterKubeletFromMasters", RULE, ("ToPort", "1", "2")),
        {},
        DISRUPTIVE,
        "masters and nodes may reach each other on other ports",
    ),
    *(
        (
            (name, RULE),
            {"action": "remove"},
            DISRUPTIVE,
            "masters and nodes may no longer reach each other by this rule",
        )
        for name in ("MasterApiFromNodes", "MasterApiFromLoadBalancer", "ApiLoadBalancerFromMasters")
    ),
]

GROUP = "NodeGroupNodesAutoScalingGroup"
AUTOSCALER = "k8s.io/cluster-autoscaler"
HOOKS = "LifecycleHookSpecificationList"
HOOKED = {HOOKS: [{"LifecycleHookName": "cfngen-drain"}]}
INSTANCES: list[tuple[tuple[Any, ...], dict[str, Any], Any, str]] = [
    (
        ("MasterAAutoScalingGroup", ASG),
        {"replacement": MIGHT},
        DANGEROUS,
        "master a might be replaced: the API is lost with it",
    ),
    (
        (GROUP, ASG),
        {"action": "remove", "before": HOOKED},
        DISRUPTIVE,
        "node group `nodes` is removed with its instances, all at once; their pods are drained first",
    ),
    (
        ("MasterAAutoScalingGroup", ASG, ("LaunchTemplate/Version", "1", "2")),
        {},
        DISRUPTIVE,
        (
            "master a is replaced; it is the only master, so the API is unavailable while it boots. Pods keep "
            "running meanwhile"
        ),
    ),
    (
        (GROUP, ASG, ("VPCZoneIdentifier/0", "subnet-1", "subnet-2")),
        {"before": HOOKED},
        DISRUPTIVE,
        (
            "node group `nodes`: its instances are replaced one at a time; pods are drained first; node group "
            "`nodes` may launch instances in other subnets, and so in other zones"
        ),
    ),
    (
        (GROUP, ASG, (f"{HOOKS}/0/LifecycleHookName", None, "cfngen-drain")),
        {"after": HOOKED},
        NONE,
        "from now on pods of node group `nodes` are drained before an instance is terminated",
    ),
    (
        (GROUP, ASG, (f"{HOOKS}/0/LifecycleHookName", "cfngen-drain", None)),
        {"before": HOOKED},
        NONE,
        "from now on pods of node group `nodes` are no longer drained before an instance is terminated",
    ),
    (
        (GROUP, ASG, ("MinSize", "4", "1"), ("MaxSize", "8", "2")),
        {"before": HOOKED},
        DISRUPTIVE,
        "node group `nodes` shrinks from 4-8 to 1-2: instances above 2 are terminated; their pods are drained first",
    ),
    (
        (GROUP, ASG, ("MinSize", "4", "2"), ("MaxSize", "8", "8")),
        {},
        NONE,
        "node group `nodes` shrinks from 4-8 to 2-8: no instance is replaced",
    ),
    (
        (GROUP, ASG, ("DesiredCapacity", "2", "3")),
        {"before": {"MinSize": "2", "MaxSize": "4"}, "after": {"MinSize": "2", "MaxSize": "4"}},
        DISRUPTIVE,
        "node group `nodes` is set to 3 instances",
    ),
    (
        (GROUP, ASG, (f"Tags[{AUTOSCALER}/node-template/autoscaling-options/scaledownunneededtime]", None, "5m")),
        {},
        NONE,
        (
            "cluster-autoscaler gets other settings of node group `nodes` within a minute; no instance is replaced for "
            "that"
        ),
    ),
    (
        (GROUP, ASG, (f"Tags[{AUTOSCALER}/node-template/resources/cpu]", "1900m", "3900m")),
        {},
        NONE,
        (
            "cluster-autoscaler gets other settings of node group `nodes` within a minute; no instance is replaced for "
            "that"
        ),
    ),
    (
        (GROUP, ASG, (f"Tags[{AUTOSCALER}/enabled]", "true", None)),
        {},
        NONE,
        "cluster-autoscaler leaves node group `nodes` alone from now on: only you change its size",
    ),
    (
        (GROUP, ASG, (f"Tags[{AUTOSCALER}/enabled]", None, "true")),
        {},
        NONE,
        "cluster-autoscaler may change the size of node group `nodes` from now on",
    ),
    ((GROUP, ASG, ("MaxSize", "4", None)), {}, NONE, "node group `nodes` is resized"),
    (
        ("NodeGroupNodesLaunchTemplate", TEMPLATE),
        {"replacement": WILL},
        NONE,
        "a new launch template replaces it, and its group uses the new one",
    ),
    (
        ("NodeGroupNodesLaunchTemplate", TEMPLATE, ("LaunchTemplateData/InstanceMarketOptions", None, "spot")),
        {},
        NONE,
        "new instances have spot pricing, so AWS may reclaim them at any time",
    ),
    (
        ("NodeGroupNodesLaunchTemplate", TEMPLATE, ("LaunchTemplateData/InstanceMarketOptions", "spot", None)),
        {},
        NONE,
        "new instances have another purchase option (spot or on demand)",
    ),
    (
        ("NodeGroupNodesLaunchTemplate", TEMPLATE, ("LaunchTemplateData/CreditSpecification", "a", "b")),
        {},
        NONE,
        "new instances are launched with other settings",
    ),
    (
        ("MasterAVolume", VOLUME, ("Encrypted", "false", "true")),
        {},
        DISRUPTIVE,
        "the data volume of master a would change in a way that AWS refuses: the update fails",
    ),
    (
        ("MasterAVolume", VOLUME, ("Size", "40", "20")),
        {},
        DISRUPTIVE,
        "the data volume of master a would shrink from 40 to 20 GiB: AWS refuses that, and the update fails",
    ),
    (
        ("MasterAVolume", VOLUME, ("Size", "20", "40")),
        {},
        NONE,
        (
            "the data volume of master a grows from 20 to 40 GiB in place, while it is in use; after that AWS "
            "allows no further change for about six hours; its file system follows at the master's next boot"
        ),
    ),
    (
        ("MasterAVolume", VOLUME, ("VolumeType", "gp2", "gp3")),
        {},
        NONE,
        (
            "the data volume of master a becomes gp3 in place, while it is in use; after that AWS allows no "
            "further change for about six hours"
        ),
    ),
    (
        ("MasterAVolume", VOLUME, ("Iops", "3000", "4000")),
        {},
        NONE,
        (
            "the data volume of master a changes in place, while it is in use; after that AWS allows no further "
            "change for about six hours"
        ),
    ),
    (
        ("SshKeyPair", f"{EC2}KeyPair"),
        {"action": "remove"},
        NONE,
        "the SSH key pair is removed; running instances keep the key",
    ),
    (
        ("SshKeyPair", f"{EC2}KeyPair"),
        {"replacement": WILL},
        NONE,
        "the SSH key pair is replaced; instances get it when they are replaced",
    ),
]


@pytest.mark.parametrize(
    ("change", "how", "danger", "text"),
    [*NETWORK, *RULES, *INSTANCES],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_a_change_means(change: tuple[Any, ...], how: dict[str, Any], danger: Any, text: str) -> None:
    impact = meaning(*change, **how)
    assert impact is not None
    assert (impact.text, impact.danger) == (text, danger)


@pytest.mark.parametrize(
    ("change", "how"),
    [
        (("MasterAElasticIp", EIP, ("Tags/0/Value", "a", "b")), {"action": "add"}),
        (("ApiTargetGroup", TARGETS), {"action": "add"}),
        (("Vpc", f"{EC2}VPC"), {"action": "add"}),
        (("SubnetA", f"{EC2}Subnet"), {"action": "add"}),
        (("ApiListener", LISTENER), {"action": "add"}),
        (("NodeRole", "AWS::IAM::Role"), {"action": "add"}),
        (("NodeGroupNodesLaunchTemplate", TEMPLATE), {"action": "add"}),
        ((GROUP, ASG), {"action": "add"}),
        (("MasterAVolume", VOLUME), {"action": "add"}),
        (("SshKeyPair", f"{EC2}KeyPair"), {"action": "add"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_comes_in_addition_needs_no_words(change: tuple[Any, ...], how: dict[str, Any]) -> None:
    assert meaning(*change, **how) is None


def test_what_aws_refuses_is_marked_so() -> None:
    for change in (("Encrypted", "false", "true"), ("Size", "40", "20")):
        impact = meaning("MasterAVolume", VOLUME, change)
        assert impact is not None
        assert impact.fails
    growing = meaning("MasterAVolume", VOLUME, ("Size", "20", "40"))
    assert growing is not None
    assert not growing.fails

"""Where a size, a number or a name ends: the last that is accepted, and the first that is refused or warned of."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.checks import warnings
from cfngen.cluster.checks.naming import first_invisible
from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError


def refusals(configuration: dict[str, Any]) -> list[str]:
    try:
        parse(configuration)
    except ClusterFileError as error:
        return str(error).splitlines()
    return []


def warned(configuration: dict[str, Any]) -> list[str]:
    return [str(warning) for warning in warnings(parse(configuration))]


def volume(**more: Any) -> dict[str, Any]:
    return {"controlPlane": {"volume": more}}


def nodes(**more: Any) -> dict[str, Any]:
    return {"nodeGroups": [{"name": "n", **more}]}


def subnet(cidr: str) -> dict[str, Any]:
    return {"network": {"subnets": [{"zone": "us-west-2a", "cidr": cidr}]}}


def balanced(plugin: str) -> dict[str, Any]:
    """Three masters behind a load balancer, in subnets with 27 addresses each."""
    subnets = [{"zone": f"us-west-2{zone}", "cidr": f"172.20.0.{32 * index}/27"} for index, zone in enumerate("abc")]
    return {"controlPlane": {"count": 3}, "network": {"plugin": plugin, "subnets": subnets}}


def ranges(count: int) -> list[str]:
    return [f"10.{number // 256}.{number % 256}.0/24" for number in range(count)]


def quotas(rules: int, groups: int) -> dict[str, Any]:
    return {"quotas": {"rulesPerSecurityGroup": rules, "securityGroupsPerInterface": groups}}


def inside(cidrs: list[str]) -> dict[str, Any]:
    return {"internal": True, "internalCidrs": cidrs}


def groups(count: int) -> list[str]:
    return [f"sg-{number:08x}" for number in range(count)]


def repositories(*names: str, **more: Any) -> dict[str, Any]:
    return {"registry": {"repositories": [{"name": name, **more} for name in names]}}


def pushed_from(url: str) -> dict[str, Any]:
    push = {"name": "web", "provider": "gitlab", "url": url, "project": "example/shop", "createProvider": True}
    return {"registry": {"repositories": [{"name": "web"}], "push": [push]}}


def ingress(entries: int) -> list[dict[str, Any]]:
    return [{"ports": 80, "prefixLists": [{"id": "pl-01234567", "maxEntries": entries}]}]


GUARDED: dict[str, Any] = {
    "vpc": {"id": "vpc-01234567", "cidr": "10.20.0.0/16"},
    "subnets": [{"zone": "us-west-2a", "id": "subnet-01234567", "cidr": "10.20.0.0/20"}],
    "serviceCidr": "10.250.0.0/16",
    "securityGroups": {"nodes": "sg-0123456789abcdef0"},
}
VPC_PODS: dict[str, Any] = {"network": {"plugin": "amazon-vpc"}}
# The last that is accepted, the first that is not, and what is said of that one.
ENDS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    # "Amazon VPC quotas": rules times groups of an interface are 1,000 at most.
    (
        {"network": quotas(200, 5)},
        {"network": quotas(201, 5)},
        (
            "network.quotas.rulesPerSecurityGroup: 201 rules in each of 5 security groups make 1005 of an interface; "
            "AWS allows 1000: lower one of the two"
        ),
    ),
    # Of 60 rules of a group, ten are kept free; a prefix list counts as its greatest number of entries.
    (
        {"api": {"allowedPrefixLists": [{"id": "pl-01234567", "maxEntries": 50}]}},
        {"api": {"allowedPrefixLists": [{"id": "pl-01234567", "maxEntries": 51}]}},
        "api.allowedPrefixLists[0].maxEntries: pl-01234567 counts as 51 rules, and one security group has room for 50",
    ),
    (
        {"ssh": {"keyName": "k", "allowedPrefixLists": [{"id": "pl-01234567", "maxEntries": 50}]}},
        {"ssh": {"keyName": "k", "allowedPrefixLists": [{"id": "pl-01234567", "maxEntries": 51}]}},
        "ssh.allowedPrefixLists[0].maxEntries: pl-01234567 counts as 51 rules, and one security group has room for 50",
    ),
    *(
        (
            {"network": quotas(60, most), where: inside(groups(most - own))},
            {"network": quotas(60, most), where: inside(groups(most - own + 1))},
            (
                f"{key}.additionalSecurityGroups: {most - own + 1} further security groups and {others} are more than "
                f"the {most} of an interface; {remedy}, or have the account's quota raised"
            ),
        )
        for most in (5, 16)
        for where, key, inside, own, others, remedy in (
            (
                "controlPlane",
                "controlPlane",
                lambda listed: {"additionalSecurityGroups": listed},
                1,
                "the cluster's own",
                "name fewer",
            ),
            # A node group has a security group of its own, whose rules those of one of the others can be.
            (
                "nodeGroups",
                "nodeGroups[0]",
                lambda listed: [{"additionalSecurityGroups": listed}],
                2,
                "the cluster's and the node group's own",
                "write the rules of one in ingress and leave it out",
            ),
        )
    ),
    # An existing group of the nodes has the rules, so there is none for each node group.
    (
        {"network": {**GUARDED, **quotas(60, 5)}, **nodes(additionalSecurityGroups=groups(4))},
        {"network": {**GUARDED, **quotas(60, 5)}, **nodes(additionalSecurityGroups=groups(5))},
        "nodeGroups[0].additionalSecurityGroups: 5 further security groups and the cluster's own are more than the 5",
    ),
    (
        {"network": quotas(60, 2)},
        {"network": quotas(60, 1)},
        "network.quotas.securityGroupsPerInterface: 0 further security groups and the cluster's and the node group's",
    ),
    *(
        ({where: inside(ingress(50))}, {where: inside(ingress(51))}, says)
        for where, inside, says in (
            (
                "nodeGroups",
                lambda rules: [{"ingress": rules}],
                "nodeGroups[0].ingress: 1 source counts as 51 rules, and the security group of nodes holds 50",
            ),
            (
                "controlPlane",
                lambda rules: {"ingress": rules},
                "controlPlane.ingress[0].prefixLists[0].maxEntries: pl-01234567 counts as 51 rules, and one security",
            ),
        )
    ),
    (
        {"ssh": {"keyName": "k"}, "bastion": {"allowedCidrs": ranges(1), "ingress": ingress(49)}},
        {"ssh": {"keyName": "k"}, "bastion": {"allowedCidrs": ranges(1), "ingress": ingress(50)}},
        "bastion.allowedCidrs: the ranges and prefix lists count as 51 rules, and the bastion's security group",
    ),
    (
        {"network": quotas(200, 5), "controlPlane": {"ingress": [{"ports": 80, "cidrs": ranges(460)}]}},
        {"network": quotas(200, 5), "controlPlane": {"ingress": [{"ports": 80, "cidrs": ranges(461)}]}},
        "controlPlane.ingress: who may come in makes 461 rules, and a stack holds 460 of them at most",
    ),
    (
        {"network": quotas(500, 2), **nodes(ingress=[{"ports": 80, "cidrs": ranges(460)}])},
        {"network": quotas(500, 2), **nodes(ingress=[{"ports": 80, "cidrs": ranges(461)}])},
        "nodeGroups[0].ingress: 461 sources count as 461 rules, and the security group of n holds 460",
    ),
    (
        {"controlPlane": {"ingress": [{"ports": 80, "cidrs": ranges(236)}]}},
        {"controlPlane": {"ingress": [{"ports": 80, "cidrs": ranges(237)}]}},
        "controlPlane.ingress: 237 sources count as 237 rules of the masters, and the 5 security groups",
    ),
    # The section and the list are named whose sources come first. Nodes have one group less for them.
    *(
        (section(most), section(most + 1), f"{key}: {most + 1} sources count as {most + 1} rules of {role}, and")
        for key, most, role, section in (
            ("api.allowedCidrs", 236, "the masters", lambda count: {"api": {"allowedCidrs": ranges(count)}}),
            (
                "ssh.allowedCidrs",
                186,
                "the nodes",
                lambda count: {"ssh": {"keyName": "k", "allowedCidrs": ranges(count)}},
            ),
            ("api.internalCidrs", 236, "the masters", lambda count: {"api": inside(ranges(count))}),
            (
                "api.internalCidrs",
                236,
                "the API's internal load balancer",
                lambda count: {**balanced("cilium"), "api": {**inside(ranges(count)), "allowedCidrs": ranges(1)}},
            ),
        )
    ),
    (
        {"api": {"allowedPrefixLists": [{"id": f"pl-0123456{number}", "maxEntries": 50} for number in range(4)]}},
        {"api": {"allowedPrefixLists": [{"id": f"pl-0123456{number}", "maxEntries": 50} for number in range(5)]}},
        "api.allowedPrefixLists: 5 sources count as 250 rules of the masters, and the 5 security groups",
    ),
    # A template has 500 resources, some of them no rules.
    (
        {"network": quotas(200, 5), "api": {"allowedCidrs": ranges(460)}},
        {"network": quotas(200, 5), "api": {"allowedCidrs": ranges(461)}},
        "api.allowedCidrs: who may come in makes 461 rules, and a stack holds 460 of them at most",
    ),
    (
        {"network": quotas(200, 5), "ssh": {"keyName": "k", "allowedCidrs": ranges(230)}},
        {"network": quotas(200, 5), "ssh": {"keyName": "k", "allowedCidrs": ranges(231)}},
        "ssh.allowedCidrs: who may come in makes 462 rules, and a stack holds 460 of them at most",
    ),
    # "Subnet CIDR blocks", Amazon VPC User Guide: five addresses of a subnet are AWS's.
    (
        {**subnet("172.20.0.0/28"), **nodes(minSize=10)},
        {**subnet("172.20.0.0/28"), **nodes(minSize=11)},
        "network.subnets[0].cidr: 172.20.0.0/28 has 11 usable addresses, and the cluster needs 12 (1 for masters and ",
    ),
    # Each instance takes its own address and ten for pods.
    (
        {**VPC_PODS, **nodes(minSize=21)},
        {**VPC_PODS, **nodes(minSize=22)},
        "network.subnets: the subnets have 251 addresses for instances and pods, but 23 instances need 253 or more (11",
    ),
    # Each node and master takes a /24 of the pods' range.
    (
        {"network": {"podCidr": "10.244.0.0/20"}, **nodes(minSize=15)},
        {"network": {"podCidr": "10.244.0.0/20"}, **nodes(minSize=16)},
        "network.podCidr: 10.244.0.0/20 contains 16 ranges of /24, but up to 16 nodes and 1 master need one each",
    ),
    (
        {"network": {"podCidr": "10.244.0.0/20", "plugin": "calico"}, **nodes(minSize=63)},
        {"network": {"podCidr": "10.244.0.0/20", "plugin": "calico"}, **nodes(minSize=64)},
        "network.podCidr: 10.244.0.0/20 contains 64 ranges of /26, but up to 64 nodes and 1 master need one each",
    ),
    (
        {"network": {"plugin": "flannel"}, **nodes(minSize=1, maxSize=255)},
        {"network": {"plugin": "flannel"}, **nodes(minSize=1, maxSize=256)},
        "network.podCidr: 10.244.0.0/16, the default, contains 256 ranges of /24, but up to 256 nodes and 1 master",
    ),
    (nodes(minSize=3, maxSize=3), nodes(minSize=4, maxSize=3), "nodeGroups[0].maxSize: 3 is less than minSize (4)"),
    (
        nodes(minSize=2, maxSize=4, desiredSize=4),
        nodes(minSize=2, maxSize=4, desiredSize=5),
        "nodeGroups[0].desiredSize: 5 is not between minSize (2) and maxSize (4)",
    ),
    (
        nodes(minSize=2, maxSize=4, desiredSize=2),
        nodes(minSize=2, maxSize=4, desiredSize=1),
        "nodeGroups[0].desiredSize: 1 is not between minSize (2) and maxSize (4)",
    ),
    (nodes(spotPrice="0.001"), nodes(spotPrice="0.000999"), "nodeGroups[0].spotPrice: EC2 accepts no maximum price"),
    # "Amazon EBS volume types", EBS User Guide: sizes, IOPS and their ratios.
    (volume(type="gp2", size=16384), volume(type="gp2", size=16385), "controlPlane.volume.size: 16385 GiB is outside"),
    (
        volume(type="io1", size=4, iops=100),
        volume(type="io1", size=3, iops=100),
        "controlPlane.volume.size: 3 GiB is outside the 4 to 16384 GiB of a io1 volume",
    ),
    (
        volume(type="io2", size=4, iops=100),
        volume(type="io2", size=3, iops=100),
        "controlPlane.volume.size: 3 GiB is outside the 4 to 65536 GiB of a io2 volume",
    ),
    (volume(iops=3000), volume(iops=2999), "controlPlane.volume.iops: 2999 is outside the 3000 to 80000 IOPS of a gp3"),
    (
        volume(size=160, iops=80000),
        volume(size=161, iops=80001),
        "controlPlane.volume.iops: 80001 is outside the 3000 to 80000 IOPS of a gp3",
    ),
    (volume(size=1, iops=3000), volume(size=1, iops=3001), "controlPlane.volume.iops: 1 GiB of gp3 carry at most 500"),
    (volume(size=20, iops=10000), volume(size=20, iops=10001), "controlPlane.volume.iops: 20 GiB of gp3 carry at most"),
    (
        volume(type="io1", size=20, iops=1000),
        volume(type="io1", size=20, iops=1001),
        "controlPlane.volume.iops: 20 GiB of io1 carry at most 1000 IOPS (50 for each GiB), not 1001",
    ),
    (
        volume(type="io2", size=20, iops=20000),
        volume(type="io2", size=20, iops=20001),
        "controlPlane.volume.iops: 20 GiB of io2 carry at most 20000 IOPS (1000 for each GiB), not 20001",
    ),
    (
        volume(throughput=750),
        volume(throughput=751),
        "controlPlane.volume.throughput: 751 MiB/s need 3004 IOPS (4 for each MiB/s), not 3000",
    ),
    (
        volume(throughput=1000, iops=4000),
        volume(throughput=1001, iops=4000),
        "controlPlane.volume.throughput: 1001 MiB/s need 4004 IOPS (4 for each MiB/s), not 4000",
    ),
    (
        nodes(rootVolume={"size": 8}),
        nodes(rootVolume={"size": 7}),
        "nodeGroups[0].rootVolume.size: the distributions' images need 8 GiB or more, not 7",
    ),
    # Fifty tags of a resource, ten of them kept.
    (
        {"tags": {f"t{number}": "a" for number in range(40)}},
        {"tags": {f"t{number}": "a" for number in range(41)}},
        "tags: 41 tags are too many; a resource has 50, and cfngen leaves 40 of them to you",
    ),
    # CloudFormation has less room for tags of repositories than for others; IAM and ECR have it for policies.
    (
        {"tags": {"k" * 127: "a"}, **repositories("web")},
        {"tags": {"k" * 128: "a"}, **repositories("web")},
        f"tags.{'k' * 128}: on repositories of Amazon ECR, the key has 128 characters; 127 fit",
    ),
    (
        {"tags": {"team": "a" * 255}, **repositories("web")},
        {"tags": {"team": "a" * 256}, **repositories("web")},
        "tags.team: on repositories of Amazon ECR, the value has 256 characters; 255 fit",
    ),
    (
        {"tags": {"team": "a" * 256, "k" * 128: "a"}, **repositories("n" * 256, existing=True)},
        repositories("n" * 256),
        "registry.repositories[0].name: the name becomes a tag: its value has 256 characters; 255 fit",
    ),
    (
        repositories(*(f"r{number}" for number in range(40))),
        repositories(*(f"r{number}" for number in range(41))),
        "registry.repositories: has more than 40 repositories",
    ),
    (
        repositories("web", pullAccounts=[f"{number:012}" for number in range(240)]),
        repositories("web", pullAccounts=[f"{number:012}" for number in range(241)]),
        "registry.repositories[0].pullAccounts: has more than 240 accounts, whose ARNs fill the repository's policy",
    ),
    (
        pushed_from("https://git.example.com/shop"),
        pushed_from("https://git.example.com/~shop"),
        "registry.push[0].url: the URL becomes a tag of IAM's OIDC provider: its value holds ~ (U+007E)",
    ),
    # A stack's name has 128 characters, a load balancer's 32.
    ({"name": "n" * 28}, {"name": "n" * 29}, "name: has 29 characters; the load balancer of the API"),
    (
        {"name": "blue", **nodes(name="g" * 95)},
        {"name": "blue", **nodes(name="g" * 96)},
        "nodeGroups[0].name: has 96 characters; the nested stack is named after it and may have 128, so use at most 95",
    ),
    # The first four addresses of a subnet and the last are AWS's.
    *(
        (
            {**subnet("172.20.0.0/27"), "controlPlane": {"addresses": [f"172.20.0.{good}"]}, **nodes(minSize=1)},
            {**subnet("172.20.0.0/27"), "controlPlane": {"addresses": [f"172.20.0.{bad}"]}, **nodes(minSize=1)},
            f"controlPlane.addresses[0]: AWS reserves 172.20.0.{bad}: it reserves the first four addresses",
        )
        for good, bad in ((4, 3), (4, 0), (30, 31))
    ),
]


@pytest.mark.parametrize(("last", "beyond", "said"), ENDS, ids=[said[:60] for *_, said in ENDS])
def test_where_it_ends(last: dict[str, Any], beyond: dict[str, Any], said: str) -> None:
    assert refusals(last) == []
    [text] = refusals(beyond)
    assert text.startswith(said)


# What works but deserves a thought: the last that is taken in silence, the first that is not.
THOUGHTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (nodes(minSize=1, maxSize=49), nodes(minSize=1, maxSize=50), "nodeGroups: up to 51 nodes and masters need a VPC"),
    (
        {**subnet("172.20.0.0/27"), **nodes(minSize=1, maxSize=26)},
        {**subnet("172.20.0.0/27"), **nodes(minSize=1, maxSize=27)},
        "network.subnets[0].cidr: 172.20.0.0/27 has 27 usable addresses, and the cluster needs 28 when its",
    ),
    # A load balancer needs eight addresses of each subnet, and a group of one zone has no other subnet.
    (
        {**balanced("cilium"), **nodes(minSize=1, maxSize=18, zones=["us-west-2b"])},
        {**balanced("cilium"), **nodes(minSize=1, maxSize=19, zones=["us-west-2b"])},
        "network.subnets[1].cidr: 172.20.0.32/27 has 27 usable addresses, and the cluster needs 28 when its",
    ),
    (
        {**balanced("amazon-vpc"), **nodes(minSize=1, maxSize=1)},
        {**balanced("amazon-vpc"), **nodes(minSize=1, maxSize=2)},
        "network.subnets: up to 5 instances may need 65 addresses or more (13 each and one for each further pod), but",
    ),
    (
        {**VPC_PODS, **nodes(minSize=1, maxSize=18)},
        {**VPC_PODS, **nodes(minSize=1, maxSize=19)},
        "network.subnets: up to 20 instances may need 260 addresses or more (13 each and one for each further pod)",
    ),
    (
        {"network": {"nonMasqueradeCidr": "172.20.0.0/16"}},
        {"network": {"nonMasqueradeCidr": "172.20.0.0/15"}},
        "network.nonMasqueradeCidr: pods use their own addresses towards all of 172.20.0.0/15",
    ),
]


@pytest.mark.parametrize(("last", "beyond", "said"), THOUGHTS, ids=[said[:60] for *_, said in THOUGHTS])
def test_where_a_warning_begins(last: dict[str, Any], beyond: dict[str, Any], said: str) -> None:
    assert warned(last) == []
    [text] = warned(beyond)
    assert text.startswith(said)


# Keys by which Kubernetes, its controllers and cfngen find what is theirs, and neighbours that are anybody's.
@pytest.mark.parametrize(
    "key",
    [
        "kubernetes.io/cluster/x",
        "kubernetes.io/role/elb",
        "kubernetes.io/created-for/pvc/name",
        "kubernetes.io/service-name",
        "k8s.io/role/master",
        "k8s.io/cluster-autoscaler/enabled",
        "cfngen:a",
        "CFNGEN:a",
        "ebs.csi.aws.com/cluster",
        "elbv2.k8s.aws/cluster",
        "service.k8s.aws/stack",
        "ingress.k8s.aws/stack",
        "cluster.k8s.amazonaws.com/name",
        "node.k8s.amazonaws.com/instance_id",
    ],
)
def test_a_tag_that_is_somebody_elses(key: str) -> None:
    reason = "cfngen or Kubernetes sets such tags; remove it, or choose another key"
    assert refusals({"tags": {key: "a"}}) == [f"tags.{key}: {reason}"]


@pytest.mark.parametrize(
    "key",
    [
        "kubernetes.io/clusters",
        "kubernetes.io/service-names",
        "k8s.io/roles",
        "k8s.io/cluster-autoscaler/node-template/label/team",
        "cfngen-a",
        "xcfngen:a",
        "ebs.csi.aws.com",
        "other.k8s.aws/a",
        "Names",
        "MyKubernetesCluster",
        "xaws:a",
    ],
)
def test_a_tag_that_is_anybodys(key: str) -> None:
    assert refusals({"tags": {key: "a"}}) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a\u2028b", "\u2028"),
        ("a\u2029", "\u2029"),
        ("\u0007", "\u0007"),
        ("\u00ad", "\u00ad"),
        ("a\rb", "\r"),
        ("\ud800", "\ud800"),
        ("\ue000", ""),
        ("\u0378", ""),
        ("a\tb\nc\r\nd", ""),
        ("ä ö\u00a0", ""),
        ("\ue000\u200b", "\u200b"),
    ],
)
def test_characters_that_nobody_sees(text: str, found: str) -> None:
    assert first_invisible(text) == found


def test_a_region_that_resembles_none_is_answered_with_all() -> None:
    [said] = refusals({"region": "zz-qqqq-9"})
    assert said.startswith("region: AWS has no region zz-qqqq-9; the regions are af-south-1, ap-east-1, ")

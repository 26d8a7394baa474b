"""What a problem depends on: where one of those keys was refused, nothing is said that would only follow from it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cfngen.cluster import checks
from cfngen.cluster.defaults.completion import complete
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import dotted
from cfngen.cluster.problems import ClusterFileError

VPC = "vpc: {id: vpc-01234567, cidr: 10.1.0.0/16}"
SUBNET = "{id: subnet-01234567, cidr: 10.1.0.0/24}"
THREE = "network: {subnets: [{zone: us-west-2a}, {zone: us-west-2b}, {zone: us-west-2c}]}"
EIP = "elasticIp: {allocationId: eipalloc-01234567, address: 52.1.2.3}"
CHART = "{name: a, url: 'https://a/b.tgz', sha256: " + "a" * 64 + "}"
MANY = ", ".join(f"l{number}: a" for number in range(45))
SG = "[sg-00000001, sg-00000002, sg-00000003, sg-00000004, sg-00000005]"
PREFIX_LIST = "{id: pl-01234567, maxEntries: 1000}"
RANGES = ", ".join(f"203.0.{number}.0/24" for number in range(250))

# A cluster file; the problem's key; what it depends on.
ROWS = [
    # Names.
    ("nodeGroups: [{name: " + "a" * 108 + "}]", "nodeGroups[0].name", ["name"]),
    (f"name: internal-a\n{THREE}\ncontrolPlane: {{count: 3}}", "name", ["controlPlane.count"]),
    ("nodeGroups: [{name: x}, {name: a}, {name: a}]", "nodeGroups[2].name", ["nodeGroups[1].name"]),
    ("nodeGroups: [{name: x}, {name: a-1}, {name: a1}]", "nodeGroups[2].name", ["nodeGroups[1].name"]),
    ("tags: {Team: a, team: b}", "tags.team", ["tags.Team"]),
    # Region and zones.
    ("region: us-west-2\nnetwork: {subnets: [{zone: eu-west-1a}]}", "network.subnets[0].zone", ["region"]),
    (
        "network: {subnets: [{zone: us-west-2b}, {zone: us-west-2a}, {zone: us-west-2a}]}",
        "network.subnets[2].zone",
        ["network.subnets[1].zone"],
    ),
    ("nodeGroups: [{zones: [us-west-2b]}]", "nodeGroups[0].zones[0]", ["network.subnets"]),
    (
        "network: {subnets: [{zone: us-west-2-lax-1a}]}",
        "network.subnets[0].zone",
        ["controlPlane.addresses", "controlPlane.count"],
    ),
    # The proxy.
    (
        "network: {proxy: {httpsProxy: 'http://10.0.0.7:3128'}}",
        "network.proxy.httpsProxy",
        ["network.serviceCidr"],
    ),
    # Parts that exist.
    (
        f"network: {{{VPC}, subnets: [{{id: subnet-01234567}}]}}",
        "network.subnets[0].cidr",
        ["network.subnets[0].id"],
    ),
    (f"network: {{subnets: [{SUBNET}]}}", "network.subnets[0].id", ["network.vpc.id"]),
    (
        f"network: {{{VPC}, subnets: [{SUBNET}, {{zone: us-west-2b}}]}}",
        "network.subnets[1].cidr",
        ["network.subnets[1].id", "network.vpc.id"],
    ),
    ("network: {routeTable: rtb-01234567}", "network.routeTable", ["network.subnets"]),
    # The topology.
    ("network: {nat: single}", "network.nat", ["network.topology"]),
    ("network: {topology: private}\nnodeGroups: [{publicIp: true}]", "nodeGroups[0].publicIp", ["network.topology"]),
    (
        f"network: {{topology: private, nat: single, {VPC}, subnets: [{SUBNET}]}}",
        "network.nat",
        ["network.subnets"],
    ),
    (
        "network: {plugin: vpc-routes, topology: private, nat: perZone, subnets: [{}, {}]}",
        "network.nat",
        ["network.plugin", "network.subnets"],
    ),
    (
        "network: {topology: private, subnets: [{natGateway: nat-01234567}]}",
        "network.subnets[0].natGateway",
        ["network.vpc.id"],
    ),
    (
        "network: {topology: private, endpoints: {additional: [sts]}}",
        "network.endpoints.additional",
        ["network.nat", "network.endpoints.create"],
    ),
    ("network: {internetGateway: igw-01234567}", "network.internetGateway", ["network.vpc.id"]),
    (
        f"network: {{{VPC}, subnets: [{SUBNET}], internetGateway: igw-01234567}}",
        "network.internetGateway",
        ["network.subnets"],
    ),
    (f"network: {{{VPC}, subnets: [{SUBNET}], dhcpOptions: default}}", "network.dhcpOptions", ["network.vpc.id"]),
    # Address ranges.
    (
        "network: {subnets: [{cidr: 172.21.0.0/24}]}",
        "network.subnets[0].cidr",
        ["network.vpc.cidr", "network.vpc.additionalCidrs"],
    ),
    (
        (
            "network: {subnets: [{zone: us-west-2a, cidr: 172.20.9.0/24}, {zone: us-west-2b, cidr: 172.20.0.0/23}, "
            "{zone: us-west-2c, cidr: 172.20.1.0/24}]}"
        ),
        "network.subnets[2].cidr",
        ["network.subnets[1].cidr"],
    ),
    ("network: {podCidr: 172.20.128.0/17}", "network.podCidr", ["network.vpc.cidr"]),
    ("network: {serviceCidr: 10.240.0.0/12}", "network.serviceCidr", ["network.podCidr"]),
    ("network: {serviceCidr: 172.20.0.0/16}", "network.serviceCidr", ["network.vpc.cidr"]),
    ("controlPlane: {addresses: [172.20.0.9, 172.20.0.10]}", "controlPlane.addresses", ["controlPlane.count"]),
    (
        f"{THREE}\ncontrolPlane: {{count: 3, addresses: [172.20.0.9, 172.20.1.9, 172.20.2.3]}}",
        "controlPlane.addresses[2]",
        ["network.subnets[0].cidr", "network.subnets[1].cidr", "network.subnets[2].cidr", "network.vpc.cidr"],
    ),
    ("network: {dnsServiceIp: 10.1.0.10}", "network.dnsServiceIp", ["network.serviceCidr"]),
    ("network: {dnsServiceIp: 10.0.0.53}", "network.dnsServiceIp", ["network.serviceCidr"]),
    # The network plug-in.
    ("network: {plugin: amazon-vpc, podCidr: 10.9.0.0/16}", "network.podCidr", ["network.plugin"]),
    ("network: {plugin: cilium, nonMasqueradeCidr: 10.0.0.0/8}", "network.nonMasqueradeCidr", ["network.plugin"]),
    (
        f"network: {{plugin: cilium, {VPC}, subnets: [{SUBNET}], routeTable: rtb-01234567}}",
        "network.routeTable",
        ["network.plugin"],
    ),
    ("network: {pluginValues: {a: 1}}", "network.pluginValues", ["network.plugin"]),
    ("network: {plugin: cilium}\napi: {port: 4240}", "api.port", ["network.plugin"]),
    (
        "network: {plugin: amazon-vpc}\nnodeGroups: [{minSize: 30}]",
        "network.subnets",
        ["network.plugin", "nodeGroups", "network.vpc"],
    ),
    # Ways in.
    (f"api: {{public: false, {EIP}}}", "api.elasticIp", ["api.public"]),
    (f"{THREE}\ncontrolPlane: {{count: 3}}\napi: {{{EIP}}}", "api.elasticIp", ["controlPlane.count"]),
    ("ssh: {keyName: mine, publicKey: ssh-rsa AAAA}", "ssh.publicKey", ["ssh.keyName"]),
    ("iam: {permissionsBoundary: 'arn:aws-cn:iam::aws:policy/a'}", "iam.permissionsBoundary", ["region"]),
    (
        "controlPlane: {volume: {kmsKey: 'arn:aws:kms:eu-west-1:123456789012:key/0'}}",
        "controlPlane.volume.kmsKey",
        ["region"],
    ),
    (
        "network: {quotas: {rulesPerSecurityGroup: 1000}}",
        "network.quotas.rulesPerSecurityGroup",
        ["network.quotas.securityGroupsPerInterface"],
    ),
    (
        f"api: {{allowedPrefixLists: [{PREFIX_LIST}]}}",
        "api.allowedPrefixLists[0].maxEntries",
        ["network.quotas"],
    ),
    (
        f"nodeGroups: [{{additionalSecurityGroups: {SG}}}]",
        "nodeGroups[0].additionalSecurityGroups",
        ["network.quotas"],
    ),
    (f"api: {{allowedCidrs: [{RANGES}]}}", "api.allowedCidrs", ["network.quotas"]),
    # Instances.
    ("controlPlane: {instanceType: m5.lagre}", "controlPlane.instanceType", ["region"]),
    (
        "nodeGroups: [{image: {architecture: arm64}}]",
        "nodeGroups[0].image.architecture",
        ["nodeGroups[0].instanceType", "nodeGroups[0].instanceTypes", "nodeGroups[0].instanceRequirements"],
    ),
    ("image: {id: ami-01234567, ssmParameter: /a}", "image.ssmParameter", ["image.id"]),
    (
        "controlPlane: {image: {rootDevice: /dev/xvda}}",
        "controlPlane.image.rootDevice",
        ["controlPlane.image.id", "controlPlane.image.ssmParameter"],
    ),
    ("api: {public: false}", "api.public", ["network.subnets", "network.proxy", "network.topology"]),
    (
        "nodeGroups: [{publicIp: false}]",
        "nodeGroups[0].publicIp",
        ["network.subnets", "network.proxy", "network.topology"],
    ),
    # Volumes.
    (
        "controlPlane: {volume: {type: gp2, size: 20000}}",
        "controlPlane.volume.size",
        ["controlPlane.volume.type"],
    ),
    ("nodeGroups: [{rootVolume: {size: 5}}]", "nodeGroups[0].rootVolume.size", ["nodeGroups[0].image"]),
    *(
        (
            f"controlPlane: {{volume: {volume}}}",
            "controlPlane.volume.iops",
            ["controlPlane.volume.type", "controlPlane.volume.size"],
        )
        for volume in ("{type: gp2, iops: 3000}", "{type: io2}", "{iops: 1000}", "{type: io1, size: 20, iops: 5000}")
    ),
    (
        "controlPlane: {volume: {throughput: 1000}}",
        "controlPlane.volume.throughput",
        ["controlPlane.volume.iops", "controlPlane.volume.type"],
    ),
    (
        "controlPlane: {volume: {type: io2, iops: 1000, throughput: 500}}",
        "controlPlane.volume.throughput",
        ["controlPlane.volume.type"],
    ),
    # Node groups.
    ("nodeGroups: [{minSize: 5, maxSize: 3}]", "nodeGroups[0].maxSize", ["nodeGroups[0].minSize"]),
    (
        "nodeGroups: [{desiredSize: 6}]",
        "nodeGroups[0].desiredSize",
        ["nodeGroups[0].minSize", "nodeGroups[0].maxSize"],
    ),
    (
        "network: {podCidr: 10.244.0.0/22}\nnodeGroups: [{minSize: 2}, {name: b, minSize: 2}]",
        "network.podCidr",
        ["nodeGroups[0].maxSize", "nodeGroups[0].minSize", "nodeGroups[1].maxSize", "nodeGroups[1].minSize"],
    ),
    (
        "network: {subnets: [{cidr: 172.20.0.0/28}]}\nnodeGroups: [{minSize: 12}]",
        "network.subnets[0].cidr",
        ["nodeGroups", "controlPlane.count", "api", "network.nat", "network.endpoints"],
    ),
    (
        f"nodeGroups: [{{labels: {{{MANY}}}}}]",
        "nodeGroups[0].labels",
        ["nodeGroups[0].taints", "nodeGroups[0].autoscaler.resources", "tags"],
    ),
    # Add-ons.
    ("addons: {externalDns: {enabled: true}}", "addons.externalDns.zones", ["addons.externalDns.enabled"]),
    ("addons: {fluentBit: {enabled: true}}", "addons.fluentBit.values", ["addons.fluentBit.enabled"]),
    (
        f"addons: {{charts: [{CHART.replace('a,', 'x,')}, {CHART}, {CHART}]}}",
        "addons.charts[2].name",
        ["addons.charts[1].name"],
    ),
    ("api: {port: 9808}", "api.port", ["addons.awsEbsCsiDriver.enabled"]),
]


@pytest.mark.parametrize(("text", "key", "depends_on"), ROWS, ids=[f"{key} of {text[:40]}" for text, key, _ in ROWS])
def test_what_a_problem_depends_on(text: str, key: str, depends_on: list[str]) -> None:
    cluster = Cluster.model_validate(complete(yaml.safe_load(text)).data)
    found = [problem for problem in checks.problems(cluster) if dotted(problem.path) == key]
    assert [[dotted(path) for path in problem.related_paths] for problem in found] == [depends_on]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        # The range of the VPC is refused: whether the subnet lies in it, nobody can tell.
        (
            {"network": {"vpc": {"cidr": "10.0.0.0"}, "subnets": [{"cidr": "10.0.1.0/24"}], "podCidr": "10.9.0.0/16"}},
            ["network.vpc.cidr"],
        ),
        ({"network": {"plugin": "kubenet", "pluginValues": {"a": 1}}}, ["network.plugin"]),
        ({"controlPlane": {"volume": {"type": "io3", "iops": 200}}}, ["controlPlane.volume.type"]),
        ({"nodeGroups": [{"minSize": "1", "maxSize": 2, "desiredSize": 1}]}, ["nodeGroups[0].minSize"]),
        ({"nodeGroups": [{"instanceType": 4, "image": {"architecture": "arm64"}}]}, ["nodeGroups[0].instanceType"]),
        ({"nodeGroups": [{"instanceTypes": 4, "image": {"architecture": "arm64"}}]}, ["nodeGroups[0].instanceTypes"]),
        ({"nodeGroups": [{"instanceTypes": 4, "gpu": "nvidia"}]}, ["nodeGroups[0].instanceTypes"]),
        ({"nodeGroups": [{"spotPrice": "low", "capacityRebalance": True}]}, ["nodeGroups[0].spotPrice"]),
        ({"controlPlane": {"volume": {"type": "io3", "throughput": 1000}}}, ["controlPlane.volume.type"]),
        ({"network": {"topology": "hidden"}, "api": {"public": False}}, ["network.topology"]),
        ({"network": {"topology": "private", "vpc": 5, "subnets": [{"public": {}}]}}, ["network.vpc"]),
        (
            {"serviceAccountIssuer": "ours", "iam": {"serviceAccounts": [{"namespace": "shop", "name": "web"}]}},
            ["serviceAccountIssuer"],
        ),
    ],
)
def test_nothing_is_said_that_follows_from_a_refused_value(data: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(ClusterFileError) as raised:
        parse(data)
    assert [dotted(problem.path) for problem in raised.value.problems] == said

"""What a cluster file names as existing is made in a sandbox, as a network in which a cluster can be created."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path += [str(Path(__file__).parents[1] / beside) for beside in ("aws", "deploy")]

from cloud import Cloud, default_cloud

from cfngen.cli.input.existing_parts import existing_parts
from cfngen.cluster.documents import examples
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.security_groups.needed_rules import needed_rules
from cfngen.deploy.aws.account import connect
from cfngen.deploy.aws.tags import cluster_tag
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.preflight.existing import objects
from cfngen.deploy.preflight.existing.network import find_source_problems
from cfngen.deploy.preflight.existing.roles import find_role_problems, notices
from cfngen.deploy.preflight.network.checks import check_network
from cfngen.permissions.trust import trust_policy
from cfngen.sandbox.existing_parts import make_existing_parts
from cfngen.sandbox.services.quotas import ADDRESSES, INTERNET_GATEWAYS, NAT_GATEWAYS, VPCS

REGION = "us-west-2"
ROLE = "arn:aws:iam::123456789012:role/teams/web"
NETWORK = {"plugin": "cilium", "podCidr": "10.128.0.0/16", "serviceCidr": "10.129.0.0/16"}
FIRST = {"zone": f"{REGION}a", "cidr": "10.20.0.0/20"}
SECOND = {"zone": f"{REGION}b", "cidr": "10.20.16.0/20"}
EXISTING = [{**FIRST, "id": "subnet-0000000a"}, {**SECOND, "id": "subnet-0000000b"}]
BESIDE = {"public": {"id": "subnet-0000000c"}, "natGateway": "nat-0000000a"}
NETWORKS: dict[str, dict[str, Any]] = {
    "public": {"subnets": EXISTING},
    "one route table": {"subnets": EXISTING, "plugin": "vpc-routes", "routeTable": "rtb-0000000a"},
    "internet gateway": {"subnets": [FIRST], "internetGateway": "igw-0000000a"},
    "private": {"topology": "private", "subnets": EXISTING},
    "NAT gateways": {"topology": "private", "subnets": [{**FIRST, **BESIDE}], "endpoints": {"create": False}},
    "route table": {
        "topology": "private",
        "subnets": [{**FIRST, "routeTable": "rtb-0000000b", "public": {"cidr": "10.20.255.0/24"}}],
    },
}


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with default_cloud() as made:
        for quota in (VPCS, ADDRESSES, INTERNET_GATEWAYS, NAT_GATEWAYS):
            made.moto_extensions.set_quota(*quota, 100)
        yield made


def cluster_in(network: dict[str, Any], number: int) -> Cluster:
    """Return a cluster in an existing VPC whose ids are those of no other network of these tests."""
    network = {**NETWORK, "vpc": {"id": "vpc-0000000a", "cidr": "10.20.0.0/16"}, **network}
    named = json.loads(json.dumps(network).replace("-0000000", f"-000000{number}"))
    return parse({"network": named, "api": {"public": network.get("topology") != "private"}})


def make(cluster: Cluster) -> list[str]:
    return make_existing_parts(cluster.region, existing_parts(cluster, cluster.name))


def found(cloud: Cloud, cluster: Cluster) -> list[tuple[str, str]]:
    """Return what a plan says of the network and the roles."""
    account = connect(cloud.session, REGION, clock=cloud.clock)
    result = check_network(account, cluster, lambda message: None)
    findings = (*result.problems, *result.warnings, *find_role_problems(account, cluster))
    said = [notice.text.split(": ", 1) for notice in notices(account, cluster, cluster.name)]
    return [*((finding.key, finding.text) for finding in findings), *((key, text) for key, text in said)]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_cluster_can_be_created_in_what_is_made(cloud: Cloud, name: str) -> None:
    cluster = cluster_in(NETWORKS[name], number := list(NETWORKS).index(name))
    assert set(make(cluster)) == set(re.findall(rf"[a-z]+-000000{number}[a-d]", str(cluster.network)))
    assert found(cloud, cluster) == []
    assert make(cluster) == []


def test_what_ec2_refuses_stays_missing(cloud: Cloud) -> None:
    make(cluster_in({"subnets": [EXISTING[0]]}, 8))
    assert make(cluster_in({"subnets": [{**EXISTING[0], "id": "subnet-0000000e"}]}, 8)) == []


def test_roles_of_the_account_are_made_once(cloud: Cloud) -> None:
    roles = {"web": ROLE, "foreign": ROLE.replace("123456789012", "999999999999")}
    accounts = [{"namespace": "web", "name": name, "role": role} for name, role in roles.items()]
    cluster = parse({"iam": {"serviceAccounts": accounts}, "serviceAccountIssuer": {"discovery": "cloudFront"}})
    assert make(cluster) == [ROLE]
    assert make(cluster) == []
    role = cloud.client("iam").get_role(RoleName="web")["Role"]
    assert (role["Arn"], role["Path"]) == (ROLE, "/teams/")


def test_what_the_hardened_example_leaves_to_the_account_is_made_in_it(cloud: Cloud) -> None:
    cluster = examples.cluster_of(examples.with_region(examples.text_of("hardened"), REGION))
    made = make(cluster)
    key = f"arn:aws:kms:{REGION}:123456789012:key/0a1b2c3d-0000-4000-8000-00000000000"
    expected = {f"{key}{number}" for number in (1, 2, 3)}
    expected |= {"arn:aws:iam::123456789012:policy/boundary", f"arn:aws:sns:{REGION}:123456789012:hardened"}
    assert expected <= set(made)
    account = connect(cloud.session, REGION, clock=cloud.clock)
    said: list[Notice] = []
    objects.check(account, cluster, {}, None, said.append)
    assert said == []


class Everything(NamedTuple):
    """The cluster of the example in which everything exists, and clients of an account that has it."""

    cluster: Cluster
    ec2: Any
    iam: Any

    def reroute(self, **target: str) -> None:
        """Let the first subnet's default route lead elsewhere; without a target it has none."""
        [table] = self._of_vpc("route_tables", "association.subnet-id", self.cluster.network.subnets[0].id)
        route = {"RouteTableId": table["RouteTableId"], "DestinationCidrBlock": "0.0.0.0/0"}
        self.ec2.delete_route(**route)
        if target:
            self.ec2.create_route(**route, **target)

    def route_to_internet_gateway(self) -> None:
        [gateway] = self._of_vpc("internet_gateways", "attachment.vpc-id", self.cluster.network.vpc.id)
        self.reroute(GatewayId=gateway["InternetGatewayId"])

    def delete_nat_gateway(self) -> None:
        gateway = self._of_vpc("nat_gateways", "vpc-id", self.cluster.network.vpc.id)[0]
        self.ec2.delete_nat_gateway(NatGatewayId=gateway["NatGatewayId"])

    def _of_vpc(self, kind: str, name: str, value: str | None) -> list[Any]:
        described = getattr(self.ec2, f"describe_{kind}")(Filters=[{"Name": name, "Values": [value]}])
        return list(described["".join(map(str.capitalize, kind.split("_")))])

    def revoke(self, traffic: str, peer: str) -> None:
        """Take a rule of the masters' group away."""
        group = self.cluster.network.security_groups.masters
        [rule] = [
            rule.permission
            for rule in needed_rules(self.cluster)
            if (rule.group, rule.traffic, rule.peer_key.rpartition(".")[2]) == (group, traffic, peer)
        ]
        self.ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[rule])

    def delete_group(self) -> None:
        self.revoke("TCP 443", "apiLoadBalancer")
        self.ec2.delete_security_group(GroupId=self.cluster.network.security_groups.api_load_balancer)

    def untag(self, resource: str | None, key: str) -> None:
        self.ec2.delete_tags(Resources=[resource], Tags=[{"Key": key}])

    def name(self, role: str) -> str:
        return f"{self.cluster.name}-{role}"

    def detach_policies(self) -> None:
        name = self.name("nodes")
        for policy in self.iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
            self.iam.detach_role_policy(RoleName=name, PolicyArn=policy["PolicyArn"])

    def distrust_ec2(self) -> None:
        trust = json.dumps(trust_policy("cn-north-1"))
        self.iam.update_assume_role_policy(RoleName=self.name("masters"), PolicyDocument=trust)

    def empty_profile(self) -> None:
        self.iam.remove_role_from_instance_profile(InstanceProfileName=self.name("nodes"), RoleName=self.name("nodes"))

    def exchange_role(self) -> None:
        self.empty_profile()
        self.iam.add_role_to_instance_profile(InstanceProfileName=self.name("nodes"), RoleName=self.name("masters"))

    def delete_profile(self) -> None:
        self.empty_profile()
        self.iam.delete_instance_profile(InstanceProfileName=self.name("nodes"))


_MASTERS = "network.securityGroups.masters"
# What somebody has left out or made otherwise, and what the checks then say: a part of the text by the key.
DEFECTS: dict[str, tuple[Callable[[Everything], object], dict[str, str]]] = {
    "nothing": (lambda own: None, {}),
    "DNS": (
        lambda own: own.ec2.modify_vpc_attribute(VpcId=own.cluster.network.vpc.id, EnableDnsHostnames={"Value": False}),
        {"network.vpc.id": "has no DNS host names"},
    ),
    "subnet": (
        lambda own: own.ec2.delete_subnet(SubnetId=own.cluster.network.subnets[1].id),
        {"network.subnets[1].id": "there is no subnet"},
    ),
    "role tag": (
        lambda own: own.untag(own.cluster.network.subnets[2].id, "kubernetes.io/role/internal-elb"),
        {"network.subnets[2].id": "has no tag kubernetes.io/role/internal-elb"},
    ),
    "route": (Everything.reroute, {"network.subnets[0].id": "has no way out"}),
    "target": (Everything.route_to_internet_gateway, {"network.subnets[0].id": "leads to the internet gateway"}),
    "NAT gateway": (Everything.delete_nat_gateway, {"network.subnets[0].id": "no longer exists"}),
    "group": (
        Everything.delete_group,
        {"network.securityGroups.apiLoadBalancer": "there is no security group", _MASTERS: "incoming TCP 443 from"},
    ),
    "rule": (lambda own: own.revoke("TCP 10250", "nodes"), {_MASTERS: "has no rule for incoming TCP 10250"}),
    "ICMP rule": (
        lambda own: own.revoke("ICMP type 3 code 4", "nodes"),
        {_MASTERS: "has no rule for incoming ICMP type 3 code 4"},
    ),
    "cluster tag": (
        lambda own: own.untag(own.cluster.network.security_groups.nodes, cluster_tag(own.cluster.name)),
        {"network.securityGroups.nodes": "has no tag kubernetes.io/cluster/"},
    ),
    "trust": (Everything.distrust_ec2, {"iam.masters.role": "does not trust ec2.amazonaws.com"}),
    "policies": (Everything.detach_policies, {"iam.nodes.role": "lacks autoscaling:CompleteLifecycleAction"}),
    "profile": (Everything.delete_profile, {"iam.nodes.instanceProfile": "there is no instance profile"}),
    "empty profile": (Everything.empty_profile, {"iam.nodes.instanceProfile": "holds no role"}),
    "role": (Everything.exchange_role, {"iam.nodes.instanceProfile": "-masters and not arn:"}),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_what_exists_is_the_only_finding(cloud: Cloud, name: str) -> None:
    number = list(DEFECTS).index(name)
    text = examples.with_region(examples.text_of("existing-everything"), REGION)
    text = text.replace("123456789abcdef", f"{number:015x}").replace("tenant", f"tenant-{number}")
    own = Everything(examples.cluster_of(text), cloud.client("ec2"), cloud.client("iam"))
    named = re.findall(r"\b(?:vpc|subnet|sg)-[0-9a-f]+\b|arn:\S+", text)
    assert sorted(make(own.cluster)) == sorted(named)
    make_defect, expected = DEFECTS[name]
    make_defect(own)
    findings = found(cloud, own.cluster)
    assert [key for key, _ in findings] == list(expected)
    assert [text for key, text in findings if expected[key] not in text] == []


def test_who_may_reach_a_port_is_made(cloud: Cloud) -> None:
    prefix_list = {"id": "pl-00000091", "maxEntries": 7}
    rule = {"ports": 80, "prefixLists": [prefix_list], "securityGroups": ["sg-00000091"]}
    network = {**NETWORK, "vpc": {"id": "vpc-00000091", "cidr": "10.20.0.0/16"}, "subnets": [FIRST]}
    cluster = parse({"network": network, "nodeGroups": [{"ingress": [rule]}]})
    assert {"pl-00000091", "sg-00000091"} <= set(make(cluster))
    account = connect(cloud.session, REGION, clock=cloud.clock)
    assert list(find_source_problems(account, cluster, "vpc-00000091")) == []
    [made] = cloud.client("ec2").describe_managed_prefix_lists(PrefixListIds=["pl-00000091"])["PrefixLists"]
    assert made["MaxEntries"] == 7
    assert make(cluster) == []

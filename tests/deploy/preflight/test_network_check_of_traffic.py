"""What the check of an existing network says about endpoints, addresses, network ACLs, tags and quotas: both ways."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from existing_network import REGION, ExistingNetwork

from cfngen.cluster.load import parse
from cfngen.cluster.network.endpoints import required_services
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.messages.message import Message
from cfngen.deploy.preflight.findings import Finding, NetworkCheck, Severity
from cfngen.deploy.preflight.network.checks import ensure_network
from cfngen.sandbox.services.quotas import ROUTES

pytestmark = pytest.mark.drill


@pytest.fixture
def account(cloud: Cloud) -> Account:
    return connect(cloud.session, REGION, clock=cloud.clock, attempts=1)


@pytest.fixture
def public(account: Account) -> ExistingNetwork:
    return ExistingNetwork(account)


@pytest.fixture
def isolated(account: Account) -> ExistingNetwork:
    """A private network without a default route, and with all endpoints that instances need."""
    network = ExistingNetwork(account, "private")
    network.drop_default_route()
    group = network.group("10.20.0.0/24", "10.20.16.0/24")
    network.endpoints = {
        endpoint.service: network.endpoint(endpoint.service, group)
        for endpoint in required_services(parse({"network": network.network, **network.file}))
    }
    network.s3 = network.s3_endpoint(network.table_of_instances)
    return network


def test_endpoints_are_enough_without_a_default_route(isolated: ExistingNetwork) -> None:
    assert isolated.found() == []


def test_each_missing_endpoint_is_a_problem_with_its_reason(isolated: ExistingNetwork) -> None:
    isolated.ec2.delete_vpc_endpoints(VpcEndpointIds=[isolated.endpoints["ec2"], isolated.endpoints["ssm"]])
    ec2, ssm = isolated.found()
    assert "cannot reach ec2 (volumes, addresses, routes" in ec2.text
    assert "cannot reach ssm (Session Manager)" in ssm.text
    assert f"--service-name com.amazonaws.{REGION}.ec2" in ec2.commands[0]


def test_neither_route_nor_endpoint_is_one_problem(account: Account) -> None:
    network = ExistingNetwork(account, "private")
    network.drop_default_route()
    finding = network.only()
    assert finding.text.startswith(f"{network.subnets[0]}, {network.subnets[1]} have no way out: ")
    assert "create the endpoints of autoscaling, cloudformation, ec2, " in finding.remedy
    assert f"--route-table-id {network.table_of_instances} --destination-cidr-block 0.0.0.0/0" in finding.commands[0]


def test_an_endpoint_without_private_dns_is_a_problem(isolated: ExistingNetwork) -> None:
    isolated.ec2.delete_vpc_endpoints(VpcEndpointIds=[isolated.endpoints["ec2"]])
    endpoint = isolated.endpoint("ec2", isolated.group("10.20.0.0/16"), private_dns=False)
    finding = isolated.only()
    assert f"the endpoint {endpoint} for ec2 has no private DNS name" in finding.text


def test_a_security_group_that_admits_one_subnet_only_is_a_problem(isolated: ExistingNetwork) -> None:
    isolated.ec2.delete_vpc_endpoints(VpcEndpointIds=[isolated.endpoints["ec2"]])
    group = isolated.group("10.20.0.0/24")
    isolated.endpoint("ec2", group)
    finding = isolated.only()
    assert "does not admit 10.20.16.0/24 on TCP port 443" in finding.text
    assert finding.commands[0].endswith(f"--group-id {group} --protocol tcp --port 443 --cidr 10.20.16.0/24")


def test_a_missing_endpoint_for_s3_is_a_problem(isolated: ExistingNetwork) -> None:
    isolated.ec2.delete_vpc_endpoints(VpcEndpointIds=[isolated.s3])
    finding = isolated.found()[0]
    assert "cannot reach S3: there is neither a default route nor an endpoint" in finding.text
    assert finding.commands[0].endswith(f"--route-table-ids {isolated.table_of_instances}")


def test_an_endpoint_for_s3_in_another_table_is_a_problem(isolated: ExistingNetwork) -> None:
    isolated.ec2.delete_vpc_endpoints(VpcEndpointIds=[isolated.s3])
    other = isolated.s3_endpoint(isolated.public_table)
    [command] = isolated.found()[0].commands
    assert f"--vpc-endpoint-id {other} " in command
    assert command.endswith(f"--add-route-table-ids {isolated.table_of_instances}")


def test_an_endpoint_that_cfngen_would_create_again_is_a_problem(isolated: ExistingNetwork) -> None:
    isolated.network["subnets"] = [{"zone": f"{REGION}a", "cidr": "10.20.32.0/24"}]
    isolated.network["nat"] = "none"
    found = isolated.found()
    assert {finding.key for finding in found} == {"network.endpoints.create"}
    assert len(found) == len(isolated.endpoints)
    isolated.ec2.delete_vpc_endpoints(VpcEndpointIds=list(isolated.endpoints.values()))
    assert isolated.found() == []


def test_dns_host_names_are_a_problem_where_endpoints_need_them(isolated: ExistingNetwork) -> None:
    isolated.ec2.modify_vpc_attribute(VpcId=isolated.vpc, EnableDnsHostnames={"Value": False})
    assert isolated.only().severity is Severity.PROBLEM


def test_an_address_of_a_master_that_is_used_is_a_problem(public: ExistingNetwork) -> None:
    address = str(parse({"network": public.network}).slots[0].address)
    interface = public.ec2.create_network_interface(SubnetId=public.subnets[0], PrivateIpAddress=address)
    interface_id = interface["NetworkInterface"]["NetworkInterfaceId"]
    finding = public.only()
    assert finding.key == "controlPlane.addresses"
    assert f"master a needs {address}, which the network interface {interface_id}" in finding.text
    public.tag(interface_id, "KubernetesCluster", "kubernetes")
    assert public.found() == []


def test_a_subnet_without_room_is_a_problem_and_one_without_room_to_grow_a_warning(public: ExistingNetwork) -> None:
    subnet = public.subnet("a", "10.20.64.0/28", public.public_table, "elb")
    public.network["subnets"] = [{"zone": f"{REGION}a", "id": subnet, "cidr": "10.20.64.0/28"}]
    public.file = {
        "controlPlane": {"addresses": ["10.20.64.14"]},
        "nodeGroups": [{"name": "nodes", "minSize": 5, "maxSize": 9}],
    }
    assert public.found() == []
    for last in (4, 5, 6):
        public.ec2.create_network_interface(SubnetId=subnet, PrivateIpAddress=f"10.20.64.{last}")
    finding = public.only()
    assert (finding.severity, finding.key) == (Severity.WARNING, "network.subnets[0].cidr")
    assert "has 8 free addresses, and the cluster needs 10 when its groups have" in finding.text
    for last in (7, 8, 9):
        public.ec2.create_network_interface(SubnetId=subnet, PrivateIpAddress=f"10.20.64.{last}")
    finding = public.only()
    assert (finding.severity, finding.key) == (Severity.PROBLEM, "network.subnets[0].cidr")
    assert "has 5 free addresses, and the cluster needs 6 (1 for masters and 5 for nodes)" in finding.text


def test_what_else_takes_addresses_of_a_subnet_is_counted_once(public: ExistingNetwork) -> None:
    subnet = public.subnet("a", "10.20.64.0/27", public.public_table, "elb")
    public.network["subnets"] = [{"zone": f"{REGION}a", "id": subnet, "cidr": "10.20.64.0/27"}]
    for _ in range(16):  # somebody else's
        public.ec2.create_network_interface(SubnetId=subnet)
    public.file = {"controlPlane": {"count": 3}, "api": {"public": False}, "nodeGroups": [{"minSize": 1}]}

    def about_room() -> list[Finding]:
        return [finding for finding in public.found() if finding.key == "network.subnets[0].cidr"]

    [finding] = about_room()
    assert finding.severity is Severity.PROBLEM
    assert finding.text.endswith("needs 12 (3 for masters, 1 for nodes and 8 for load balancers)")
    # The load balancer that the cluster has already asks for no more.
    name = "ELB net/kubernetes-int/0123456789abcdef"
    public.ec2.create_network_interface(SubnetId=subnet, Description=name)
    assert about_room() == []


def test_a_second_range_of_the_vpc_must_not_be_that_of_pods(public: ExistingNetwork) -> None:
    public.ec2.associate_vpc_cidr_block(VpcId=public.vpc, CidrBlock="10.244.0.0/16")
    finding = public.only()
    assert (finding.severity, finding.key) == (Severity.PROBLEM, "network.podCidr")
    assert finding.text.startswith("10.244.0.0/16 overlaps")
    del public.network["podCidr"]
    assert public.only().text.startswith("10.244.0.0/16, the default, overlaps 10.244.0.0/16 of vpc-")
    public.network["podCidr"] = "10.245.0.0/16"
    assert public.found() == []


def test_a_peer_with_the_range_of_services_is_a_warning(public: ExistingNetwork) -> None:
    peer = public.ec2.create_vpc(CidrBlock="10.250.0.0/20")["Vpc"]["VpcId"]
    made = public.ec2.create_vpc_peering_connection(VpcId=public.vpc, PeerVpcId=peer)["VpcPeeringConnection"]
    assert public.found() == []
    public.ec2.accept_vpc_peering_connection(VpcPeeringConnectionId=made["VpcPeeringConnectionId"])
    finding = public.only()
    assert (finding.severity, finding.key) == (Severity.WARNING, "network.serviceCidr")
    assert f"overlaps 10.250.0.0/20 of {peer}" in finding.text


def test_a_route_to_the_pods_of_another_cluster_is_a_problem_with_vpc_routes(account: Account) -> None:
    network = ExistingNetwork(account, plugin="vpc-routes")
    network.network["routeTable"] = network.public_table
    interface = network.ec2.create_network_interface(SubnetId=network.subnets[0], PrivateIpAddress="10.20.0.200")
    network.route(
        network.public_table, "10.244.3.0/24", NetworkInterfaceId=interface["NetworkInterface"]["NetworkInterfaceId"]
    )
    finding = network.only()
    assert (finding.severity, finding.key) == (Severity.PROBLEM, "network.podCidr")
    assert "the route to 10.244.3.0/24" in finding.text
    network.network["plugin"] = "cilium"
    del network.network["routeTable"]
    assert network.only().severity is Severity.WARNING


class Acl:
    """A network ACL of the first subnet, which denies everything until rules are added."""

    def __init__(self, network: ExistingNetwork) -> None:
        self.ec2 = network.ec2
        self.id = self.ec2.create_network_acl(VpcId=network.vpc)["NetworkAcl"]["NetworkAclId"]
        [used] = self.ec2.describe_network_acls(
            Filters=[{"Name": "association.subnet-id", "Values": [network.subnets[0]]}]
        )["NetworkAcls"]
        association = next(each for each in used["Associations"] if each["SubnetId"] == network.subnets[0])
        self.ec2.replace_network_acl_association(
            AssociationId=association["NetworkAclAssociationId"], NetworkAclId=self.id
        )
        self.number = 100

    def add(
        self, action: str, cidr: str = "0.0.0.0/0", ports: tuple[int, int] | None = None, *, egress: bool = True
    ) -> None:
        self.number += 10
        port_range = {"PortRange": {"From": ports[0], "To": ports[1]}} if ports else {}
        self.ec2.create_network_acl_entry(
            NetworkAclId=self.id,
            RuleNumber=self.number,
            Protocol="6" if ports else "-1",
            RuleAction=action,
            Egress=egress,
            CidrBlock=cidr,
            **port_range,
        )


def test_a_network_acl_that_allows_what_is_needed_is_in_order(public: ExistingNetwork) -> None:
    acl = Acl(public)
    public.network["plugin"] = "amazon-vpc"
    del public.network["podCidr"]
    acl.add("deny", "198.51.100.0/24")  # somebody whom nobody needs
    acl.add("allow", ports=(443, 443))
    acl.add("allow", ports=(1024, 65535))
    acl.add("allow", "10.20.0.0/16")
    acl.add("allow", "10.20.0.0/16", egress=False)
    acl.add("allow", ports=(1024, 40000), egress=False)
    acl.add("allow", ports=(40001, 65535), egress=False)
    acl.add("allow", "203.0.113.0/24", ports=(443, 443), egress=False)
    public.file["api"] = {"allowedCidrs": ["203.0.113.0/24"]}
    assert [finding for finding in public.found() if finding.check == "network-acls"] == []


def test_a_network_acl_that_denies_everything_blocks_everything(public: ExistingNetwork) -> None:
    Acl(public)
    found = public.found()
    assert {finding.key for finding in found} == {"network.subnets[0].id"}
    texts = " ".join(finding.text for finding in found)
    for traffic in ("outbound TCP 443 to 0.0.0.0/0", "inbound TCP 1024-65535 from 0.0.0.0/0", "UDP 8472"):
        assert traffic in texts
    assert "the last rule (*)" in texts


def test_a_missing_rule_for_answers_is_a_problem(public: ExistingNetwork) -> None:
    acl = Acl(public)
    acl.add("allow")
    acl.add("allow", "10.20.0.0/16", egress=False)
    finding = public.only()
    assert "blocks inbound TCP 1024-65535 from 0.0.0.0/0 (answers to instances)" in finding.text
    assert "--ingress --rule-number NUMBER --protocol 6 --port-range From=1024,To=65535" in finding.commands[0]


def test_a_rule_against_another_subnet_is_a_problem(public: ExistingNetwork) -> None:
    acl = Acl(public)
    acl.add("deny", "10.20.16.0/24", egress=False)
    acl.add("allow", egress=False)
    acl.add("allow")
    found = public.found()
    assert all("from 10.20.16.0/24" in finding.text and "rule 110" in finding.text for finding in found)
    assert found


def test_clients_of_the_api_must_pass(public: ExistingNetwork) -> None:
    acl = Acl(public)
    acl.add("allow")
    acl.add("allow", "10.20.0.0/16", egress=False)
    acl.add("allow", ports=(1024, 65535), egress=False)
    public.network["subnets"] = public.network["subnets"][:1]
    public.file["api"] = {"allowedCidrs": ["203.0.113.0/24"]}
    assert "inbound TCP 443 from 203.0.113.0/24 (clients of the API)" in public.only().text


def test_subnets_without_a_role_or_of_another_cluster_are_warnings(public: ExistingNetwork) -> None:
    subnet = public.subnets[0]
    public.ec2.delete_tags(Resources=[subnet], Tags=[{"Key": "kubernetes.io/role/elb"}])
    finding = public.only()
    assert (finding.severity, finding.key) == (Severity.WARNING, "network.subnets[0].id")
    assert finding.commands == (
        f"aws ec2 create-tags --region {REGION} --resources {subnet} --tags Key=kubernetes.io/role/elb,Value=1",
    )
    public.tag(subnet, "kubernetes.io/role/elb", "1")
    public.tag(subnet, "kubernetes.io/cluster/other", "shared")
    finding = public.only()
    assert "has the tag of the cluster other and not that of kubernetes" in finding.text
    public.tag(subnet, "kubernetes.io/cluster/third", "shared")
    assert "has the tags of the clusters other and third and not that of kubernetes" in public.only().text
    public.tag(subnet, "kubernetes.io/cluster/kubernetes", "shared")
    assert public.found() == []


def test_quotas_that_are_too_low_are_problems(cloud: Cloud, account: Account) -> None:
    network = ExistingNetwork(account, plugin="vpc-routes")
    network.network |= {"routeTable": network.public_table, "quotas": {"rulesPerSecurityGroup": 80}}
    network.file["nodeGroups"] = [{"name": "nodes", "minSize": 3, "maxSize": 20}]
    finding = network.only()
    assert (finding.severity, finding.key) == (Severity.PROBLEM, "network.quotas")
    assert finding.text.startswith("Inbound or outbound rules per security group: ")
    cloud.moto_extensions.set_quota("vpc", "L-0EA8095F", 80)
    assert network.found() == []
    cloud.moto_extensions.set_quota(*ROUTES, 10)
    finding = network.only()
    assert (finding.severity, finding.text.partition(" (")[0]) == (Severity.WARNING, "Routes per route table")
    assert "request-service-quota-increase" in finding.remedy
    cloud.moto_extensions.set_quota(*ROUTES, 5)
    assert network.only().severity is Severity.PROBLEM


def test_what_may_not_be_read_is_a_warning_and_not_in_order(
    public: ExistingNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    from botocore.exceptions import ClientError

    paginator = public.ec2.get_paginator

    def refusing(operation: str) -> Any:
        if operation == "describe_network_acls":
            raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeNetworkAcls")
        return paginator(operation)

    monkeypatch.setattr(public.ec2, "get_paginator", refusing)
    finding = public.only()
    assert (finding.severity, "the list of network ACLs cannot be read" in finding.text) == (Severity.WARNING, True)
    assert "network-acls" not in {finding.check for finding in public.check().findings}


def test_a_vpc_that_may_not_be_read_is_told_before_a_deployment(public: ExistingNetwork) -> None:
    """The deployment is not kept back, and nobody takes the network for checked."""
    told: list[Message] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public.ec2, "can_paginate", lambda call: False)
        patch.setattr(public.ec2, "describe_vpcs", refused)
        is_judged = ensure_network(
            public.account, parse({**public.file, "network": public.network}), told.append, {"VpcId": public.vpc}
        )
    [check] = (message for message in told if isinstance(message, NetworkCheck))
    [finding] = check.findings
    assert (is_judged, finding.severity, finding.key) == (False, Severity.WARNING, "network.vpc.id")
    assert finding.text.startswith(f"the VPC {public.vpc} cannot be read, so what depends on it was not checked: not")


def refused(**arguments: Any) -> Any:
    from botocore.exceptions import ClientError

    raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeVpcs")

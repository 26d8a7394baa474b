"""What CloudFormation may do for one cluster: what its templates need, and nothing to what is another one's."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pytest
from policy_decisions import allows
from test_documented_policies import NOT_NEEDED, schema
from test_private_cluster_policy import NOT_NEEDED as NOT_NEEDED_BY_PRIVATE

from cfngen.cluster.load import load, parse
from cfngen.cluster.model import Cluster
from cfngen.permissions.grants import grants, scope_of
from cfngen.templates import generate

ACCOUNT = "123456789012"
HERE = f"us-west-2:{ACCOUNT}"
CASES = sorted(path.parent for path in (Path(__file__).parents[1] / "golden" / "cases").glob("*/cluster.yaml"))
BOUNDARY, OF_PODS = (f"arn:aws:iam::{ACCOUNT}:policy/{name}" for name in ("roles-of-clusters", "roles-of-pods"))
ROLE = f"arn:aws:iam::{ACCOUNT}:role/kubernetes-IamStack-1AB-MasterRole-2CD"
POD_ROLE = f"arn:aws:iam::{ACCOUNT}:role/kubernetes.us-west-2.shop.web"
ISSUER: dict[str, Any] = {"serviceAccountIssuer": {"discovery": "bucket"}, "addons": {}}
OWN, OTHERS = ({"aws:ResourceTag/KubernetesCluster": name} for name in ("kubernetes", "others"))
PUT = {"aws:RequestTag/KubernetesCluster": "kubernetes"}
VPC, SUBNET, GROUP = "vpc-0123456789abcdef0", "subnet-0123456789abcdef0", "sg-0123456789abcdef0"
IN_VPC, IN_ANOTHER = ({"ec2:Vpc": f"arn:aws:ec2:{HERE}:vpc/{vpc_id}"} for vpc_id in (VPC, "vpc-1"))
EXISTING: dict[str, Any] = {
    "network": {
        "vpc": {"id": VPC, "cidr": "10.20.0.0/16"},
        "subnets": [{"zone": "us-west-2a", "id": SUBNET, "cidr": "10.20.0.0/24"}],
        "securityGroups": {"masters": GROUP, "nodes": GROUP},
        "serviceCidr": "10.250.0.0/16",
        "plugin": "cilium",
    },
    "iam": {
        instances: {"role": f"arn:aws:iam::{ACCOUNT}:role/{instances}"} for instances in ("masters", "nodes")
    },
}  # fmt: skip
# The action that creates a resource, by its type, and the resource.
CREATION = {
    "AWS::EC2::DHCPOptions": ("ec2:CreateDhcpOptions", "dhcp-options"),
    "AWS::EC2::EIP": ("ec2:AllocateAddress", "elastic-ip"),
    "AWS::EC2::FlowLog": ("ec2:CreateFlowLogs", "vpc-flow-log"),
    "AWS::EC2::CapacityReservation": ("ec2:CreateCapacityReservation", "capacity-reservation"),
    "AWS::EC2::InternetGateway": ("ec2:CreateInternetGateway", "internet-gateway"),
    "AWS::EC2::KeyPair": ("ec2:ImportKeyPair", "key-pair"),
    "AWS::EC2::LaunchTemplate": ("ec2:CreateLaunchTemplate", "launch-template"),
    "AWS::EC2::NetworkInterface": ("ec2:CreateNetworkInterface", "network-interface"),
    "AWS::EC2::RouteTable": ("ec2:CreateRouteTable", "route-table"),
    "AWS::EC2::SecurityGroup": ("ec2:CreateSecurityGroup", "security-group"),
    "AWS::EC2::Subnet": ("ec2:CreateSubnet", "subnet"),
    "AWS::EC2::Volume": ("ec2:CreateVolume", "volume"),
    "AWS::EC2::VPC": ("ec2:CreateVpc", "vpc"),
}


Policies = list[dict[str, Any]]


def policies(cluster: Cluster, grantee: str = "execution") -> Policies:
    """The policies of a cluster's grantee."""
    [grant] = [grant for grant in grants(cluster, scope_of(cluster, account=ACCOUNT)) if grant.name == grantee]
    return [dict(policy.document) for policy in grant.policies]


def execution(configuration: dict[str, Any]) -> Policies:
    return policies(parse(configuration))


def ec2(resource: str) -> str:
    return f"arn:aws:ec2:{HERE}:{resource}"


def kinds(cluster: Cluster) -> set[str]:
    return {resource["Type"] for document in generate(cluster) for resource in document.body["Resources"].values()}


def arn_of(cluster: Cluster, resource: str) -> str:
    partition = next(name for prefix, name in (("us-gov", "aws-us-gov"), ("cn-", "aws-cn"), ("", "aws"))
                     if cluster.region.startswith(prefix))  # fmt: skip
    return f"arn:{partition}:ec2:{cluster.region}:{ACCOUNT}:{resource}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_the_templates_hold_may_be_made_tagged_and_nothing_else_made(case: Path) -> None:
    cluster = load(case / "cluster.yaml", environ={}).cluster
    held, granted = kinds(cluster), policies(cluster)
    for kind, (action, resource_type) in CREATION.items():
        new = arn_of(cluster, f"{resource_type}/*")
        assert allows(granted, action, new) == (kind in held), kind
        if kind in held:
            with_tag = {"aws:RequestTag/KubernetesCluster": cluster.name}
            assert allows(granted, "ec2:CreateTags", new, with_tag, {"ec2:CreateAction": action.partition(":")[2]})
            others = {"aws:ResourceTag/KubernetesCluster": "others"}
            assert not allows(granted, "ec2:CreateTags", new, with_tag, others), kind


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_handlers_of_ec2_call_is_among_the_actions(case: Path) -> None:
    """For the types of the templates: what each handler changes, on the cluster's own or on the existing parts."""
    cluster = load(case / "cluster.yaml", environ={}).cluster
    granted = {
        action
        for policy in policies(cluster, "execution")
        for statement in policy["Statement"]
        for action in statement["Action"]
    }
    not_needed = {*NOT_NEEDED, *NOT_NEEDED_BY_PRIVATE, "ec2:AllocateIpamPoolCidr", "ec2:DescribeVpnGateways"}
    called = {
        action
        for kind in kinds(cluster)
        if kind in CREATION or (kind.startswith("AWS::EC2::") and kind != "AWS::EC2::CapacityReservation")
        for handler in schema(kind).get("handlers", {}).values()
        for action in handler.get("permissions", ())
        if action.startswith("ec2:") and action not in not_needed
    }
    assert [
        action
        for action in called
        if not any(fnmatch.fnmatchcase(action, each) for each in granted) and "BillingOwner" not in action
    ] == []


def test_a_new_network_is_made_and_no_other_one_changed() -> None:
    granted = execution({})
    own = [
        ("CreateSubnet", "vpc"), ("CreateRouteTable", "vpc"), ("CreateSecurityGroup", "vpc"), ("DeleteVpc", "vpc"),
        ("CreateRoute", "route-table"),
        ("CreateNetworkInterface", "subnet"), ("CreateNetworkInterface", "security-group"),
        ("AttachInternetGateway", "internet-gateway"), ("AttachInternetGateway", "vpc"),
        ("AssociateDhcpOptions", "vpc"), ("AssociateRouteTable", "subnet"),
        ("AssociateAddress", "elastic-ip"), ("AssociateAddress", "network-interface"),
        ("DisassociateAddress", "network-interface"), ("ReleaseAddress", "elastic-ip"),
        ("RevokeSecurityGroupIngress", "security-group"), ("CreateTags", "vpc"), ("DeleteTags", "vpc"),
    ]  # fmt: skip
    for action, kind in own:
        resource = ec2(f"{kind}/id-1")
        assert allows(granted, f"ec2:{action}", resource, OWN), (action, kind)
        assert not allows(granted, f"ec2:{action}", resource), (action, kind)
        assert not allows(granted, f"ec2:{action}", resource, OTHERS), (action, kind)
    completed = [
        ("ModifyVpcAttribute", "vpc"), ("ModifySubnetAttribute", "subnet"),
        ("AuthorizeSecurityGroupEgress", "security-group"), ("RevokeSecurityGroupEgress", "security-group"),
        ("ModifyNetworkInterfaceAttribute", "network-interface"),
    ]  # fmt: skip
    for action, kind in completed:
        resource = ec2(f"{kind}/id-1")
        assert allows(granted, f"ec2:{action}", resource)
        assert allows(granted, f"ec2:{action}", resource, OWN)
        assert not allows(granted, f"ec2:{action}", resource, OTHERS)


def test_of_an_existing_network_only_the_parts_of_the_cluster_file_are_used() -> None:
    granted = execution(EXISTING)
    for action, resource in (("CreateNetworkInterface", f"subnet/{SUBNET}"),
                             ("CreateNetworkInterface", f"security-group/{GROUP}"),
                             ("ModifyNetworkInterfaceAttribute", f"security-group/{GROUP}")):  # fmt: skip
        assert allows(granted, f"ec2:{action}", ec2(resource))
        assert not allows(granted, f"ec2:{action}", ec2(f"{resource.partition('/')[0]}/id-1"), IN_ANOTHER)
    interface = ec2("network-interface/eni-1")
    assert allows(granted, "ec2:ModifyNetworkInterfaceAttribute", interface, IN_VPC)
    assert not allows(granted, "ec2:ModifyNetworkInterfaceAttribute", interface, IN_ANOTHER)
    unconditional = {
        action
        for policy in granted
        for statement in policy["Statement"]
        if "Condition" not in statement
        for action in statement["Action"]
        if action.startswith("ec2:") and not action.startswith(("ec2:Describe", "ec2:Get"))
    }
    assert unconditional == {
        *("ec2:CreateLaunchTemplate", "ec2:CreateNetworkInterface", "ec2:CreateVolume", "ec2:CreateSnapshot"),
        *("ec2:AllocateAddress", "ec2:ModifyNetworkInterfaceAttribute"),
        *("ec2:CreateRouteTable", "ec2:CreateSecurityGroup", "ec2:CreateSubnet"),  # in the VPC of the cluster file
    }
    for action, kind in (("CreateVpc", "vpc"), ("CreateSubnet", "subnet"), ("CreateSecurityGroup", "security-group"),
                         ("CreateRouteTable", "route-table"), ("AuthorizeSecurityGroupIngress", "security-group"),
                         ("ModifySubnetAttribute", "subnet"), ("ModifyVpcAttribute", "vpc")):  # fmt: skip
        assert not allows(granted, f"ec2:{action}", ec2(f"{kind}/*"), IN_VPC), action


def test_what_a_reference_leads_to_may_be_any_part() -> None:
    network = {**EXISTING["network"], "vpc": {"id": "stack:network.VpcId", "cidr": "10.20.0.0/16"}}
    network["subnets"] = [{"zone": "us-west-2a", "id": "stack:network.SubnetA", "cidr": "10.20.0.0/24"}]
    granted = execution({"network": network})
    assert allows(granted, "ec2:CreateNetworkInterface", ec2("subnet/subnet-1"))


def test_a_subnet_keeps_the_existing_route_table_of_the_cluster_file() -> None:
    table = "rtb-0123456789abcdef0"
    subnets = [{"zone": "us-west-2a", "cidr": "10.20.0.0/24", "routeTable": table}]
    granted = execution({"network": {**EXISTING["network"], "subnets": subnets}})
    for action in ("AssociateRouteTable", "DisassociateRouteTable", "ReplaceRouteTableAssociation"):
        assert allows(granted, f"ec2:{action}", ec2(f"route-table/{table}"))
        assert not allows(granted, f"ec2:{action}", ec2("route-table/rtb-1"))
        assert not allows(granted, f"ec2:{action}", ec2("subnet/subnet-1"))
        assert allows(granted, f"ec2:{action}", ec2("subnet/subnet-1"), OWN)


BOUND = ("AttachRolePolicy", "CreateRole", "DeleteRolePolicy", "DetachRolePolicy", "PutRolePermissionsBoundary",
         "PutRolePolicy")  # fmt: skip
UNBOUND = ("DeleteRole", "GetRole", "TagRole", "UntagRole", "UpdateAssumeRolePolicy", "UpdateRole")


@pytest.mark.parametrize("role", [ROLE, POD_ROLE], ids=["instances", "pods"])
@pytest.mark.parametrize("action", [*BOUND, *UNBOUND])
def test_roles_are_made_with_the_boundary_of_the_cluster_file_only(action: str, role: str) -> None:
    free, bound = (execution({**ISSUER, "iam": iam}) for iam in ({}, {"permissionsBoundary": BOUNDARY}))
    with_boundary = {"iam:PermissionsBoundary": BOUNDARY}
    another = {"iam:PermissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/everything"}
    assert allows(free, f"iam:{action}", role)
    assert allows(bound, f"iam:{action}", role, with_boundary)
    assert allows(bound, f"iam:{action}", role, with_boundary, OWN)
    assert allows(bound, f"iam:{action}", role) == (action in UNBOUND)
    assert allows(bound, f"iam:{action}", role, another) == (action in UNBOUND)
    for granted in (free, bound):
        assert allows(granted, f"iam:{action}", role, with_boundary, OTHERS) == (action == "GetRole")


def test_a_service_account_may_have_a_boundary_of_its_own() -> None:
    account = {"namespace": "shop", "name": "web", "policyStatements": [{"actions": ["s3:GetObject"],
               "resources": ["arn:aws:s3:::shop/*"]}], "permissionsBoundary": OF_PODS}  # fmt: skip
    for iam, unbound in (({"permissionsBoundary": BOUNDARY}, False), ({}, True)):
        granted = execution({**ISSUER, "iam": {**iam, "serviceAccounts": [account]}})
        assert allows(granted, "iam:CreateRole", POD_ROLE, {"iam:PermissionsBoundary": OF_PODS})
        assert allows(granted, "iam:CreateRole", POD_ROLE) == unbound


def test_each_role_is_passed_to_the_service_that_uses_it() -> None:
    granted = execution({"network": {"flowLogs": {"destination": "cloudWatchLogs"}}})
    delivery = f"arn:aws:iam::{ACCOUNT}:role/kubernetes-VpcStack-1AB-FlowLogRole-2CD"
    to_ec2, to_flow_logs, to_lambda = (
        {"iam:PassedToService": f"{service}.amazonaws.com"} for service in ("ec2", "vpc-flow-logs", "lambda")
    )
    assert allows(granted, "iam:PassRole", ROLE, to_ec2)
    assert allows(granted, "iam:PassRole", delivery, to_flow_logs)
    for role, context in ((ROLE, to_flow_logs), (ROLE, to_lambda), (ROLE, {}), (delivery, to_ec2), (delivery, {})):
        assert not allows(granted, "iam:PassRole", role, context)
    existing = execution(EXISTING)
    assert allows(existing, "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/masters", to_ec2)
    assert not allows(existing, "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/masters", to_lambda)


@pytest.mark.parametrize("action", ["ec2:DeleteRoute", "ec2:DeleteNetworkInterface"])
@pytest.mark.parametrize("plugin", ["vpc-routes", "amazon-vpc", "cilium", "calico", "flannel", "none"])
def test_an_operator_removes_what_the_network_plug_in_leaves(plugin: str, action: str) -> None:
    of_plugin = {"ec2:DeleteRoute": ["vpc-routes"], "ec2:DeleteNetworkInterface": ["amazon-vpc", "none"]}
    table = "rtb-0123456789abcdef0" if plugin == "vpc-routes" else None
    network = {**EXISTING["network"], "plugin": plugin, **({"routeTable": table} if table else {})}
    if plugin == "amazon-vpc":
        network |= {"securityGroups": {}}
    granted = policies(parse({"network": network}), "operator")
    resource = ec2(f"route-table/{table}") if action == "ec2:DeleteRoute" else "*"
    contexts = [IN_VPC] if action == "ec2:DeleteRoute" else [OWN]
    assert allows(granted, action, resource, *contexts) == (plugin in of_plugin[action])
    assert not allows(granted, action, resource, IN_ANOTHER, OTHERS)
    assert not allows(granted, action, ec2("route-table/rtb-1"), IN_ANOTHER)


def test_routes_in_a_table_of_the_stack_are_deleted_with_it() -> None:
    assert not allows(policies(parse({}), "operator"), "ec2:DeleteRoute", ec2("route-table/rtb-1"), OWN)

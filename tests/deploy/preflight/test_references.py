"""References of a cluster file to outputs of other stacks and to Parameter Store, in the emulated account."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator, groups
from existing_network import REGION, ExistingNetwork

from cfngen.cluster.load import parse
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.aws.stacks import require_stack
from cfngen.deploy.preflight.immutable_settings import ImmutableSettingError
from cfngen.deploy.preflight.references import UnresolvedReferenceError, resolve_vpc
from cfngen.sandbox.cloudformation.handlers import client


class NetworkStack:
    """An existing network, and the stack and the parameters with the ids of its parts."""

    def __init__(self, cloud: Cloud, account: Account) -> None:
        self.cloud = cloud
        self.network = ExistingNetwork(account)
        self.outputs = {"VpcId": self.network.vpc, "Group": self.network.group("10.0.0.0/8")}
        self.stacks = cloud.client("cloudformation")
        self.stacks.create_stack(StackName="network", TemplateBody=self._template())
        cloud.clock.sleep(60)
        self.store("/network/subnet", self.network.subnets[0])
        self.store("/network/route-table", self.network.public_table)

    def _template(self) -> str:
        # CloudFormation updates no stack of which only outputs change.
        group = {
            "Type": "AWS::EC2::InternetGateway",
            "Properties": {"Tags": [{"Key": "x", "Value": "-".join(self.outputs.values())}]},
        }
        outputs = {name: {"Value": value} for name, value in self.outputs.items()}
        return json.dumps({"Resources": {"Gateway": group}, "Outputs": outputs})

    def lead(self, **outputs: str) -> None:
        """Change outputs of the stack."""
        self.outputs |= outputs
        self.stacks.update_stack(StackName="network", TemplateBody=self._template())
        self.cloud.clock.sleep(60)

    def store(self, name: str, value: str, kind: str = "String") -> None:
        client("ssm", REGION).put_parameter(Name=name, Value=value, Type=kind, Overwrite=True)

    def file(self, **network: Any) -> Mapping[str, Any]:
        """Return a cluster file whose VPC and security group are outputs, and whose other parts are parameters."""
        return {
            "name": "referring",
            "network": {
                "vpc": {"id": "stack:network.VpcId", "cidr": "10.20.0.0/16"},
                "subnets": [{"zone": f"{REGION}a", "id": "ssm:/network/subnet", "cidr": "10.20.0.0/24"}],
                "routeTable": "ssm:/network/route-table",
                "serviceCidr": "10.250.0.0/16",
                **network,
            },
            "controlPlane": {"additionalSecurityGroups": ["stack:network.Group"]},
            "nodeGroups": groups("general"),
        }


@pytest.fixture
def account(cloud: Cloud) -> Account:
    return connect(cloud.session, REGION, clock=cloud.clock, attempts=1)


@pytest.fixture
def existing(cloud: Cloud, account: Account) -> NetworkStack:
    return NetworkStack(cloud, account)


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def test_a_cluster_is_created_in_the_network_that_references_lead_to(
    existing: NetworkStack, operator: Operator, cloud: Cloud
) -> None:
    assert operator.deploy(existing.file()).succeeded
    [master] = [
        interface
        for interface in client("ec2", REGION).describe_network_interfaces()["NetworkInterfaces"]
        if "master a" in interface["Description"]
    ]
    assert (master["VpcId"], master["SubnetId"]) == (existing.network.vpc, existing.network.subnets[0])
    assert existing.outputs["Group"] in [group["GroupId"] for group in master["Groups"]]
    values = require_stack(operator.account, "referring").values
    assert values["VpcId"] == existing.network.vpc
    assert values["SubnetAId"] == existing.network.subnets[0]
    assert values["RouteTableId"] == existing.network.public_table


def test_nothing_changes_while_references_lead_to_the_same(existing: NetworkStack, operator: Operator) -> None:
    operator.deploy(existing.file())
    assert operator.plan(existing.file()).is_empty


@pytest.mark.drill
def test_an_id_may_become_a_reference_to_it(existing: NetworkStack, operator: Operator, cloud: Cloud) -> None:
    vpc = {"id": existing.network.vpc, "cidr": "10.20.0.0/16"}
    operator.deploy(existing.file(vpc=vpc))
    cloud.clock.sleep(600)
    assert operator.deploy(existing.file()).succeeded
    cloud.clock.sleep(600)
    assert operator.deploy(existing.file(vpc=vpc)).succeeded


@pytest.mark.drill
def test_the_plan_names_the_old_and_the_new_id_of_a_reference_that_moved(
    existing: NetworkStack, operator: Operator
) -> None:
    operator.deploy(existing.file())
    old, new = existing.outputs["Group"], existing.network.group("10.0.0.0/8", "10.1.0.0/16")
    existing.lead(Group=new)
    plan = operator.plan(existing.file())
    assert [impact.text for impact in plan.predicted] == [
        f"controlPlane.additionalSecurityGroups[0]: stack:network.Group was {old} at the last update and is {new} now"
    ]
    assert not plan.is_empty
    assert operator.deploy(existing.file()).succeeded
    assert operator.plan(existing.file()).is_empty


@pytest.mark.parametrize("part", ["vpc", "subnet"])
def test_what_is_decided_once_does_not_follow_its_reference(
    existing: NetworkStack, operator: Operator, account: Account, part: str
) -> None:
    operator.deploy(existing.file())
    old, new = existing.network.subnets
    reference = "ssm:/network/subnet"
    if part == "vpc":
        old, new, reference = existing.network.vpc, ExistingNetwork(account).vpc, "stack:network.VpcId"
        existing.lead(VpcId=new)
    else:
        existing.store("/network/subnet", new)
    with pytest.raises(ImmutableSettingError) as refused:
        operator.deploy(existing.file())
    assert f"is {old} and cannot be changed to {new}, to which {reference} leads now" in str(refused.value)
    assert "enter the old id in place of the reference" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("vpc", "says"),
    [
        ("stack:networks.VpcId", "names a stack that does not exist in us-west-2"),
        ("stack:network.Vpc", "names an output that the stack does not have; did you mean VpcId?"),
        ("stack:network.Subnet", "names an output that the stack does not have; it has Group, VpcId"),
        ("stack:network.Group", "which is not a VPC id such as vpc-0123456789abcdef0"),
        ("ssm:/network/vpc", "names a parameter that does not exist in the Parameter Store of us-west-2"),
        ("ssm:/network/subnet", "which is not a VPC id such as vpc-0123456789abcdef0"),
        ("ssm:/network/secret", "is a SecureString, which CloudFormation does not look up"),
    ],
)
def test_a_reference_that_leads_to_no_vpc_is_refused_before_anything_is_made(
    existing: NetworkStack, operator: Operator, cloud: Cloud, vpc: str, says: str
) -> None:
    existing.store("/network/secret", existing.network.vpc, "SecureString")
    with pytest.raises(UnresolvedReferenceError) as refused:
        operator.deploy(existing.file(vpc={"id": vpc, "cidr": "10.20.0.0/16"}))
    assert str(refused.value.problems[0]).startswith(f"network.vpc.id: {vpc} ")
    assert says in str(refused.value)
    assert [stack.name for stack in cloud.engine.stacks()] == ["network"]


def test_references_that_lead_to_the_same_part_are_refused_before_anything_is_made(
    existing: NetworkStack, operator: Operator, cloud: Cloud
) -> None:
    first, group = existing.network.subnets[0], existing.outputs["Group"]
    existing.store("/network/same", first)
    existing.store("/network/group", group)
    zones = [("a", "ssm:/network/subnet", "10.20.0.0/24"), ("b", "ssm:/network/same", "10.20.16.0/24")]
    file = {
        **existing.file(
            subnets=[{"zone": f"{REGION}{zone}", "id": subnet, "cidr": cidr} for zone, subnet, cidr in zones]
        ),
        "controlPlane": {"additionalSecurityGroups": [group, "ssm:/network/group"]},
    }
    with pytest.raises(UnresolvedReferenceError) as refused:
        operator.deploy(file)
    of_subnets, of_groups = map(str, refused.value.problems)
    assert of_subnets == (
        f"network.subnets[1].id: {first} appears twice, first as network.subnets[0].id; each key needs its own subnet "
        "(network.subnets[0].id is ssm:/network/subnet and network.subnets[1].id is ssm:/network/same)"
    )
    assert of_groups == (
        f"controlPlane.additionalSecurityGroups[1]: {group} appears twice; remove one "
        "(controlPlane.additionalSecurityGroups[0] is this id and "
        "controlPlane.additionalSecurityGroups[1] is ssm:/network/group)"
    )
    assert [stack.name for stack in cloud.engine.stacks()] == ["network"]


def test_a_first_security_group_is_not_repeated_by_a_reference(existing: NetworkStack, operator: Operator) -> None:
    existing.store("/network/group", existing.outputs["Group"])
    with pytest.raises(UnresolvedReferenceError) as refused:
        operator.deploy(existing.file(securityGroups={"masters": "ssm:/network/group"}), flags={})
    assert "is the instances' first security group already" in str(refused.value)
    assert "(network.securityGroups.masters is ssm:/network/group and " in str(refused.value)


def test_the_vpc_is_found_although_other_references_lead_nowhere(existing: NetworkStack, account: Account) -> None:
    content = existing.file(routeTable="ssm:/network/nothing")
    assert resolve_vpc(account, parse(dict(content))) == existing.network.vpc


def test_the_network_is_checked_behind_its_references(existing: NetworkStack) -> None:
    existing.network.network = {**existing.file()["network"], "plugin": "cilium", "routeTable": None}
    existing.network.file = {"name": "referring"}
    assert existing.network.check().vpc == existing.network.vpc
    existing.network.network["subnets"][0]["cidr"] = "10.20.0.0/25"
    assert "has the range 10.20.0.0/24 and not 10.20.0.0/25" in existing.network.only().text


@pytest.mark.drill
def test_another_parameter_may_be_chosen_for_a_deployment(existing: NetworkStack, operator: Operator) -> None:
    existing.store("/other/subnet", existing.network.subnets[0])
    existing.store("/network/subnet", "not there yet")
    flags = {"ApiAllowedCidr": "203.0.113.7/32", "SubnetAId": "/other/subnet"}
    assert operator.deploy(existing.file(), flags=flags).succeeded


def test_an_operator_who_may_not_read_is_told_which_permission_is_missing(
    existing: NetworkStack, operator: Operator, cloud: Cloud
) -> None:
    cloud.faults.deny("ssm:GetParameters")
    with pytest.raises(UnresolvedReferenceError) as refused:
        operator.deploy(existing.file())
    assert "network.subnets[0].id: ssm:/network/subnet cannot be read; get the permission ssm:GetParameters" in str(
        refused.value
    )


@pytest.mark.drill
def test_the_stack_of_the_cluster_itself_is_refused(existing: NetworkStack, operator: Operator) -> None:
    vpc = {"id": "stack:production.VpcId", "cidr": "10.20.0.0/16"}
    operator.deploy(existing.file(), stack_name="production")
    with pytest.raises(UnresolvedReferenceError) as refused:
        operator.plan(existing.file(vpc=vpc), stack_name="production")
    assert "network.vpc.id: stack:production.VpcId names a stack of this cluster itself" in str(refused.value)

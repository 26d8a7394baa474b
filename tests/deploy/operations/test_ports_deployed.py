"""Ports of a living cluster that are opened, changed and closed: no instance is replaced for them."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from clusters import running_instances
from deployments import Operator

from cfngen.deploy.messages.message import Danger
from cfngen.deploy.operations.deletion.execution import delete
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError

pytestmark = pytest.mark.drill

KEY = {"publicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmqaeAWN0f4SVnzVUBz0zOZyTtT6s4VKVJZ2fS8G0jM admin"}
OFFICE = ["203.0.113.0/24"]


def file(nodes: list[Any] | None = None, masters: list[Any] | None = None, bastion: list[Any] | None = None) -> Any:
    return {
        "name": "one",
        "ssh": KEY,
        "controlPlane": {"ingress": masters or []},
        "nodeGroups": [
            {"name": "web", "minSize": 1, "maxSize": 2, "ingress": nodes or []},
            {"name": "batch", "minSize": 1, "maxSize": 2},
        ],
        "bastion": {"allowedCidrs": OFFICE, "ingress": bastion or []},
    }


def opened(cloud: Cloud) -> dict[str, set[tuple[str, Any, Any, str]]]:
    """What comes in by address ranges, prefix lists and other groups, by the end of the group's logical id."""
    groups = cloud.client("ec2").describe_security_groups()["SecurityGroups"]
    rules: dict[str, set[tuple[str, Any, Any, str]]] = {}
    for group in groups:
        name = next((part for part in group["GroupName"].split("-") if part.endswith("SecurityGroup")), "")
        for permission in group["IpPermissions"]:
            ports = permission["IpProtocol"], permission.get("FromPort"), permission.get("ToPort")
            peers = [addresses["CidrIp"] for addresses in permission["IpRanges"]]
            peers += [prefix_list["PrefixListId"] for prefix_list in permission.get("PrefixListIds", ())]
            rules.setdefault(name, set()).update((*ports, peer) for peer in peers)
    return rules


def versions(cloud: Cloud) -> dict[str, int]:
    """The newest version of each launch template."""
    templates = cloud.client("ec2").describe_launch_templates()["LaunchTemplates"]
    return {template["LaunchTemplateId"]: template["LatestVersionNumber"] for template in templates}


def impacts(plan: Plan) -> list[str]:
    return [change.impact.text for stack in plan.stacks for change in stack.changes if change.impact]


def test_ports_are_opened_changed_and_closed_on_running_instances(cloud: Cloud) -> None:
    operator = Operator(cloud)
    assert operator.deploy(file()).succeeded
    before = running_instances("us-west-2").keys(), versions(cloud)
    ec2 = cloud.client("ec2")
    made = ec2.create_managed_prefix_list(PrefixListName="offices", MaxEntries=5, AddressFamily="IPv4")
    offices = {"id": made["PrefixList"]["PrefixListId"], "maxEntries": 5}

    wanted = file(
        nodes=[
            {"ports": "30000-32767", "cidrs": OFFICE, "prefixLists": [offices]},
            {"protocol": "icmp", "cidrs": OFFICE},
        ],
        masters=[{"ports": 9100, "cidrs": OFFICE}],
        bastion=[{"protocol": "udp", "ports": 51820, "cidrs": OFFICE}],
    )
    plan = operator.plan(wanted)
    assert plan.danger is Danger.NONE
    assert sorted(impacts(plan)) == [
        "ICMP of node group `web` becomes reachable from 203.0.113.0/24 in addition",
        "TCP 30000-32767 of node group `web` becomes reachable from 203.0.113.0/24 in addition",
        f"TCP 30000-32767 of node group `web` becomes reachable from {offices['id']} in addition",
        "TCP 9100 of the masters becomes reachable from 203.0.113.0/24 in addition",
        "UDP 51820 of the bastion becomes reachable from 203.0.113.0/24 in addition",
    ]
    assert operator.deploy(wanted).succeeded
    rules = opened(cloud)
    assert rules["NodeGroupWebSecurityGroup"] == {
        ("tcp", 30000, 32767, "203.0.113.0/24"),
        ("tcp", 30000, 32767, offices["id"]),
        ("icmp", -1, -1, "203.0.113.0/24"),
    }
    assert ("tcp", 9100, 9100, "203.0.113.0/24") in rules["MasterSecurityGroup"]
    assert ("udp", 51820, 51820, "203.0.113.0/24") in rules["BastionSecurityGroup"]
    assert "NodeGroupBatchSecurityGroup" not in rules
    assert operator.deploy(wanted).action == "none"

    everybody = file(nodes=[{"ports": 443, "cidrs": ["0.0.0.0/0"], "description": "HTTPS"}])
    plan = operator.plan(everybody)
    assert plan.danger is Danger.DANGEROUS
    text = "TCP 443 of node group `web` becomes reachable from 0.0.0.0/0 in addition: from the whole internet"
    assert text in impacts(plan)
    assert operator.deploy(everybody).succeeded
    [question] = operator.questions
    assert question.name == "one"
    assert opened(cloud)["NodeGroupWebSecurityGroup"] == {("tcp", 443, 443, "0.0.0.0/0")}
    assert (running_instances("us-west-2").keys(), versions(cloud)) == before

    assert delete(operator.account, DeletionRequest("one", "one"), operator.waiting).succeeded
    assert set(opened(cloud)) <= {""}


def test_who_may_reach_a_port_must_exist(cloud: Cloud) -> None:
    operator = Operator(cloud)
    unknown = file(nodes=[{"ports": 80, "prefixLists": [{"id": "pl-01234567", "maxEntries": 1}]}])
    with pytest.raises(ForeignObjectsError, match=r"nodeGroups\[0\]\.ingress\[0\]\.prefixLists\[0\]\.id: there is no"):
        operator.deploy(unknown)
    assert cloud.engine.stacks() == []

"""A bastion in the sandbox: an instance without a boot program, whose addresses stay when it is replaced."""

from __future__ import annotations

from typing import Any

from sandboxed import CASES, Place, place

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import Stack, client

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmqaeAWN0f4SVnzVUBz0zOZyTtT6s4VKVJZ2fS8G0jM admin"


def with_bastion(*overrides: str) -> Cluster:
    wanted = (f"ssh.publicKey={KEY}", "bastion.allowedCidrs=[203.0.113.0/24]", *overrides)
    return load(CASES / "default" / "cluster.yaml", environ={}, overrides=wanted).cluster


def bastion(where: Place, stack: Stack) -> dict[str, Any]:
    """The instance in the bastion's Auto Scaling group."""
    name = stack.resources["BastionAutoScalingGroup"].physical_id
    [group] = client("autoscaling", where.account.region).describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    [member] = group["Instances"]
    answer = client("ec2", where.account.region).describe_instances(InstanceIds=[member["InstanceId"]])
    return dict(answer["Reservations"][0]["Instances"][0])


def test_a_bastion_has_its_address_key_and_no_role_and_a_new_one_has_them_too() -> None:
    with place() as where:
        where = Place(where.account, with_bastion())
        stack = where.create()
        assert stack.status == "CREATE_COMPLETE"
        first = bastion(where, stack)
        assert first["PublicIpAddress"] == stack.outputs["BastionAddress"]
        assert first["KeyName"] == stack.resources["SshKeyPair"].physical_id
        assert "IamInstanceProfile" not in first
        assert first["InstanceId"] not in where.account.machines.instances  # it boots no program of cfngen's
        client("ec2", where.account.region).terminate_instances(InstanceIds=[first["InstanceId"]])
        where.account.machines.refresh()
        where.account.cloud.advance(600)
        second = bastion(where, stack)
        assert second["InstanceId"] != first["InstanceId"]
        assert second["State"]["Name"] == "running"
        addresses = ("PublicIpAddress", "PrivateIpAddress")
        assert [second[key] for key in addresses] == [first[key] for key in addresses]


def test_an_update_waits_for_nothing_of_the_bastion_and_keeps_its_address() -> None:
    with place() as where:
        where = Place(where.account, with_bastion())
        stack = where.create()
        before = bastion(where, stack)
        assert where.update(with_bastion("bastion.instanceType=t3.small")).status == "UPDATE_COMPLETE"
        after = bastion(where, stack)
        assert (after["InstanceType"], after["InstanceId"] != before["InstanceId"]) == ("t3.small", True)
        where.account.machines.refresh()
        assert bastion(where, stack)["PublicIpAddress"] == stack.outputs["BastionAddress"]

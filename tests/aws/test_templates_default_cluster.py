"""The default cluster, created from its templates: what stands in the account at CREATE_COMPLETE."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from clusters import ALLOWED, Account, describe, golden, in_memory, prepared, resources, tags, texts

from cfngen.sandbox.cloudformation import Resource, Stack, client

ARN = re.compile(r"arn:aws:[a-z0-9-]+:[a-z0-9*-]*:(\d{12}|aws|\*|):[^\s${}]+")
READ_SECRET = "secretsmanager:GetSecretValue"
USER_DATA_LIMIT = 16384


class Default(NamedTuple):
    where: Account
    stack: Stack
    found: dict[str, Resource]


@pytest.fixture(scope="module", params=["standalone", "cluster"])
def default(request: pytest.FixtureRequest) -> Iterator[Default]:
    """The default cluster as one stack, or as a root with nested stacks; tests only look at it."""
    with in_memory():
        where = prepared(golden("default"))
        stack = where.create(request.param)
        assert stack.status == "CREATE_COMPLETE", stack.reason
        yield Default(where, stack, resources(stack))


def test_outputs_are_those_the_template_declares(default: Default) -> None:
    declared = default.where.templates["standalone"]["Outputs"]
    assert set(default.stack.outputs) == set(declared)
    assert all(default.stack.outputs.values())
    assert not any("${" in value for value in default.stack.outputs.values())


def test_both_forms_make_the_same_resources(default: Default) -> None:
    where, _, found = default
    assert set(found) == set(where.templates["standalone"]["Resources"])


def test_network(default: Default) -> None:
    where, stack, found = default
    vpc, subnet, table = (found[key].physical_id for key in ("Vpc", "SubnetA", "RouteTable"))
    assert stack.outputs["VpcId"] == vpc
    ec2 = client("ec2", where.cluster.region)
    for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
        answer = ec2.describe_vpc_attribute(VpcId=vpc, Attribute=attribute[0].lower() + attribute[1:])
        assert answer[attribute] == {"Value": True}
    assert describe(where, "vpcs", VpcIds=[vpc])["DhcpOptionsId"] == found["DhcpOptions"].physical_id
    where_subnet = describe(where, "subnets", SubnetIds=[subnet])
    assert (where_subnet["VpcId"], where_subnet["AvailabilityZone"]) == (vpc, "us-west-2a")
    routes = describe(where, "route_tables", RouteTableIds=[table])
    assert subnet in [association.get("SubnetId") for association in routes["Associations"]]
    gateways = {route["DestinationCidrBlock"]: route.get("GatewayId") for route in routes["Routes"]}
    assert gateways["0.0.0.0/0"] == found["InternetGateway"].physical_id
    assert tags(routes)["kubernetes.io/cluster/kubernetes"] == "owned"


def test_the_master_has_a_fixed_address_reached_by_an_elastic_ip(default: Default) -> None:
    where, stack, found = default
    identifier = found["MasterANetworkInterface"].physical_id
    interface = describe(where, "network_interfaces", NetworkInterfaceIds=[identifier])
    assert interface["PrivateIpAddress"] == "172.20.0.9"
    assert interface["SourceDestCheck"] is False
    assert [group["GroupId"] for group in interface["Groups"]] == [found["MasterSecurityGroup"].physical_id]
    address = describe(where, "addresses", AllocationIds=[found["MasterAElasticIp"].attributes["AllocationId"]])
    assert address["NetworkInterfaceId"] == identifier
    assert stack.outputs["ApiEndpoint"] == f"https://{address['PublicIp']}"


def test_the_master_has_an_encrypted_volume_in_its_zone(default: Default) -> None:
    where, _, found = default
    volume = describe(where, "volumes", VolumeIds=[found["MasterAVolume"].physical_id])
    assert (volume["VolumeType"], volume["Size"], volume["Encrypted"]) == ("gp3", 20, True)
    assert volume["AvailabilityZone"] == "us-west-2a"
    assert tags(volume)["Name"] == "kubernetes-master-a-data"
    assert tags(volume)["kubernetes.io/cluster/kubernetes"] == "owned"
    assert tags(volume)["k8s.io/role/master"] == "1"


def test_groups_launch_the_version_of_their_template(default: Default) -> None:
    where, _, found = default
    autoscaling = client("autoscaling", where.cluster.region)
    for role, size in (("MasterA", 1), ("NodeGroupNodes", 4)):
        name = found[f"{role}AutoScalingGroup"].physical_id
        [group] = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        assert group["LaunchTemplate"]["LaunchTemplateId"] == found[f"{role}LaunchTemplate"].physical_id
        assert group["LaunchTemplate"]["Version"] == "1"
        assert (group["MinSize"], group["MaxSize"], len(group["Instances"])) == (size, size, size)
        propagated = {tag["Key"] for tag in group["Tags"] if tag["PropagateAtLaunch"]}
        assert {"Name", "KubernetesCluster", "kubernetes.io/cluster/kubernetes"} <= propagated


def test_secrets_are_empty_and_encrypted_with_the_clusters_key(default: Default) -> None:
    where, stack, found = default
    secrets = client("secretsmanager", where.cluster.region)
    assert stack.outputs["CaSecretArn"] == found["CaSecret"].physical_id
    for key in ("CaSecret", "JoinSecret"):
        secret = secrets.describe_secret(SecretId=found[key].physical_id)
        assert secret["KmsKeyId"] == found["SecretsKey"].attributes["Arn"]
        assert not secret.get("VersionIdsToStages")
        with pytest.raises(secrets.exceptions.ResourceNotFoundException):
            secrets.get_secret_value(SecretId=found[key].physical_id)
    rotation = client("kms", where.cluster.region).get_key_rotation_status(KeyId=found["SecretsKey"].physical_id)
    assert rotation["KeyRotationEnabled"] is True


def test_policies_name_existing_things_by_valid_arns(default: Default) -> None:
    where, _, found = default
    iam = client("iam", where.cluster.region)
    for role, secrets in (("MasterRole", ("CaSecret", "JoinSecret")), ("NodeRole", ("JoinSecret",))):
        name = found[role].physical_id
        [policy] = iam.list_role_policies(RoleName=name)["PolicyNames"]
        document = iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
        statements = {each["Sid"]: each for each in document["Statement"]}
        for each in statements.values():
            assert all(item == "*" or ARN.fullmatch(item) for item in each["Resource"]), each
            assert not any("${" in text and "${aws:" not in text for text in texts(each)), each
        readable = {
            item
            for statement in statements.values()
            if READ_SECRET in statement["Action"]
            for item in statement["Resource"]
        }
        assert readable == {found[key].physical_id for key in secrets}
    profile = found["MasterInstanceProfile"].physical_id
    answer = iam.get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]
    assert [role["RoleName"] for role in answer["Roles"]] == [found["MasterRole"].physical_id]


def test_instances_may_signal_the_stack_they_are_in(default: Default) -> None:
    _, stack, found = default
    for role, key in (("MasterRole", "MasterStack"), ("NodeRole", "NodeGroupNodesStack")):
        statements = found[role].properties["Policies"][0]["PolicyDocument"]["Statement"]
        [allowed] = [
            statement["Resource"] for statement in statements if "cloudformation:SignalResource" in statement["Action"]
        ]
        patterns = [re.escape(each).replace(r"\*", ".*") for each in allowed]
        own = stack.children.get(key, stack).id
        # The masters' wait conditions are the root's, and nodes signal none of them.
        for identifier, is_signalled in ((own, True), (stack.id, stack.id == own or role == "MasterRole")):
            matches = any(re.fullmatch(pattern, identifier) for pattern in patterns)
            assert matches is is_signalled, (role, identifier)


def test_the_api_is_open_to_the_given_range_only(default: Default) -> None:
    where, _, found = default
    group = describe(where, "security_groups", GroupIds=[found["MasterSecurityGroup"].physical_id])
    ranges = {block["CidrIp"] for rule in group["IpPermissions"] for block in rule["IpRanges"]}
    assert ranges == {ALLOWED}
    nodes = describe(where, "security_groups", GroupIds=[found["NodeSecurityGroup"].physical_id])
    assert not any(rule["IpRanges"] for rule in nodes["IpPermissions"])


def test_user_data_is_a_program_with_every_reference_filled_in(default: Default) -> None:
    for role in ("MasterA", "NodeGroupNodes"):
        data = default.found[f"{role}LaunchTemplate"].properties["LaunchTemplateData"]
        text = base64.b64decode(data["UserData"]).decode()
        assert len(text.encode()) <= USER_DATA_LIMIT
        compile(text, role, "exec")
    told = {reference["resource"]: reference for reference in default.where.machines.references}
    assert set(told) == {"MasterAAutoScalingGroup", "NodeGroupNodesAutoScalingGroup"}
    assert all(value and not re.search(r"[${}]", value) for each in told.values() for value in each.values())


def test_user_data_names_what_was_created(default: Default) -> None:
    _, stack, found = default
    told = {reference["resource"]: reference for reference in default.where.machines.references}
    master, node = told["MasterAAutoScalingGroup"], told["NodeGroupNodesAutoScalingGroup"]
    assert master["stack"] == stack.children.get("MasterStack", stack).name
    assert node["stack"] == stack.children.get("NodeGroupNodesStack", stack).name
    assert master["volumeId"] == found["MasterAVolume"].physical_id
    assert master["privateAddress"] == "172.20.0.9"
    assert f"https://{master['publicAddress']}" == stack.outputs["ApiEndpoint"]
    assert master["routeTableId"] == found["RouteTable"].physical_id
    assert master["caSecretArn"] == found["CaSecret"].physical_id
    assert master["joinSecretArn"] == node["joinSecretArn"] == found["JoinSecret"].physical_id


def test_the_signals_of_all_instances_were_waited_for(default: Default) -> None:
    """Of the master's by the wait condition beside it."""
    assert {key: len(each.signals) for key, each in default.found.items() if each.signals} == {
        "MasterAWaitCondition": 1,
        "NodeGroupNodesAutoScalingGroup": 4,
    }


def test_what_can_be_tagged_bears_the_stacks_tags_too(default: Default) -> None:
    volume = describe(default.where, "volumes", VolumeIds=[default.found["MasterAVolume"].physical_id])
    assert tags(volume)["owner"] == "operator"

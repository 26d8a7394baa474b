"""Several masters in the templates: who waits for whom, what is reached how, and what one master is spared."""

from __future__ import annotations

import json
from typing import Any

import pytest

ELB = "AWS::ElasticLoadBalancingV2::"
GROUP, CONDITION = "AWS::AutoScaling::AutoScalingGroup", "AWS::CloudFormation::WaitCondition"
SUBNET = {"id": "subnet-0123456789abcdef0", "cidr": "172.20.0.0/24"}
INSIDE = {
    "api": {"public": False},
    "network": {
        "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16"},
        "subnets": [{"zone": "us-west-2a", **SUBNET}],
    },
}


def masters(count: int, letters: str = "abc", **more: Any) -> dict[str, Any]:
    subnets = [{"zone": f"us-west-2{letter}"} for letter in letters]
    return {"controlPlane": {"count": count}, "network": {"subnets": subnets}, **more}


def needs(resource: dict[str, Any]) -> list[str]:
    found = resource.get("DependsOn", [])
    return [found] if isinstance(found, str) else found


def of_masters(found: Any, kind: str) -> dict[str, Any]:
    return {key: each for key, each in found.of_type(kind).items() if key.startswith("Master")}


@pytest.mark.parametrize("count", [3, 5])
def test_each_group_follows_the_one_before_it(templates: Any, count: int) -> None:
    groups = of_masters(templates(masters(count)), GROUP)
    assert len(groups) == count
    order = [f"Master{letter}AutoScalingGroup" for letter in "ABCDE"[:count]]
    chain = [[supplier for supplier in needs(groups[key]) if supplier in groups] for key in order]
    assert chain == [[], *([each] for each in order[:-1])]


@pytest.mark.parametrize("form", ["cluster", "standalone"])
def test_nothing_depends_on_a_wait_condition(templates: Any, form: str) -> None:
    """A group that did would be launched only after the one before it had reported success."""
    body = templates(masters(3))[form]["Resources"]
    conditions = {key for key, each in body.items() if each["Type"] == CONDITION}
    assert len(conditions) == 3
    for key, each in body.items():
        assert not conditions & set(needs(each)), key
        for condition in conditions:
            assert f'"Ref": "{condition}"' not in json.dumps(each)


def test_no_group_of_several_has_a_creation_policy_and_every_condition_has_one(templates: Any) -> None:
    generated = templates(masters(3, nodeGroups=[]))
    assert not [key for key, each in of_masters(generated, GROUP).items() if "CreationPolicy" in each]
    for key, each in generated.of_type(CONDITION).items():
        assert each["CreationPolicy"]["ResourceSignal"] == {"Count": 1, "Timeout": "PT20M"}
        assert "Properties" not in each
        assert needs(each) == [key.replace("WaitCondition", "AutoScalingGroup")]


def test_every_group_waits_for_its_new_instance_in_updates(templates: Any) -> None:
    for group in of_masters(templates(masters(3)), GROUP).values():
        rolling = group["UpdatePolicy"]["AutoScalingRollingUpdate"]
        assert rolling["WaitOnResourceSignals"] is True
        assert (rolling["MaxBatchSize"], rolling["MinInstancesInService"]) == (1, 0)


def test_one_master_has_a_condition_and_no_load_balancer(templates: Any) -> None:
    generated = templates(masters(1))
    assert list(generated.of_type(CONDITION)) == ["MasterAWaitCondition"]
    assert not [key for key in generated["standalone"]["Resources"] if "LoadBalancer" in key]


@pytest.mark.parametrize("count", [1, 3])
def test_a_condition_is_where_its_masters_signal_it(templates: Any, count: int) -> None:
    """Nested, it is the root's: the masters' stack is complete without it."""
    generated = templates(masters(count))
    conditions = generated.of_type(CONDITION)
    assert len(conditions) == count
    assert not [key for key in generated["master"]["Resources"] if key in conditions]
    for key in conditions:
        assert generated["cluster"]["Resources"][key]["DependsOn"] == ["MasterStack"]
        told = json.dumps(generated["master"]["Resources"][key.replace("WaitCondition", "LaunchTemplate")])
        assert f'\\"condition\\": \\"{key}\\"' in told
        assert '\\"conditionStack\\": \\"", {"Ref": "ClusterStackName"}' in told
    assert generated["cluster"]["Resources"]["MasterStack"]["Properties"]["Parameters"]["ClusterStackName"] == {
        "Ref": "AWS::StackName"
    }


def test_a_master_that_gets_company_keeps_everything_it_has(templates: Any) -> None:
    one, three = (templates(masters(count))["standalone"]["Resources"] for count in (1, 3))
    kept = ("Volume", "NetworkInterface", "ElasticIp", "ElasticIpAssociation")
    for name in kept:
        assert one[f"MasterA{name}"] == three[f"MasterA{name}"]


def test_masters_take_their_slots_zone(templates: Any) -> None:
    generated = templates(masters(5))
    zones = [
        generated.properties(f"Master{letter}{kind}")[key]
        for letter in "ABCDE"
        for kind, key in (("Volume", "AvailabilityZone"), ("AutoScalingGroup", "AvailabilityZones"))
    ]
    wanted = [{"Ref": f"Zone{letter}"} for letter in "ABCAB"]
    assert zones[::2] == wanted
    assert zones[1::2] == [[each] for each in wanted]


def test_the_load_balancer_asks_each_api_server_whether_it_is_ready(templates: Any) -> None:
    generated = templates(masters(3, api={"port": 6443}))
    targets = generated.properties("ApiTargetGroup")
    assert (targets["HealthCheckProtocol"], targets["HealthCheckPath"]) == ("HTTPS", "/readyz")
    assert (targets["TargetType"], targets["Protocol"], targets["Port"]) == ("ip", "TCP", 6443)
    assert [target["Id"] for target in targets["Targets"]] == [
        {"Fn::GetAtt": [f"Master{letter}NetworkInterface", "PrimaryPrivateIpAddress"]} for letter in "ABC"
    ]
    assert {"Key": "preserve_client_ip.enabled", "Value": "false"} in targets["TargetGroupAttributes"]
    assert targets["HealthCheckIntervalSeconds"] * targets["UnhealthyThresholdCount"] <= 30


def test_it_is_named_after_the_cluster_and_its_scheme(templates: Any) -> None:
    """One of the same name could not take its place, nor another's target group be used by it."""
    outside = templates(masters(3, name="prod"))
    inside = templates({**INSIDE, "name": "prod", "controlPlane": {"count": 3}})
    public, private = (next(iter(each.of_type(f"{ELB}LoadBalancer").items())) for each in (outside, inside))
    assert (public[1]["Properties"]["Name"], public[1]["Properties"]["Scheme"]) == ("prod-api", "internet-facing")
    assert (private[1]["Properties"]["Name"], private[1]["Properties"]["Scheme"]) == ("prod-int", "internal")
    for kind in ("LoadBalancer", "TargetGroup", "Listener"):
        assert not set(outside.of_type(ELB + kind)) & set(inside.of_type(ELB + kind))


def test_people_reach_the_load_balancer_and_not_the_masters(templates: Any) -> None:
    generated = templates(masters(3, api={"allowedCidrs": ["203.0.113.0/24"]}))
    rules = generated.of_type("AWS::EC2::SecurityGroupIngress")
    by_range = {key for key, each in rules.items() if each["Properties"].get("CidrIp")}
    assert by_range == {"ApiLoadBalancerFrom203x0x113x0x24"}
    source = rules["MasterApiFromLoadBalancer"]["Properties"]["SourceSecurityGroupId"]
    assert source == {"Fn::GetAtt": ["ApiLoadBalancerSecurityGroup", "GroupId"]}


def test_the_console_asks_who_may_reach_the_load_balancer(templates: Any) -> None:
    generated = templates(masters(3))
    rule = generated.properties("ApiLoadBalancerFromAllowedCidr")
    assert rule["CidrIp"] == {"Ref": "ApiAllowedCidr"}
    assert "Default" not in generated["cluster"]["Parameters"]["ApiAllowedCidr"]


def test_the_load_balancers_group_is_marked_by_nothing_that_kubernetes_looks_for(templates: Any) -> None:
    generated = templates(masters(3, name="prod"))
    tags = {tag["Key"] for tag in generated.properties("ApiLoadBalancerSecurityGroup")["Tags"]}
    of_stack = {tag["Key"] for tag in generated["cluster"]["Resources"]["SecurityGroupsStack"]["Properties"]["Tags"]}
    for keys in (tags, of_stack):
        assert "KubernetesCluster" in keys
        assert not [key for key in keys if key.startswith("kubernetes.io/")]


@pytest.mark.parametrize("count", [3, 5])
def test_every_master_of_a_public_cluster_has_its_own_way_out(templates: Any, count: int) -> None:
    generated = templates(masters(count))
    assert len(generated.of_type("AWS::EC2::EIP")) == count
    groups = of_masters(generated, GROUP)
    for letter in "ABCDE"[:count]:
        assert f"Master{letter}ElasticIpAssociation" in needs(groups[f"Master{letter}AutoScalingGroup"])


def test_masters_of_a_private_api_use_their_subnets_way_out(templates: Any) -> None:
    generated = templates({**INSIDE, "controlPlane": {"count": 3}})
    assert not generated.of_type("AWS::EC2::EIP")


def test_the_endpoint_that_is_put_out_is_the_load_balancers(templates: Any) -> None:
    outputs = templates(masters(3, api={"port": 6443}))["standalone"]["Outputs"]
    host = {"Fn::GetAtt": ["ApiLoadBalancer", "DNSName"]}
    assert outputs["ApiEndpoint"]["Value"] in (
        {"Fn::Sub": ["https://${Host}:6443", {"Host": host}]},
        {"Fn::Sub": "https://${ApiLoadBalancer.DNSName}:6443"},
    )


def test_a_shell_opens_on_a_master_and_not_on_the_load_balancer(templates: Any) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJHTbzZcuvW3z/1TyGSzBW7sBVsjlVd6VvBq8Tt2JGbX a"
    ssh = {"publicKey": key, "allowedCidrs": ["203.0.113.0/24"]}
    outputs = templates(masters(3, ssh=ssh))["master"]["Outputs"]
    text, values = outputs["KubeconfigCommand"]["Value"]["Fn::Sub"]
    assert text.index("${Master}") < text.index("${Host}")
    assert values["Master"] == {"Fn::GetAtt": ["MasterAElasticIp", "PublicIp"]}
    assert values["Host"] == {"Fn::GetAtt": ["ApiLoadBalancer", "DNSName"]}
    assert "ApiLoadBalancer" not in json.dumps(outputs["ShellCommand"])


def test_instances_are_told_their_condition_and_the_name_of_the_load_balancer(templates: Any) -> None:
    generated = templates(masters(3))
    for letter in "ABC":
        data = generated.properties(f"Master{letter}LaunchTemplate")["LaunchTemplateData"]
        told = json.dumps(data["UserData"])
        assert f"Master{letter}WaitCondition" in told
        assert '{"Fn::GetAtt": ["ApiLoadBalancer", "DNSName"]}' in told


def test_the_certificate_is_valid_for_the_load_balancer(templates: Any) -> None:
    from cfngen.userdata import kubeadm

    for configuration in (masters(3), {**INSIDE, "controlPlane": {"count": 3}}):
        documents = kubeadm.init_documents(templates(configuration).cluster)
        [settings] = [document for document in documents if document["kind"] == "ClusterConfiguration"]
        assert "${publicAddress}" in settings["apiServer"]["certSANs"]


def test_five_masters_fit_into_one_template(templates: Any) -> None:
    body = templates(masters(5))["standalone"]
    assert len(body["Resources"]) < 200
    assert len(json.dumps(body, indent=2)) < 700_000

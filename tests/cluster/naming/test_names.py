"""Names that follow from a cluster's name are those that the templates give, and regions are in their partitions."""

from __future__ import annotations

import re

from botocore.session import get_session

from cfngen.cluster.load import parse
from cfngen.cluster.naming.names import CLUSTER_NAMES, GROUP_NAMES, aws_partition
from cfngen.templates import generate


def test_each_region_is_in_the_partition_that_botocore_lists_it_in() -> None:
    partitions = get_session().get_component("data_loader").load_data("partitions")["partitions"]
    listed = {
        region: partition["id"]
        for partition in partitions
        for region in partition["regions"]
        if not region.endswith("-global")
    }
    assert {"aws", "aws-cn", "aws-us-gov"} <= set(listed.values())
    assert {region: aws_partition(region) for region in listed} == listed


def test_the_names_whose_length_counts_are_those_of_the_templates() -> None:
    network = {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]}
    key = {"publicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}
    groups = [{"name": "all-spot"}]
    file = {"name": "one", "controlPlane": {"count": 3}, "nodeGroups": groups, "network": network, "ssh": key}
    resources = {
        document.name: document.body["Resources"] for document in generate(parse(file)) if document.name != "standalone"
    }

    def names(kind: str, key: str) -> set[str]:
        properties = [
            item["Properties"] for stack in resources.values() for item in stack.values() if item["Type"] == kind
        ]
        tags = [tag for item in properties for tag in item.get("Tags", ())]
        return {item[key] for item in properties if key in item} | {tag["Value"] for tag in tags if tag["Key"] == key}

    # CloudFormation adds up to 13 random characters to the logical ids of nested stacks, and cfngen a digest to keys.
    stacks = {f"one-{logical_id}-XXXXXXXXXXXXX" for logical_id in resources["cluster"] if logical_id.endswith("Stack")}
    [group_stack] = {stack for stack in stacks if "NodeGroup" in stack}
    [key_pair] = names("AWS::EC2::KeyPair", "KeyName")
    assert {name.for_names("one", "all-spot") for name in GROUP_NAMES} == {group_stack, "one-nodes-all-spot"}
    assert "one-nodes-all-spot" in names("AWS::AutoScaling::AutoScalingGroup", "Name")
    assert {name.for_names("one") for name in CLUSTER_NAMES} == {
        max(stacks - {group_stack}, key=len),
        re.sub("[0-9a-f]{8}$", "X" * 8, key_pair),
        *names("AWS::ElasticLoadBalancingV2::LoadBalancer", "Name"),
        *names("AWS::EC2::VPC", "Name"),
        *({tag["Key"] for tag in resources["vpc"]["Vpc"]["Properties"]["Tags"]} - {"KubernetesCluster", "Name"}),
    }

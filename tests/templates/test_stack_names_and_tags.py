"""The stacks of a cluster, and the tags by which its resources are known as its own."""

from __future__ import annotations

from typing import Any

WITH_EVERY_STACK: dict[str, Any] = {
    "name": "prod",
    "ssh": {"keyName": "mine"},
    "bastion": {"allowedCidrs": ["203.0.113.0/24"]},
    "nodeGroups": [{"name": "nodes", "ingress": [{"ports": 30080, "cidrs": ["203.0.113.0/24"]}]}],
    "registry": {
        "repositories": [{"name": "web"}],
        "push": [{"name": "web", "provider": "github", "project": "example/web", "createProvider": True}],
    },
}
# Stacks, and their logical ids in the root, in the order in which they are made.
STACKS = {
    "vpc": "VpcStack",
    "security-groups": "SecurityGroupsStack",
    "secrets": "SecretsStack",
    "iam": "IamStack",
    "registry": "RegistryStack",
    "master": "MasterStack",
    "bastion": "BastionStack",
    "nodes-nodes": "NodeGroupNodesStack",
}


def test_each_part_of_a_cluster_is_a_stack_with_its_own_template(templates: Any) -> None:
    generated = templates(WITH_EVERY_STACK)
    assert list(generated.bodies) == [*STACKS, "cluster", "standalone"]
    nested = {
        logical_id: resource["Properties"]["TemplateURL"]["Fn::Sub"].rpartition("/")[2]
        for logical_id, resource in generated["cluster"]["Resources"].items()
        if resource["Type"] == "AWS::CloudFormation::Stack"
    }
    assert nested == {logical_id: f"${{TemplatePrefix}}{name}.json" for name, logical_id in STACKS.items()}
    for name, body in generated.bodies.items():
        assert body["Metadata"]["cfngen"]["stack"] == name
        assert "Kubernetes cluster prod" in body["Description"]


def test_the_registry_stack_makes_what_does_not_exist_yet(templates: Any) -> None:
    push = [
        {"name": "web", "provider": "github", "project": "example/web", "createProvider": True},
        {"name": "mobile", "provider": "gitlab", "project": "example/mobile"},
    ]
    repositories = [{"name": "web"}, {"name": "old", "existing": True}]
    registry = templates({"registry": {"repositories": repositories, "push": push}})["registry"]
    by_type: dict[str, dict[str, Any]] = {}
    for logical_id, resource in registry["Resources"].items():
        by_type.setdefault(resource["Type"], {})[logical_id] = resource["Properties"]
    assert [made["RepositoryName"] for made in by_type["AWS::ECR::Repository"].values()] == ["web"]
    [(provider, properties)] = by_type["AWS::IAM::OIDCProvider"].items()
    assert properties["Url"] == "https://token.actions.githubusercontent.com"
    trusted = {
        name: role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]["Federated"]
        for name, role in by_type["AWS::IAM::Role"].items()
    }
    existing = "arn:${AWS::Partition}:iam::${AWS::AccountId}:oidc-provider/gitlab.com"
    assert trusted == {
        "PushWebRole": {"Fn::GetAtt": [provider, "Arn"]},
        "PushMobileRole": {"Fn::Sub": existing},
    }
    assert set(registry["Outputs"]) == {"PushWebRoleArn", "PushMobileRoleArn"}


def tags_of(generated: Any) -> dict[str, dict[str, str]]:
    """The tags of each resource of the flat template that has tags."""
    return {
        logical_id: {tag["Key"]: tag["Value"] for tag in resource["Properties"]["Tags"]}
        for logical_id, resource in generated["standalone"]["Resources"].items()
        if "Tags" in resource.get("Properties", {})
    }


def test_every_taggable_resource_bears_both_cluster_tags(templates: Any) -> None:
    tags = tags_of(templates({**WITH_EVERY_STACK, "tags": {"team": "platform"}}))
    assert {(pairs["KubernetesCluster"], pairs["team"]) for pairs in tags.values()} == {("prod", "platform")}
    # Of an instance's security groups one has it; that of its node group is another one.
    without = {name for name, pairs in tags.items() if pairs.get("kubernetes.io/cluster/prod") != "owned"}
    assert without == {"NodeGroupNodesSecurityGroup"}
    assert tags["NodeGroupNodesSecurityGroup"]["Name"] == "prod-nodes-nodes"


def test_instances_get_the_clusters_tags_and_groups_those_of_the_autoscaler(templates: Any) -> None:
    """cluster-autoscaler finds groups by these two (`--node-group-auto-discovery`); no instance needs them."""
    tags = templates({"name": "prod"}).properties("NodeGroupNodesAutoScalingGroup")["Tags"]
    by_propagation = {
        propagated: {tag["Key"]: tag["Value"] for tag in tags if tag["PropagateAtLaunch"] is propagated}
        for propagated in (True, False)
    }
    assert by_propagation == {
        True: {"KubernetesCluster": "prod", "kubernetes.io/cluster/prod": "owned", "Name": "prod-nodes-nodes"},
        False: {"k8s.io/cluster-autoscaler/enabled": "true", "k8s.io/cluster-autoscaler/prod": "owned"},
    }


def test_the_network_plugin_knows_security_groups_by_the_role_of_their_instances(templates: Any) -> None:
    """Its permissions name these tags."""
    tags = tags_of(templates(WITH_EVERY_STACK))
    for owner, role in (("Master", "master"), ("Node", "node"), ("NodeGroupNodes", "node")):
        assert tags[f"{owner}SecurityGroup"][f"k8s.io/role/{role}"] == "1"


def test_the_order_of_tags_in_the_file_makes_no_difference(templates: Any) -> None:
    """Otherwise CloudFormation would update the groups of whoever sorts them."""
    one, other = (
        templates({"tags": tags})["standalone"]["Resources"] for tags in ({"a": "1", "z": "2"}, {"z": "2", "a": "1"})
    )
    groups = {name for name, resource in one.items() if resource["Type"] == "AWS::AutoScaling::AutoScalingGroup"}
    assert len(groups) == 2
    assert {name: one[name]["Properties"]["Tags"] for name in groups} == {
        name: other[name]["Properties"]["Tags"] for name in groups
    }

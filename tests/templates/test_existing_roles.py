"""Existing roles, instance profiles and keys: what is still made, and what instances get."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "aws"))

from clusters import golden

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.templates import generate
from cfngen.templates.immutable_settings import recorded_settings, settings_to_record

OWN = "arn:aws:iam::123456789012"
Resources = dict[str, dict[str, Any]]


def stacks(cluster: Cluster) -> dict[str, Resources]:
    """The resources of each nested stack, by its name."""
    return {
        document.name: document.body["Resources"]
        for document in generate(cluster)
        if document.name not in ("cluster", "standalone")
    }


def of_iam(resources: Resources) -> dict[str, str]:
    return {name: resource["Type"] for name, resource in resources.items() if "::IAM::" in resource["Type"]}


def profile_of(resources: Resources, prefix: str) -> Any:
    return resources[f"{prefix}LaunchTemplate"]["Properties"]["LaunchTemplateData"]["IamInstanceProfile"]["Arn"]


def test_existing_roles_get_instance_profiles_and_nothing_else() -> None:
    made = stacks(golden("own-roles"))
    assert of_iam(made["iam"]) == {
        "MasterExistingRoleProfile": "AWS::IAM::InstanceProfile",
        "NodeExistingRoleProfile": "AWS::IAM::InstanceProfile",
    }
    # By its name, without the path.
    assert made["iam"]["MasterExistingRoleProfile"]["Properties"] == {"Roles": ["masters"]}
    assert of_iam(made["nodes-plain"]) == {}
    assert made["nodes-batch"]["NodeGroupBatchExistingRoleProfile"]["Properties"] == {"Roles": ["batch"]}
    assert profile_of(made["nodes-batch"], "NodeGroupBatch") == {
        "Fn::GetAtt": ["NodeGroupBatchExistingRoleProfile", "Arn"]
    }


def test_with_existing_instance_profiles_nothing_of_iam_is_made() -> None:
    made = stacks(golden("own-instance-profiles"))
    assert "iam" not in made
    assert [of_iam(resources) for resources in made.values() if of_iam(resources)] == []
    assert profile_of(made["master"], "MasterA") == f"{OWN}:instance-profile/kubernetes-masters"
    assert profile_of(made["nodes-nodes"], "NodeGroupNodes") == f"{OWN}:instance-profile/kubernetes-nodes"


def test_some_exist_and_the_rest_is_made() -> None:
    file = {
        "iam": {"masters": {"role": f"{OWN}:role/m", "instanceProfile": f"{OWN}:instance-profile/m"}},
        "nodeGroups": [{"name": "one"}, {"name": "two", "iam": {"role": f"{OWN}:role/two"}}],
        "addons": {"clusterAutoscaler": {"enabled": True}},
    }
    made = stacks(parse(file))
    assert sorted(of_iam(made["iam"])) == ["NodeInstanceProfile", "NodeRole"]
    assert sorted(of_iam(made["nodes-two"])) == ["NodeGroupTwoExistingRoleProfile"]


def test_a_role_that_no_node_group_would_have_is_not_made() -> None:
    made = stacks(parse({"nodeGroups": [{"name": "one", "iam": {"role": f"{OWN}:role/one"}}]}))
    assert "NodeRole" not in made["iam"]
    assert "MasterRole" in made["iam"]


def test_an_existing_key_encrypts_the_secrets() -> None:
    cluster = golden("own-kms-key")
    made = stacks(cluster)
    key = cluster.secrets.kms_key
    assert "SecretsKey" not in made["secrets"]
    assert {made["secrets"][name]["Properties"]["KmsKeyId"] for name in ("CaSecret", "JoinSecret")} == {key}
    documents = {document.name: document for document in generate(cluster)}
    assert documents["secrets"].body["Outputs"]["SecretsKeyArn"]["Value"] == key


def test_the_key_of_the_secrets_is_recorded_only_if_it_exists() -> None:
    """Templates of other clusters stay as they were, and a template without the record is one of a made key."""
    assert "secrets.kmsKey" not in settings_to_record(parse({}))
    assert settings_to_record(golden("own-kms-key"))["secrets.kmsKey"] == golden("own-kms-key").secrets.kms_key
    earlier = {"Metadata": {"cfngen": {"immutableSettings": settings_to_record(parse({}))}}}
    assert recorded_settings(earlier)["secrets.kmsKey"] == "a key made with the cluster"

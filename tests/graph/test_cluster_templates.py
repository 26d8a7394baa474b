"""Templates are read as one, whoever wrote them, and what is no cluster is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from drawn import CASES, EXAMPLES, documents, templates

from cfngen.graph.cluster_templates import NotAClusterError, read
from cfngen.templates.document import Document


@pytest.mark.parametrize(
    "cluster_file",
    [None, EXAMPLES / "production.yaml", EXAMPLES / "existing-vpc.yaml", CASES / "references" / "cluster.yaml"],
)
def test_nested_stacks_put_together_are_the_standalone_template(cluster_file) -> None:
    nested = templates(cluster_file)
    standalone = read([document for document in documents(cluster_file) if document.name == "standalone"])
    stacks = {resource.logical_id for resource in nested.of_type("AWS::CloudFormation::Stack")}
    assert set(nested.resources) - stacks == set(standalone.resources)
    for logical_id, resource in standalone.resources.items():
        assert of_one_stack(nested.resources[logical_id].properties) == resource.properties


def of_one_stack(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Properties in which nodes signal the one stack instead of the nested ones of node groups."""
    text = json.dumps(properties)
    replaced: Mapping[str, Any] = json.loads(text.replace('"-NodeGroup*Stack-*/*"', '"/*"'))
    return replaced


def test_templates_are_found_by_the_names_of_their_files() -> None:
    named = [replace(document, name=f"/somewhere/{document.name}.yaml") for document in documents(None)]
    assert set(read(named).resources) == set(templates().resources)


def test_a_parameter_with_a_value() -> None:
    given = read(documents(None), {"ApiAllowedCidr": "203.0.113.7/32", "Unknown": "x"})
    assert given.text({"Ref": "ApiAllowedCidr"}) == "203.0.113.7/32"
    assert templates().text({"Ref": "ApiAllowedCidr"}) == "ApiAllowedCidr"


def test_a_missing_template_is_named() -> None:
    with pytest.raises(NotAClusterError, match=r"cluster nests iam \(IamStack\), and that template is missing"):
        read([document for document in documents(None) if document.name != "iam"])


def test_parts_without_a_root_are_no_cluster() -> None:
    with pytest.raises(NotAClusterError, match="no template nests the others"):
        read([document for document in documents(None) if document.name in ("vpc", "iam")])


def test_templates_of_two_clusters() -> None:
    with pytest.raises(NotAClusterError, match="several templates nest others"):
        read([*documents(None), *(replace(document, name=f"b/{document.name}") for document in documents(None))])


def test_one_template_of_anybody() -> None:
    own = Document(
        "own", {"Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}, "Odd": [], "Vpc": {"Properties": 3}}}, ""
    )
    assert set(read([own]).resources) == {"Bucket", "Odd", "Vpc"}

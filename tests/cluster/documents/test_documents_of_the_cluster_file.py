"""The schema, the starter file, the examples and the reference pages say what the models say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from pydantic import BaseModel, TypeAdapter, ValidationError

from cfngen.cluster import kube_up
from cfngen.cluster.documents import examples, reference
from cfngen.cluster.documents.schema import json_schema
from cfngen.cluster.file import error_messages, extended_file, yaml_file
from cfngen.cluster.file.keys import fields, section_at, section_of, sections_with
from cfngen.cluster.load import load, parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path as KeyPath
from cfngen.cluster.paths import is_free_form

ROOT = Path(__file__).parents[3]
STARTER = examples.text_of(examples.DEFAULT)
UNCOMMENTED = re.sub(r"(?m)^#(?=[a-zA-Z]|  )", "", STARTER)


@pytest.mark.parametrize("text", [STARTER, UNCOMMENTED], ids=["as it is", "uncommented"])
def test_the_starter_file_is_the_default_cluster(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.yaml").write_text(text)
    loaded = load(tmp_path / "cluster.yaml", environ={})
    assert loaded.cluster == parse({})
    assert loaded.warnings == ()


def test_the_starter_file_shows_every_section() -> None:
    assert set(yaml.safe_load(UNCOMMENTED)) == set(fields(Cluster))


def test_what_the_starter_file_hints_at_is_accepted(tmp_path: Path) -> None:
    """Lines like `# keyName: my-key` are proposals; each must be right at its place."""
    proposal = re.compile(r"(?m)^( *)# (?=[a-z][A-Za-z]*: \S)")
    for match in proposal.finditer(UNCOMMENTED):
        text = UNCOMMENTED[: match.start()] + match[1] + UNCOMMENTED[match.end() :]
        text = text.replace("AAAA...", "AAAA")
        (tmp_path / "cluster.yaml").write_text(text)
        if "id: subnet-" not in text[match.start() :].splitlines()[0]:
            load(tmp_path / "cluster.yaml", environ={})


@pytest.mark.parametrize("name", examples.names())
def test_an_example_is_accepted_without_warnings(name: str) -> None:
    assert load(ROOT / "examples" / f"{name}.yaml", environ={}).warnings == ()


def test_the_package_has_the_examples_of_the_project() -> None:
    files = sorted((ROOT / "examples").glob("*.yaml"))
    assert {name: examples.text_of(name) for name in examples.names()} == {
        file.stem: file.read_text() for file in files
    }


def test_the_production_example_shows_what_it_promises() -> None:
    cluster = load(ROOT / "examples" / "production.yaml", environ={}).cluster
    assert len(cluster.network.subnets) == 3
    assert {group.image.architecture for group in cluster.node_groups} == {"amd64", "arm64"}
    assert any(group.spot_price for group in cluster.node_groups)
    assert cluster.api.allowed_cidrs
    assert (cluster.network.topology, cluster.network.nat) == ("private", "perZone")
    assert cluster.tags


@pytest.mark.parametrize("name", ["configuration.md", "kube-up.md"])
def test_a_reference_page_is_up_to_date(name: str) -> None:
    """Run `python -m cfngen.cluster.documents.reference docs` if it is not."""
    assert (ROOT / "docs/reference" / name).read_text(encoding="utf-8") == reference.reference_pages()[name]


def test_the_pages_are_written_by_one_command(tmp_path: Path) -> None:
    reference.main([str(tmp_path)])
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == reference.reference_pages()


def test_the_reference_names_every_key_and_every_variable() -> None:
    pages = reference.reference_pages()

    def names(schema: dict[str, Any]) -> set[str]:
        return set(schema.get("properties", {}))

    schema = json_schema()
    keys = names(schema).union(*(names(each) for each in schema["definitions"].values()))
    assert {key for key in keys if f"| `{key}` |" not in pages["configuration.md"]} == set()
    spelt = {name for variable in kube_up.VARIABLES.values() for name in (variable.name, *variable.old_names)}
    assert {name for name in spelt if f"`{name}`" not in pages["kube-up.md"]} == set()


def every(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """All properties of a schema, and sections where one stands, with their places."""
    found: list[tuple[str, dict[str, Any]]] = []
    for owner, section in {"": schema, **schema["definitions"]}.items():
        for key, value in section["properties"].items():
            reference = value.get("$ref") or value.get("anyOf", [{}])[0].get("$ref", "")
            pointed = schema["definitions"].get(reference.rpartition("/")[2], {})
            found.append((f"{owner}.{key}", {**pointed, **value}))
    return found


# Keys of kops, eksctl and others, by section, and the advice that whoever writes them is given.
KEYS_OF_OTHER_TOOLS: dict[str, dict[str, str]] = {
    "": {
        "allowedCidrs access": "write api.allowedCidrs, or ssh.allowedCidrs",
        "availabilityZones zones": "`network: {subnets: [{zone: us-west-2a}]}`",
        "cidr networkCIDR vpcCidr": "write network.vpc.cidr",
        "cni networking": "write network.plugin",
        "count desiredCapacity max min replicas size": "write nodeGroups[].minSize and maxSize, or controlPlane.count",
        "instanceGroups managedNodeGroups nodePools nodes workers": "write nodeGroups",
        "instanceType": "write nodeGroups[].instanceType, or controlPlane.instanceType",
        "kubernetesApiAccess": "write api.allowedCidrs",
        "master masters": "write controlPlane",
        "ports": "`ingress: [{ports: 30080, cidrs: [203.0.113.0/24]}]` in controlPlane or in a node group",
        "spot": "`instancesDistribution: {onDemandPercentage: 0}` in the node group",
        "sshAccess": "write ssh.allowedCidrs",
        "sshKeyName": "write ssh.keyName",
        "version": "write kubernetesVersion",
    },
    "api": {"access cidr cidrs sourceRanges": "write allowedCidrs"},
    "controlPlane": {
        "max maxSize min minSize nodes replicas size": "write count: 1, 3 or 5 masters",
        "machineType type": "write instanceType",
        "ports": "`ingress: [{ports: 30080, cidrs: [203.0.113.0/24]}]`",
        "spot": "masters are On-Demand Instances; remove the key",
        "availabilityZones subnets zones": "masters are in the first subnets; write a subnet for each zone",
    },
    "network": {
        "availabilityZones zones": "`network: {subnets: [{zone: us-west-2a}]}`",
        "cidr networkCIDR": "write vpc.cidr",
        "cni networking": "write plugin",
        "natGateway natGateways": "write nat, with topology: private",
        "private privateSubnets": "write topology: private",
    },
    "nodeGroups": {
        "ami": "write `image: {id: …}`",
        "amiFamily": "write `image: {distribution: …}`",
        "availabilityZones subnets": "write zones",
        "count replicas size": "write minSize and maxSize",
        "desired desiredCapacity": "write desiredSize",
        "diskSize rootVolumeSize volumeSize": "write `rootVolume: {size: …}`",
        "machineType type": "write instanceType",
        "max maxCount": "write maxSize",
        "maxPrice": "write spotPrice",
        "min minCount": "write minSize",
        "nodeLabels": "write labels",
        "ports": "`ingress: [{ports: 30080, cidrs: [203.0.113.0/24]}]`",
        "privateNetworking": "write network.topology: private",
        "spot": "`instancesDistribution: {onDemandPercentage: 0}`",
        "rootVolumeType volumeType": "write `rootVolume: {type: …}`",
        "userData": "write cloudConfig, files, units or preBootCommands",
    },
}


@pytest.mark.parametrize(
    ("section", "key", "advice"),
    [
        (section, key, advice)
        for section, rows in KEYS_OF_OTHER_TOOLS.items()
        for keys, advice in rows.items()
        for key in keys.split()
    ],
)
def test_a_key_of_another_tool_is_answered_with_one_that_exists(section: str, key: str, advice: str) -> None:
    path: KeyPath = (section,) if section else ()
    model = section_at(path)
    assert model is not None
    assert key not in fields(model)
    message = error_messages.unknown_key((*path, 0, key) if section == "nodeGroups" else (*path, key))
    assert message.startswith("there is no such key; ")
    assert advice in message
    words = set(re.findall(r"[A-Za-z]+", message))
    assert [word for word in words if sections_with(word)] or "remove the key" in message
    assert [word for word in words if re.search(r"[a-z][A-Z]", word) and not sections_with(word)] == []


def test_the_schema_describes_every_key() -> None:
    schema = json_schema()
    Draft7Validator.check_schema(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert schema["$id"]
    assert schema["title"] == "cfngen cluster file"
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert all(section["additionalProperties"] is False for section in schema["definitions"].values())
    assert [place for place, value in every(schema) if not value.get("description")] == []


def test_the_schema_is_one_that_schemastore_takes() -> None:
    """In draft-07 nothing that stands beside a reference counts; references lead nowhere else."""
    text = json.dumps(json_schema())
    references = re.findall(r'\{[^{}]*"\$ref": "([^"]*)"[^{}]*\}', text)
    assert len(references) == text.count('"$ref"') == len(re.findall(r'\{"\$ref": "#/definitions/[A-Za-z]+"\}', text))
    assert '"$defs"' not in text


def test_the_schema_knows_types_patterns_and_choices() -> None:
    schema = json_schema()
    definitions = schema["definitions"]
    assert schema["properties"]["kubernetesVersion"]["type"] == ["string", "number", "null"]
    assert definitions["Volume"]["properties"]["type"]["anyOf"][0]["enum"] == ["gp3", "gp2", "io1", "io2"]
    assert definitions["Api"]["properties"]["port"]["maximum"] == 65535
    assert re.search(schema["properties"]["name"]["pattern"], "blue-1")
    assert not re.search(schema["properties"]["name"]["pattern"], "Blue")


FILES = sorted([*(ROOT / "examples").rglob("*.yaml"), *(ROOT / "tests/golden/cases").glob("*/cluster.yaml")])
FILES = [file for file in FILES if file.name != "common.yaml"]  # whose values are those of the files that extend it
VALIDATOR = Draft7Validator(json_schema())


def with_outputs(value: Any, outputs: list[object], path: KeyPath = ()) -> Any:
    """Return the content of a file with an output of Terraform in place of each of its values."""
    if is_free_form(path) or value in (None, "", [], {}):
        return value
    if isinstance(value, dict):
        return {key: with_outputs(item, outputs, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [with_outputs(item, outputs, (*path, index)) for index, item in enumerate(value)]
    if str(value).startswith("terraform:") or path == (extended_file.KEY,):
        return value
    outputs.append(value)
    return f"terraform:outputs.json#values[{len(outputs) - 1}]"


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_an_editor_accepts_a_file_and_outputs_of_terraform_in_place_of_its_values(file: Path, tmp_path: Path) -> None:
    shutil.copytree(file.parent, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("expected"))
    data, outputs = yaml_file.read(file).data, list[object]()
    replaced = with_outputs(data, outputs)
    (tmp_path / "outputs.json").write_text(json.dumps({"values": {"value": outputs}}))
    (tmp_path / "cluster.yaml").write_text(json.dumps(replaced))
    assert load(tmp_path / "cluster.yaml", environ={}).cluster == load(file, environ={}).cluster
    assert [error.message for content in (data, replaced) for error in VALIDATOR.iter_errors(content)] == []


# Of what kinds the values of keys are, and references to ids.
VALUES = (True, 5, "5", "1.5", "text", "10.0.0.0/8", "10.0.0.9", "stack:network.Output", "ssm:/network/part")


def every_section(section: type[BaseModel] = Cluster) -> set[type[BaseModel]]:
    inner = filter(None, (section_of(field.annotation) for field in fields(section).values()))
    return {section}.union(*map(every_section, inner))


def test_an_editor_accepts_whatever_the_model_accepts_for_a_key() -> None:
    """A key that may be left out may also have no value."""
    refused, accepted = [], 0
    for section in every_section():
        definition = VALIDATOR.schema if section is Cluster else VALIDATOR.schema["definitions"][section.__name__]
        validator = Draft7Validator({**definition, "definitions": VALIDATOR.schema["definitions"]})
        for key, field in fields(section).items():
            values: list[object] = [] if field.is_required() else [None]
            if section_of(field.annotation) is None:
                adapter = TypeAdapter(field.rebuild_annotation(), config=section.model_config)
                values += [value for plain in VALUES for value in (plain, [plain]) if is_valid(adapter, value)]
            accepted += len(values)
            errors = [(value, error) for value in values for error in validator.iter_errors({key: value})]
            refused += [(section.__name__, key, value) for value, error in errors if key in error.absolute_path]
    assert refused == []
    assert accepted > 500


def is_valid(adapter: TypeAdapter[Any], value: object) -> bool:
    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


def test_a_pattern_means_in_an_editor_what_it_means_here() -> None:
    """`\\w`, `\\d` and `\\b` take in the letters of all scripts in Python, and those of ASCII in JSON Schema."""
    patterns = re.findall(r"'pattern': '(.*?)'[,}]", str(json_schema()))
    assert len(patterns) > 20
    assert [pattern for pattern in patterns if re.search(r"\\[wdb]", pattern)] == []


def test_loading_asks_nothing_but_the_file() -> None:
    """No environment, no clock, no network, and neither cfn-lint nor troposphere is imported."""
    program = """
import os, socket, sys, time
def forbidden(*arguments, **options): raise AssertionError("impure")
socket.socket.connect = forbidden
from pathlib import Path
from cfngen.cluster.load import load
time.time = forbidden
os.environ.clear()
os.environ.update(NUM_NODES="9", KUBE_AWS_ZONE="eu-west-1a", KUBE_AWS_INSTANCE_PREFIX="impure")
found = load(Path(sys.argv[1]), environ={})
assert found.cluster.node_groups[0].min_size == 4, found
assert not {"cfnlint", "troposphere", "boto3", "botocore"} & set(sys.modules), sorted(sys.modules)
"""
    file = ROOT / "examples" / "kube-up.yaml"
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

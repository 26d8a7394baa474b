"""Parameter files in every usual shape, and what is said of those that are none."""

from __future__ import annotations

import pytest

from cfngen.deploy.values.parameter_file import ParameterFile, ParameterFileError, read_file

VALUES = {"ApiAllowedCidr": "203.0.113.7/32", "NodeGroupNodesMaxSize": "8"}
SHAPES = {
    "mapping.yaml": "ApiAllowedCidr: 203.0.113.7/32\nNodeGroupNodesMaxSize: 8\n",
    "mapping.json": '{"ApiAllowedCidr": "203.0.113.7/32", "NodeGroupNodesMaxSize": 8}',
    "flow.yaml": "{ApiAllowedCidr: 203.0.113.7/32, NodeGroupNodesMaxSize: 8}",
    "cli.json": '[{"ParameterKey": "ApiAllowedCidr", "ParameterValue": "203.0.113.7/32"},'
    ' {"ParameterKey": "NodeGroupNodesMaxSize", "ParameterValue": "8", "ResolvedValue": "8"}]',
    "cli.yaml": "- ParameterKey: ApiAllowedCidr\n  ParameterValue: 203.0.113.7/32\n"
    "- ParameterKey: NodeGroupNodesMaxSize\n  ParameterValue: 8\n  UsePreviousValue: false\n",
    "overrides.json": '["ApiAllowedCidr=203.0.113.7/32", "NodeGroupNodesMaxSize=8"]',
    "overrides.yaml": "- ApiAllowedCidr=203.0.113.7/32\n- NodeGroupNodesMaxSize=8\n",
    "pairs.yaml": "- ApiAllowedCidr: 203.0.113.7/32\n- NodeGroupNodesMaxSize: 8\n",
    "codepipeline.json": '{"Tags": {}, "Parameters":\n'
    ' {"ApiAllowedCidr": "203.0.113.7/32", "NodeGroupNodesMaxSize": "8"}}',
    "rain.yaml": "Parameters:\n  ApiAllowedCidr: 203.0.113.7/32\n  NodeGroupNodesMaxSize: 8\nTags: {}\n",
    # `aws cloudformation create-stack --generate-cli-skeleton`, filled in: the list stands under a key.
    "skeleton.json": '{"Tags": [], "Parameters":\n'
    ' [{"ParameterKey": "ApiAllowedCidr", "ParameterValue": "203.0.113.7/32"},'
    ' {"ParameterKey": "NodeGroupNodesMaxSize", "ParameterValue": "8"}]}',
    "with-bom.yaml": "\ufeffApiAllowedCidr: 203.0.113.7/32\nNodeGroupNodesMaxSize: 8\n",
}


@pytest.fixture
def read(tmp_path):
    def read(text, name="parameters.yaml"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_file(file)

    return read


@pytest.mark.parametrize("name", SHAPES)
def test_every_usual_shape_is_read(read, name):
    found = read(SHAPES[name], name)
    assert found.values == VALUES
    assert found.keep == frozenset()


@pytest.mark.parametrize("name", ["parameters.yaml", "parameters.json"])
@pytest.mark.parametrize("value", ["1.30", "0123", "1e3", "true", "12:30", "yes", "-7"])
def test_a_value_is_the_text_that_stands_there(read, name, value):
    if name.endswith("json"):
        written = value if value in ("1.30", "1e3", "true", "-7") else f'"{value}"'
        assert read(f'{{"Key": {written}}}', name).values == {"Key": value}
    else:
        assert read(f"Key: {value}\n", name).values == {"Key": value}


def test_text_may_hold_an_equals_sign_or_be_empty(read):
    assert read('- "Key=a=b"\n- Other=\n').values == {"Key": "a=b", "Other": ""}
    assert read('Key: ""\n').values == {"Key": ""}


def test_a_list_becomes_text_with_commas(read):
    assert read('{"Subnets": ["subnet-1", "subnet-2"]}').values == {"Subnets": "subnet-1,subnet-2"}


def test_a_value_may_be_kept(read):
    found = read('[{"ParameterKey": "Key", "ParameterValue": "", "UsePreviousValue": true}]')
    assert found == ParameterFile(found.name, {}, frozenset({"Key"}))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ": is empty"),
        ("# only a comment\n", ": holds nothing but comments"),
        ("text", ":1: holds a single value; parameters are keys and values"),
        ("Key: 1\nKey: 2\n", ":2: Key: stands twice; remove one"),
        ('{"Key": "1", "Key": "2"}', ": Key: stands twice; remove one"),
        ("- Key=1\n- Key=2\n", ":2: Key: stands twice; remove one"),
        ("Key:\n", ':1: Key: has no value; give one, or "" for the empty text'),
        ('{"Key": null}', ': Key: has no value; give one, or "" for the empty text'),
        ("Key: {inner: 1}\n", ":1: Key: has a nested value; give text"),
        ("- Key\n", ":1: an item is not Key=Value; put a = between name and value"),
        ("- ParameterKey: Key\n", ":1: Key: has no ParameterValue; give one, or UsePreviousValue: true"),
        (
            "- ParameterKey: Key\n  ParameterValue: 1\n  UsePreviousValue: true\n",
            ":1: Key: has a value and keeps the previous one; decide for one of them",
        ),
        (
            "- ParameterKey: Key\n  ParameterValue: 1\n  Value: 2\n",
            ":1: Key: Value is no field of a parameter; leave it out",
        ),
        (
            "Parameters: {Key: 1}\nTags: {a: b}\n",
            ":2: Tags is not taken from a parameter file; leave it out (tags belong into the cluster file)",
        ),
        (
            "Parameters: {Key: 1}\nOther: 2\n",
            ":2: Other stands beside Parameters; move it into them, or leave it out",
        ),
        ('{"Key": "1",\n "Other": ]}', ":2: is not JSON: expecting value"),
        ("Key: [1\n", ":2: is not YAML: expected ',' or ']', but got '<stream end>'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(read, tmp_path, text, problem):
    with pytest.raises(ParameterFileError) as refused:
        read(text)
    assert str(refused.value) == f"{tmp_path / 'parameters.yaml'}{problem}"
    assert refused.value.hint


def test_everything_wrong_is_said_at_once(read):
    with pytest.raises(ParameterFileError) as refused:
        read("One:\nTwo: {}\nThree: 3\nThree: 4\n")
    assert len(refused.value.problems) == 3


def test_an_anchor_that_contains_itself_is_refused(read):
    with pytest.raises(ParameterFileError, match="nested value"):
        read("Key: &a [*a]\n")


def test_a_file_that_cannot_be_read_is_refused(tmp_path, read):
    with pytest.raises(ParameterFileError, match="no such file"):
        read_file(tmp_path / "nothing.yaml")
    with pytest.raises(ParameterFileError, match="is a directory"):
        read_file(tmp_path)
    with pytest.raises(ParameterFileError, match="byte 0xff is not UTF-8"):
        read(b"\xff\xfeK\x00")

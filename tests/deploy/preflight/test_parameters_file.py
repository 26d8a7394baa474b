"""Parameter files in every usual shape, and what is said of those that are none."""

from __future__ import annotations

import pytest

from cfngen.deploy.preflight.parameters.parameter_file import ParameterFile, ParameterFileError, read_file

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
    assert found.kept_parameters == frozenset()


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
        ("# only a comment\n", ": contains only comments"),
        ("text", ":1: contains a single value; parameters are keys and values"),
        ("Key: 1\nKey: 2\n", ":2: Key: appears twice; remove one"),
        ('{"Key": "1", "Key": "2"}', ": Key: appears twice; remove one"),
        ("- Key=1\n- Key=2\n", ":2: Key: appears twice; remove one"),
        ("Key:\n", ':1: Key: has no value; add one, or "" for an empty string'),
        ('{"Key": null}', ': Key: has no value; add one, or "" for an empty string'),
        ("Key: {inner: 1}\n", ":1: Key: has a nested value; use a string"),
        ("- Key\n", ":1: an item is not Key=Value; put a = between name and value"),
        ("- ParameterKey: Key\n", ":1: Key: has no ParameterValue; add one, or UsePreviousValue: true"),
        (
            "- ParameterKey: Key\n  ParameterValue: 1\n  UsePreviousValue: true\n",
            ":1: Key: has a value and UsePreviousValue; remove one of them",
        ),
        (
            "- ParameterKey: Key\n  ParameterValue: 1\n  Value: 2\n",
            ":1: Key: Value is not a field of a parameter; remove it",
        ),
        (
            "Parameters: {Key: 1}\nTags: {a: b}\n",
            ":2: Tags in a parameter file is not supported; remove it (set tags in the cluster file)",
        ),
        (
            "Parameters: {Key: 1}\nOther: 2\n",
            ":2: Other is next to Parameters; move it into Parameters, or remove it",
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


@pytest.mark.parametrize("null", ["", "~", "null", "Null", "NULL"])
def test_what_yaml_calls_nothing_is_no_value(read, null):
    with pytest.raises(ParameterFileError, match="Key: has no value"):
        read(f"Key: {null}\nOther: 1\n")
    assert read(f'Key: "{null}"\n').values == {"Key": null}


@pytest.mark.parametrize("name", ["Tags", "StackPolicy"])
@pytest.mark.parametrize(("value", "refused"), [("{}", False), ("[]", False), ("", False), ("x", True), ("[x]", True)])
def test_what_stands_beside_the_parameters_is_refused_unless_it_is_empty(read, name, value, refused):
    text = f"{name}: {value}\nParameters: {{Key: 1}}\n"
    if refused:
        with pytest.raises(ParameterFileError, match=f":1: {name} in a parameter file is not supported"):
            read(text)
    else:
        assert read(text).values == {"Key": "1"}


def test_a_parameter_may_be_called_parameters(read):
    assert read("Parameters: text\nOther: 1\n").values == {"Parameters": "text", "Other": "1"}
    assert read("Parameters: [Key=1]\n").values == {"Key": "1"}


@pytest.mark.parametrize(
    ("fields", "kept", "values"),
    [
        ("UsePreviousValue: true", {"Key"}, {}),
        ("UsePreviousValue: True\n  ParameterValue: ''", {"Key"}, {}),
        ("UsePreviousValue: false\n  ParameterValue: a", set(), {"Key": "a"}),
        ("UsePreviousValue:\n  ParameterValue: a", set(), {"Key": "a"}),
        ("ParameterValue: [a, b]", set(), {"Key": "a,b"}),
        ("ParameterValue: ''", set(), {"Key": ""}),
    ],
)
def test_a_parameter_of_the_aws_cli(read, fields, kept, values):
    found = read(f"- ParameterKey: Key\n  {fields}\n- Other=1\n")
    assert found.kept_parameters == kept
    assert found.values == {**values, "Other": "1"}


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("- []\n- Key=1\n- =1\n", [":1: an item of the list is not a parameter", ":3: an item is not Key=Value"]),
        ("- {}\n", [":1: an item of the list is not a parameter"]),
        ("Key: []\n", [":1: Key: has a nested value"]),
        ("Key: [a, {b: 1}]\n", [":1: Key: has a nested value"]),
        (
            "- ParameterKey: K\n  ParameterValue: 1\n  B: 1\n  A: 2\n",
            [":1: K: A is not a field", ":1: K: B is not a field"],
        ),
        ("- {A: 1, B: 2}\n- {A: 3}\n", [":2: A: appears twice"]),
        ("A:\nA: 1\n", [":1: A: has no value"]),
        (
            "Parameters: {Key: 1}\nTags: {a: b}\nOdd: 1\nStackPolicy: x\nMore: 2\n",
            [":2: Tags in", ":3: Odd is next", ":4: StackPolicy in", ":5: More is next"],
        ),
        (
            "- ParameterKey: K\n  UsePreviousValue: true\n- K=1\n- ParameterKey: K\n  UsePreviousValue: true\n",
            [":3: K: appears twice", ":4: K: appears twice"],
        ),
    ],
)
def test_every_problem_has_its_line(read, text, problems):
    with pytest.raises(ParameterFileError) as refused:
        read(text)
    found = [problem.partition("parameters.yaml")[2] for problem in refused.value.problems]
    assert [each.startswith(start) for each, start in zip(found, problems, strict=True)] == [True] * len(problems), (
        found
    )


@pytest.mark.parametrize(
    ("value", "text"), [("true", "true"), ("false", "false"), ("NaN", "NaN"), ("1.50", "1.50"), ('"True"', "True")]
)
def test_json_keeps_its_texts(read, value, text):
    assert read(f' {{"Key": {value}}}', "p.json").values == {"Key": text}


def test_the_file_is_named_as_it_was(read, tmp_path):
    assert read("Key: 1\n").name == str(tmp_path / "parameters.yaml")
    with pytest.raises(ParameterFileError) as refused:
        read("")
    assert refused.value.file == str(tmp_path / "parameters.yaml")
    assert "write `Key: Value`" in refused.value.hint
    with pytest.raises(ParameterFileError) as refused:
        read_file(tmp_path / "nothing.yaml")
    assert "choose an existing file" in refused.value.hint
    with pytest.raises(ParameterFileError) as refused:
        read(b"Key: \xff")
    assert refused.value.hint == "save the file as UTF-8."


def test_what_repeats_itself_elsewhere_may_be_named_once(read):
    assert read("One: &a x\nTwo: *a\n").values == {"One": "x", "Two": "x"}

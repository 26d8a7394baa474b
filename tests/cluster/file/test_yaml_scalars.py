"""What a scalar of the file means, where reading ends, and how a wrong type is worded: each case and its neighbour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster.file import yaml_file
from cfngen.cluster.instances import instance_types
from cfngen.cluster.load import load, parse
from cfngen.cluster.problems import ClusterFileError


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str) -> Any:
    Path("cluster.yaml").write_text(text, encoding="utf-8")
    return yaml_file.read(Path("cluster.yaml")).data


def refusal(text: str) -> str:
    with pytest.raises(ClusterFileError) as raised:
        read(text)
    return str(raised.value)


def refusals(configuration: dict[str, Any]) -> list[str]:
    try:
        parse(configuration)
    except ClusterFileError as error:
        return str(error).splitlines()
    return []


# YAML 1.2, "10.3.2. Tag Resolution" (core schema); but of numbers only whole ones, and those without a leading 0.
SCALARS: list[tuple[str, Any]] = [
    *((text, None) for text in ("", "~", "null", "Null", "NULL")),
    *((text, True) for text in ("true", "True", "TRUE")),
    *((text, False) for text in ("false", "False", "FALSE")),
    *((text, text) for text in ("nULL", "tRUE", "fALSE", "yes", "no", "on", "off", "y", "n", "Yes")),
    *((text, int(text)) for text in ("0", "7", "10", "-3", "+5", "9" * 19, "-" + "9" * 18)),
    *((text, text) for text in ("9" * 20, "00", "010", "-01", "0x1F", "0o7", "1_000", "12:30", "1.30", "1e3", ".5")),
    *((f"'{text}'", text) for text in ("true", "7", "null", "")),
    *((f'"{text}"', text) for text in ("true", "7", "~")),
]


@pytest.mark.parametrize(("text", "meaning"), SCALARS, ids=[text or "nothing" for text, _ in SCALARS])
def test_what_a_scalar_means_in_the_file_and_in_a_flag(text: str, meaning: Any) -> None:
    found = read(f"a: {text}\n")["a"]
    assert (type(found), found) == (type(meaning), meaning)
    of_flag = yaml_file.parse_value(text, ("a",))
    assert (type(of_flag), of_flag) == (type(meaning), meaning)


FREE = ("kubernetes", "kubeletConfiguration", "a")
FRACTIONS = {
    "1.5": 1.5,
    "-1.5": -1.5,
    "+1.5": 1.5,
    "1.": 1.0,
    ".5": 0.5,
    "1e3": 1000.0,
    "1E-3": 0.001,
    "1.5e+2": 150.0,
}


@pytest.mark.parametrize("text", FRACTIONS)
def test_a_fraction_is_a_number_in_somebody_elses_section_only(text: str) -> None:
    assert yaml_file.parse_value(text, FREE) == FRACTIONS[text]
    assert yaml_file.parse_value(text, ("tags", "a")) == text


@pytest.mark.parametrize("text", [".", "1.5.2", "e3", "1e", "v1.5", "1.5x", ".e3"])
def test_what_only_resembles_a_fraction_is_text(text: str) -> None:
    assert yaml_file.parse_value(text, FREE) == text


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("[a, 1]", ["a", 1]),
        (" [a]", ["a"]),
        ("{a: 1}", {"a": 1}),
        ('"a: b"', "a: b"),
        ("'a: b'", "a: b"),
        ("a: b", "a: b"),
        ("a:b", "a:b"),
        ("a\nb", "a\nb"),
        ("- a", ["a"]),
    ],
)
def test_what_a_flags_value_means(text: str, meaning: Any) -> None:
    assert yaml_file.parse_value(text, ("a",)) == meaning


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a", "a bracket [ is not closed; close it with ]"),
        ("{a: b", "a brace { is not closed; close it with }"),
        ("!Ref a", "the YAML tag !Ref has no meaning here; remove it"),
        ("!!int a", "the YAML tag !!int has no meaning here; remove it"),
        ("!Ref [a]", "the YAML tag !Ref has no meaning here; remove it"),
        ("!!set {a}", "the YAML tag !!set has no meaning here; remove it"),
        ("{a: 1, a: 2}", "the key appears twice, first in line 1; remove one"),
    ],
)
def test_what_is_wrong_with_a_flags_value(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        yaml_file.parse_value(text, ("a",))
    assert str(raised.value) == reason


def test_how_far_a_file_is_read() -> None:
    """A megabyte, twenty thousand values, a thousand items of a list, a hundred levels."""
    start = "a: b\n# "
    assert read(start + "x" * (2**20 - len(start))) == {"a": "b"}
    assert "more than 1,048,576 bytes" in refusal(start + "x" * (2**20 - len(start) + 1))
    assert len(read("a:\n" + "- x\n" * 1000)["a"]) == 1000
    assert refusal("b: 1\na:\n" + "- x\n" * 1001) == "cluster.yaml:3: a: holds 1,001 items; at most 1,000 are read"
    assert len(read("a:\n" + "".join(f"  k{index}: x\n" for index in range(1000)))["a"]) == 1000
    deep = "lists and mappings are nested more than 100 levels deep here, and no key is that deep"
    assert read("a: " + "[" * 99 + "]" * 99)
    assert refusal("\na: " + "[" * 100 + "]" * 100) == f"cluster.yaml:2: {deep}"


def test_how_many_values_aliases_may_make() -> None:
    """Three sections and a list of 996, nineteen lists of as many by alias, a key for all: 20,000 and no more."""

    def text(aliases: int, more: int = 0) -> str:
        listed, again = ", ".join(["x"] * 996), ", ".join(["*a"] * aliases)
        values = f"{{a: &a [{listed}], b: [{again}], c: [{', '.join(['x'] * more)}]}}"
        return f"addons: {{prometheus: {{values: {values}}}}}"

    # The file, three sections, the three lists, and what those hold.
    beside = 4 + 3 + 996 + 19 * 997
    assert read(text(19, 20_000 - beside))
    assert refusal(text(19, 20_001 - beside)) == (
        "cluster.yaml:1: aliases (*) multiply the file's values to more than 20,000; write out what is needed"
    )


# Unicode's bidirectional algorithm (UAX #9), "Explicit directional embeddings, overrides, isolates", and the marks.
@pytest.mark.parametrize("code", [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
def test_a_character_that_turns_the_direction_of_text(code: int) -> None:
    assert refusal(f"a: b\n# {chr(code)}\n").startswith(f"cluster.yaml:2: U+{code:04X} (")
    assert f"U+{code:04X}" in refusal(f"{chr(code)}: b\n")


@pytest.mark.parametrize("code", [0x61B, 0x61D, 0x200D, 0x2010, 0x2030, 0x2065, 0x206A])
def test_the_characters_beside_them_may_stand_in_a_comment(code: int) -> None:
    assert read(f"a: b\n# {chr(code)}\n") == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: 1\nb:\n  c: 2\n  c: 3\n", "cluster.yaml:4: b.c: the key appears twice, first in line 3; remove one"),
        ("a: 1\nb: !Ref c\n", "cluster.yaml:2: b: the YAML tag !Ref has no meaning here; remove it"),
        ("a:\n  - 1\n  - !Ref [c]\n", "cluster.yaml:3: a[1]: the YAML tag !Ref has no meaning here; remove it"),
        ("a:\n  b: !Ref {c: d}\n", "cluster.yaml:2: a.b: the YAML tag !Ref has no meaning here; remove it"),
        ("a: 1\n? [b]\n: 2\n", "cluster.yaml:2: a key is a list or a mapping; a key must be text"),
        ("a: 1\n<<: {b: 2}\n", "cluster.yaml:2: <<: merge keys are not part of YAML 1.2; write the keys out"),
        ("a: 1\n---\nb: 2\n", "cluster.yaml:3: a second document begins here; a cluster file holds one"),
        ("a: 1\nb: *c\n", "cluster.yaml:2: an alias (*) names an anchor (&) that is not there; write the value out"),
        (
            "a: 1\nb:\n\tc: 2\n",
            "cluster.yaml:3: there is a tab here, and YAML allows only spaces; write spaces in its place",
        ),
        ("\n\n- a\n", "cluster.yaml:3: the file holds a list; a cluster file is keys and values"),
        ("\n\na\n", "cluster.yaml:3: the file holds a single value; a cluster file is keys and values"),
        ("a: 1\nb: {c: [d}\n", "cluster.yaml:2: a bracket [ is not closed; close it with ]"),
        ("a: 1\nb: \0\n", "cluster.yaml:2: a control character stands in the file, which YAML does not allow"),
    ],
)
def test_a_fault_is_said_with_its_line_and_key(text: str, where: str) -> None:
    assert refusal(text).startswith(where)


def test_quoted_keys_may_look_like_yamls_own() -> None:
    assert read('"<<": a\n') == {"<<": "a"}


# A key, a value of a wrong type, and what is said of it.
WORDS: list[tuple[dict[str, Any], str]] = [
    ({"api": {"port": "443"}}, 'api.port: must be a whole number, not the text "443"; remove the quotes'),
    ({"api": {"port": " 443 "}}, 'api.port: must be a whole number, not the text " 443 "; remove the quotes'),
    ({"api": {"port": "44x"}}, 'api.port: must be a whole number, not the text "44x"; write digits only'),
    ({"api": {"port": True}}, "api.port: must be a whole number, not true; write digits only"),
    ({"api": {"port": []}}, "api.port: must be a whole number, not a list; write digits only"),
    ({"api": {"public": "yes"}}, 'api.public: must be true or false, not the text "yes"; write true'),
    ({"api": {"public": "ON"}}, 'api.public: must be true or false, not the text "ON"; write true'),
    ({"api": {"public": "no"}}, 'api.public: must be true or false, not the text "no"; write false'),
    ({"api": {"public": "off"}}, 'api.public: must be true or false, not the text "off"; write false'),
    ({"api": {"public": 1}}, "api.public: must be true or false, not the number 1"),
    ({"api": {"public": "maybe"}}, 'api.public: must be true or false, not the text "maybe"'),
    ({"tags": {"a": 7}}, "tags.a: must be text, not the number 7; put it in quotes"),
    ({"tags": {"a": False}}, "tags.a: must be text, not false; put it in quotes"),
    ({"tags": {"a": [1]}}, "tags.a: must be text, not a list"),
    ({"tags": {"a": {"b": "c"}}}, "tags.a: must be text, not a mapping of keys"),
    ({"tags": "a"}, 'tags: must be keys with values, not the text "a"'),
    ({"api": [1]}, "api: must be keys with values, not a list"),
    (
        {"api": {"allowedCidrs": "10.0.0.0/8"}},
        (
            'api.allowedCidrs: must be a list, not the text "10.0.0.0/8"; write each item on a line of its own that '
            "begins with -"
        ),
    ),
    (
        {"network": {"plugin": "Cilum"}},
        (
            "network.plugin: must be one of vpc-routes, cilium, calico, flannel, amazon-vpc, none, not the text "
            '"Cilum"; did you mean cilium?'
        ),
    ),
    ({"controlPlane": {"count": 4}}, "controlPlane.count: must be one of 1, 3, 5, not the number 4"),
    ({"network": {"subnets": []}}, "network.subnets: must hold at least 1 item, not 0"),
    ({"network": {"vpc": {"name": ""}}}, "network.vpc.name: must have at least 1 character, not 0"),
    ({"network": {"vpc": {"name": "v" * 256}}}, "network.vpc.name: must have at most 255 characters, not 256"),
    ({"nodeGroups": [{"zones": []}]}, "nodeGroups[0].zones: must hold at least 1 item, not 0"),
    ({"api": {"elasticIp": {"address": "52.1.2.3"}}}, "api.elasticIp.allocationId: is missing; give it a value"),
    ({"api": {"Port": 1}}, "api.Port: there is no such key; did you mean port?"),
    ({"api": {"allowed-cidrs": []}}, "api.allowed-cidrs: there is no such key; did you mean allowedCidrs?"),
    ({"sessionManager": True}, "sessionManager: there is no such key here; it belongs under ssh"),
    ({"ssh": {"assets": {}}}, "ssh.assets: there is no such key here; it belongs under the top level"),
    ({"assets": {"zzz": 1}}, "assets.zzz: there is no such key; the keys here are mirror"),
]


@pytest.mark.parametrize(("configuration", "said"), WORDS, ids=[said.partition(":")[0] for _, said in WORDS])
def test_how_a_wrong_type_is_worded(configuration: dict[str, Any], said: str) -> None:
    assert refusals(configuration) == [said]


def test_the_longest_name_of_a_vpc() -> None:
    assert parse({"network": {"vpc": {"name": "v" * 255}}}).network.vpc.name == "v" * 255


# "Instance type naming conventions" and the tables of families, EC2 Instance Types: vCPU and memory of each size.
@pytest.mark.parametrize("family", ["t2", "t3", "t3a", "t4g", "t8i"])
def test_burstable_mediums_have_two_cpus(family: str) -> None:
    assert instance_types.why_unsuitable(f"{family}.medium", "node") is None
    assert "less than 2 GiB" in str(instance_types.why_unsuitable(f"{family}.micro", "node"))
    assert "less than 2 GiB" in str(instance_types.why_unsuitable(f"{family}.nano", "node"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("c1.xlarge", "starts paravirtual images only"),
        ("m1.large", "starts paravirtual images only"),
        ("m2.xlarge", "starts paravirtual images only"),
        ("t1.large", "starts paravirtual images only"),
        ("c1.medium", "has less than 2 GiB of memory"),
        ("m1.small", "has one vCPU"),
        ("t2.small", "(kube-up's type for nodes of larger clusters) has one vCPU"),
        ("m3.medium", "(kube-up's type for masters) has one vCPU"),
        ("t2.micro", "(kube-up's type for nodes) has less than 2 GiB of memory"),
        ("mac2-m2.metal", "is a Mac, which runs no Linux"),
    ],
)
def test_why_a_type_is_too_small_or_too_old(name: str, reason: str) -> None:
    assert str(instance_types.why_unsuitable(name, "node")).startswith(f"{name} {reason}")


@pytest.mark.parametrize("name", ["c3.large", "m3.large", "t2.large", "m4.large", "m5.metal", "x1.32xlarge"])
def test_what_is_neither(name: str) -> None:
    assert instance_types.why_unsuitable(name, "node") is None


@pytest.mark.parametrize(
    ("name", "architecture"),
    [("p6e-gb200.36xlarge", "arm64"), ("a1.large", "arm64"), ("a10.large", "amd64"), ("g4dn.xlarge", "amd64")],
)
def test_the_processor_of_a_family(name: str, architecture: str) -> None:
    assert instance_types.architecture(name) == architecture


def test_types_that_may_have_been_meant_are_fit_and_of_the_same_processor() -> None:
    assert instance_types.similar("m5.lagre", "us-west-2")[0] == "m5.large"
    assert instance_types.similar("m7g.lagre", "us-west-2")[0] == "m7g.large"
    assert all(
        instance_types.architecture(name) == "arm64" for name in instance_types.similar("m7g.lagre", "us-west-2")
    )
    assert all(
        instance_types.why_unsuitable(name, "node") is None for name in instance_types.similar("t3.medum", "us-west-2")
    )
    assert instance_types.similar("zzzzzzzzzzzz.qqqqqqqq", "us-west-2") == []
    assert instance_types.similar("m5.large", "mars-north-1") == []


def test_a_file_of_defaults_is_what_no_file_is() -> None:
    Path("cluster.yaml").write_text("name: kubernetes\n")
    assert load(Path("cluster.yaml"), environ={}).cluster == load(None, environ={}).cluster

"""Where the value of each parameter comes from, and what is said when there is none or a wrong one."""

from __future__ import annotations

import pytest

from cfngen.cluster.load import parse
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.preflight.parameters.parameter_file import ParameterFile
from cfngen.deploy.preflight.parameters.parameter_values import (
    MissingParameterError,
    ParameterError,
    choose_values,
    left_out_parameters,
)
from cfngen.templates import generate

ROOT = {
    "Parameters": {
        "ApiAllowedCidr": {
            "Type": "String",
            "Description": "IPv4 address range that may reach the Kubernetes API server.",
            "AllowedPattern": r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$",
            "ConstraintDescription": "must be an IPv4 CIDR such as 203.0.113.7/32",
        },
        "MasterVolumeType": {"Type": "String", "AllowedValues": ["gp3", "gp2"], "Default": "gp3"},
        "MaxSize": {"Type": "Number", "MinValue": 0, "MaxValue": 5000, "Default": 4},
    }
}
SECRET = {"Parameters": {"Token": {"Type": "String", "NoEcho": True, "MinLength": 8, "Default": "first-secret"}}}
CIDR = "203.0.113.7/32"


def stack(**parameters):
    return StackView("kubernetes", "arn:…", StackStatus("CREATE_COMPLETE"), parameters=parameters)


def entries(found):
    return {
        entry["ParameterKey"]: "kept" if entry.get("UsePreviousValue") else entry["ParameterValue"]
        for entry in found.request_parameters
    }


def test_a_flag_is_stronger_than_the_file_and_the_file_than_the_default():
    file = ParameterFile("p.yaml", {"ApiAllowedCidr": "10.0.0.0/8", "MaxSize": "6"})
    values = choose_values(ROOT, option_values={"ApiAllowedCidr": CIDR}, file=file)
    assert entries(values) == {"ApiAllowedCidr": CIDR, "MasterVolumeType": "gp3", "MaxSize": "6"}
    assert values.values == entries(values)


def test_defaults_are_passed_on_an_update_too():
    values = choose_values(ROOT, deployed_stack=stack(ApiAllowedCidr=CIDR, MaxSize="4", MasterVolumeType="gp2"))
    assert entries(values)["MasterVolumeType"] == "gp3"


def test_without_default_the_value_of_the_stack_stays():
    values = choose_values(ROOT, deployed_stack=stack(ApiAllowedCidr=CIDR))
    assert entries(values)["ApiAllowedCidr"] == "kept"
    assert values.values["ApiAllowedCidr"] == CIDR


def test_the_order_is_the_templates():
    values = choose_values(ROOT, option_values={"MaxSize": "1", "ApiAllowedCidr": CIDR})
    assert [entry["ParameterKey"] for entry in values.request_parameters] == list(ROOT["Parameters"])


def test_everything_missing_is_listed_with_its_description():
    root = {"Parameters": {**ROOT["Parameters"], "RouteTableId": {"Type": "String"}}}
    with pytest.raises(MissingParameterError) as refused:
        choose_values(root)
    assert refused.value.names == ("ApiAllowedCidr", "RouteTableId")
    assert str(refused.value).splitlines()[0] == (
        "ApiAllowedCidr has no value: IPv4 address range that may reach the Kubernetes API server "
        "(must be an IPv4 CIDR such as 203.0.113.7/32)"
    )
    assert refused.value.hint == "set a value for each: --parameter ApiAllowedCidr=… --parameter RouteTableId=…"


def test_a_value_of_the_stack_is_kept_if_the_user_asks():
    values = choose_values(ROOT, kept_parameters=["MaxSize"], deployed_stack=stack(ApiAllowedCidr=CIDR, MaxSize="9"))
    assert entries(values)["MaxSize"] == "kept"
    assert values.values["MaxSize"] == "9"
    assert values.notices == ()


def test_a_file_can_ask_to_keep_and_a_flag_overrules_it():
    file = ParameterFile("p.yaml", kept_parameters=frozenset({"MaxSize"}))
    before = stack(ApiAllowedCidr=CIDR, MaxSize="9")
    assert entries(choose_values(ROOT, file=file, deployed_stack=before))["MaxSize"] == "kept"
    assert (
        entries(choose_values(ROOT, file=file, option_values={"MaxSize": "5"}, deployed_stack=before))["MaxSize"] == "5"
    )


def test_there_is_nothing_to_keep_in_a_stack_to_be_created():
    with pytest.raises(ParameterError, match="--keep MaxSize: the stack has no value to keep"):
        choose_values(ROOT, option_values={"ApiAllowedCidr": CIDR}, kept_parameters=["MaxSize"])


def test_what_an_operator_changed_in_the_console_is_not_changed_back_in_silence():
    before = stack(ApiAllowedCidr=CIDR, MaxSize="9", MasterVolumeType="gp3")
    (notice,) = choose_values(ROOT, deployed_stack=before, deployed_root_template=ROOT).notices
    assert notice.text == "MaxSize was changed to 9 in the stack and is reset to 4 from the cluster file"
    assert notice.hint == "--keep MaxSize keeps 9; to keep it in later deployments too, change the cluster file."


def test_a_change_of_the_cluster_file_is_no_surprise():
    before = {"Parameters": {**ROOT["Parameters"], "MaxSize": {"Type": "Number", "Default": 3}}}
    values = choose_values(ROOT, deployed_stack=stack(ApiAllowedCidr=CIDR, MaxSize="3"), deployed_root_template=before)
    assert entries(values)["MaxSize"] == "4"
    assert values.notices == ()


@pytest.mark.parametrize("given", [{"option_values": {"MaxSize": "5"}}, {"file": ParameterFile("p", {"MaxSize": "5"})}])
def test_what_the_user_gives_now_is_no_surprise(given):
    before = stack(ApiAllowedCidr=CIDR, MaxSize="9")
    assert choose_values(ROOT, deployed_stack=before, deployed_root_template=ROOT, **given).notices == ()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("ApiAllowedCidr", "everywhere", "'everywhere' must be an IPv4 CIDR such as 203.0.113.7/32"),
        ("ApiAllowedCidr", "999.1.1.1/77", "'999.1.1.1/77' must be an IPv4 CIDR such as 203.0.113.7/32 (octet 999"),
        ("ApiAllowedCidr", "10.1.1.1/77", "'10.1.1.1/77' must be an IPv4 CIDR such as 203.0.113.7/32 ('77' is not"),
        ("MasterVolumeType", "io2", "'io2' is not one of gp3, gp2"),
        ("MaxSize", "many", "'many' is not a number"),
        ("MaxSize", "-1", "'-1' must be at least 0"),
        ("MaxSize", "5001", "'5001' must be at most 5000"),
    ],
)
def test_values_that_the_template_does_not_allow_are_refused(name, value, problem):
    with pytest.raises(ParameterError) as refused:
        choose_values(ROOT, option_values={"ApiAllowedCidr": CIDR, name: value})
    assert refused.value.problems[0].startswith(f"--parameter {name}: {problem}")
    option_values = {} if name == "ApiAllowedCidr" else {"ApiAllowedCidr": CIDR}
    with pytest.raises(ParameterError, match=rf"^p\.yaml: {name}: "):
        choose_values(ROOT, option_values=option_values, file=ParameterFile("p.yaml", {name: value}))


@pytest.mark.parametrize(
    ("definition", "value", "allowed"),
    [
        ({"Type": "CommaDelimitedList", "AllowedPattern": "a|b"}, "a, b,a", True),
        ({"Type": "CommaDelimitedList", "AllowedPattern": "a|b"}, "a,c", False),
        ({"Type": "List<Number>", "MaxValue": "5"}, "1,5", True),
        ({"Type": "List<Number>", "MaxValue": "5"}, "1,6", False),
        ({"Type": "String", "MaxLength": 3}, "abcd", False),
        ({"Type": "String", "MinLength": "3"}, "abc", True),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, "abc1", False),
        # Java's possessive quantifiers and classes are unknown to some Pythons: CloudFormation decides.
        ({"Type": "String", "AllowedPattern": r"\p{Alpha}+"}, "abc", True),
        ({"Type": "String", "AllowedValues": [1, 2]}, "2", True),
        ({"Type": "Number"}, "1.5", True),
    ],
)
def test_rules_are_those_of_cloudformation(definition, value, allowed):
    root = {"Parameters": {"Key": definition}}
    if allowed:
        assert choose_values(root, option_values={"Key": value}).values == {"Key": value}
    else:
        with pytest.raises(ParameterError):
            choose_values(root, option_values={"Key": value})


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("MaxSizes", "did you mean MaxSize?"),
        ("maxsize", "did you mean MaxSize?"),
        ("Completely", "there are ApiAllowedCidr, MasterVolumeType, MaxSize"),
        ("TemplateBucket", "cfngen uploads the templates itself; remove it (--bucket chooses the bucket)"),
    ],
)
def test_unknown_parameters_are_refused_with_the_nearest(name, advice):
    with pytest.raises(ParameterError) as refused:
        choose_values(ROOT, option_values={"ApiAllowedCidr": CIDR, name: "1"})
    assert refused.value.problems == (f"--parameter {name}: there is no such parameter; {advice}",)
    with pytest.raises(ParameterError, match=rf"^p\.yaml: {name}: there is no such"):
        choose_values(ROOT, option_values={"ApiAllowedCidr": CIDR}, file=ParameterFile("p.yaml", {name: "1"}))


@pytest.mark.parametrize("source", ["flags", "file", "keep"])
def test_a_parameter_that_the_cluster_file_answers_for_good_says_so(source):
    answered = {"Parameters": {"MaxSize": ROOT["Parameters"]["MaxSize"]}}
    how = {
        "flags": {"option_values": {"ApiAllowedCidr": CIDR}},
        "file": {"file": ParameterFile("p.yaml", {"ApiAllowedCidr": CIDR})},
        "keep": {"kept_parameters": ["ApiAllowedCidr"]},
    }[source]
    left_out = left_out_parameters(parse({"api": {"allowedCidrs": [CIDR]}}))
    with pytest.raises(ParameterError) as refused:
        choose_values(answered, left_out=left_out, **how)
    [problem] = refused.value.problems
    assert "ApiAllowedCidr: `api.allowedCidrs` in the cluster file sets it" in problem


EXISTING_GROUPS = {
    "network": {
        "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
        "routeTable": "rtb-0123456789abcdef0",
        "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/24"}],
        "securityGroups": {"masters": "sg-0123456789abcdef0", "nodes": "sg-0123456789abcdef1"},
    }
}
PREFIX_LISTS = {"api": {"allowedPrefixLists": [{"id": "pl-0123456789abcdef0", "maxEntries": 5}]}}
MIXED = {"nodeGroups": [{"name": "mixed", "instanceTypes": ["m7i.large", "m6i.large"]}]}


@pytest.mark.parametrize(
    ("file", "name", "reason"),
    [
        ({"api": {"allowedCidrs": [CIDR]}}, "ApiAllowedCidr", "`api.allowedCidrs` in the cluster file sets it"),
        (PREFIX_LISTS, "ApiAllowedCidr", "`api.allowedPrefixLists` in the cluster file says who may reach the API"),
        (
            EXISTING_GROUPS,
            "ApiAllowedCidr",
            (
                "the rules of your own security group (network.securityGroups.masters) say who may reach the API, and "
                "cfngen changes none of them"
            ),
        ),
        (
            MIXED,
            "NodeGroupMixedInstanceType",
            "`nodeGroups[0].instanceTypes` in the cluster file says which types the group has",
        ),
    ],
)
def test_a_parameter_that_the_templates_leave_out_is_refused_with_the_reason(file, name, reason):
    cluster = parse(file)
    root = {document.name: document for document in generate(cluster)}["cluster"].body
    assert name not in root["Parameters"]
    with pytest.raises(ParameterError) as refused:
        choose_values(root, option_values={name: CIDR}, left_out=left_out_parameters(cluster))
    advice = "remove the parameter, or change the cluster file"
    assert f"--parameter {name}: {reason}; {advice}" in refused.value.problems


def test_no_parameter_that_the_templates_have_is_said_to_be_left_out():
    for file in ({}, MIXED, EXISTING_GROUPS):
        cluster = parse(file)
        root = {document.name: document for document in generate(cluster)}["cluster"].body
        assert not root["Parameters"].keys() & left_out_parameters(cluster).keys()


def test_where_a_value_comes_from_is_kept():
    file = ParameterFile("p.yaml", {"MasterVolumeType": "gp2"})
    values = choose_values(ROOT, option_values={"ApiAllowedCidr": CIDR, "MaxSize": "4"}, file=file)
    # 4 is the default, so the cluster file has the same value.
    assert values.sources == {
        "ApiAllowedCidr": "--parameter ApiAllowedCidr",
        "MasterVolumeType": "p.yaml: MasterVolumeType",
    }


def test_everything_wrong_is_said_at_once():
    with pytest.raises(ParameterError) as refused:
        choose_values(ROOT, option_values={"MaxSize": "x", "Other": "1"}, kept_parameters=["Third"])
    assert len(refused.value.problems) == 4


def test_secrets_are_never_shown():
    values = choose_values(SECRET, option_values={"Token": "second-secret"})
    assert entries(values) == {"Token": "second-secret"}
    with pytest.raises(ParameterError) as refused:
        choose_values(SECRET, option_values={"Token": "short"})
    assert "short" not in str(refused.value)


def test_a_secret_of_the_stack_is_kept_rather_than_reset_to_its_default():
    values = choose_values(SECRET, deployed_stack=stack(Token="****"), deployed_root_template=SECRET)
    assert entries(values) == {"Token": "kept"}
    assert values.values == {}
    assert values.notices == ()


def test_a_pattern_that_is_described_is_not_shown():
    with pytest.raises(ParameterError) as refused:
        choose_values(ROOT, option_values={"ApiAllowedCidr": "everywhere"})
    assert str(refused.value).endswith("must be an IPv4 CIDR such as 203.0.113.7/32")


@pytest.mark.parametrize(("value", "count"), [("0.0.0.0/0", 1), ("203.0.113.0/24", 0), ("203.0.113.7/24", 0)])
def test_an_api_that_is_open_to_everybody_is_told(value, count):
    for choice in (
        {"option_values": {"ApiAllowedCidr": value}},
        {"file": ParameterFile("p.yaml", {"ApiAllowedCidr": value})},
    ):
        notices = choose_values(ROOT, **choice).notices
        assert ["the Kubernetes API is open to everybody" in notice.text for notice in notices] == [True] * count
    kept = choose_values(ROOT, deployed_stack=stack(ApiAllowedCidr=value)).notices
    assert ["the Kubernetes API is open to everybody" in each.text for each in kept] == [True] * count
    # What the cluster file says, its own check has told.
    definition = {"Parameters": {"ApiAllowedCidr": {"Type": "String", "Default": value}}}
    assert choose_values(definition).notices == ()


def test_of_several_values_in_the_stack_those_that_somebody_has_set_are_told():
    names = ("Given", "New", "Same", "Hidden", "File", "Set", "Later")
    definitions = {name: {"Type": "String", "Default": "new"} for name in names}
    definitions["Hidden"]["NoEcho"] = "true"
    before = {"Parameters": {"File": {"Default": "old"}, "Set": {"Default": "was"}, "Later": {}}}
    there = stack(Given="a", Same="new", Hidden="****", File="old", Set="byhand", Later="x")
    values = choose_values(
        {"Parameters": definitions}, option_values={"Given": "b"}, deployed_stack=there, deployed_root_template=before
    )
    assert [notice.text.partition(" was ")[0] for notice in values.notices] == ["Set", "Later"]
    # Without the template that the stack has now, every difference is told.
    values = choose_values({"Parameters": definitions}, option_values={"Given": "b"}, deployed_stack=there)
    assert [notice.text.partition(" was ")[0] for notice in values.notices] == ["File", "Set", "Later"]


def test_several_unknown_names_are_each_told():
    keep = ["TemplateBucket", "Odd", "MaxSizes", "maxsize"]
    with pytest.raises(ParameterError) as refused:
        choose_values(ROOT, option_values={"ApiAllowedCidr": CIDR}, kept_parameters=keep)
    assert [problem.partition(":")[0] for problem in refused.value.problems] == [
        f"--keep {name}" for name in sorted(keep)
    ]
    with pytest.raises(ParameterError, match="the template has none"):
        choose_values({}, option_values={"Odd": "1"})
    with pytest.raises(ParameterError) as refused:
        choose_values(
            {"Parameters": {"Max": {"Type": "String", "Default": "a"}}},
            option_values={"ApiAllowedCidr": "x", "Odd": "1"},
        )
    assert len(refused.value.problems) == 2


def test_the_least_and_the_greatest_value_and_length_are_allowed():
    number = {"Type": "Number", "MinValue": 1, "MaxValue": "5"}
    text = {"Type": "String", "MinLength": "2", "MaxLength": 3}
    for definition, values in ((number, ("1", "5", "1.5e0", "+2", "5.", ".9e1")), (text, ("ab", "abc"))):
        for value in values:
            if value == ".9e1":
                with pytest.raises(ParameterError, match="must be at most 5"):
                    choose_values({"Parameters": {"Key": definition}}, option_values={"Key": value})
                continue
            assert choose_values({"Parameters": {"Key": definition}}, option_values={"Key": value}).values == {
                "Key": value
            }
    for definition, value, words in (
        (number, "0.9", "must be at least 1"),
        (number, "5.1", "must be at most 5"),
        (number, "1e", "is not a number"),
        (number, "0x1", "is not a number"),
        (text, "a", "must have at least 2 characters"),
        (text, "abcd", "must have at most 3 characters"),
    ):
        with pytest.raises(ParameterError, match=words):
            choose_values({"Parameters": {"Key": definition}}, option_values={"Key": value})


@pytest.mark.parametrize(
    ("definition", "value", "problem"),
    [
        ({"Type": "List<String>", "AllowedValues": ["a", "b"]}, "a, c", "is not one of a, b"),
        ({"Type": "AWS::SSM::Parameter::Value<List<String>>", "AllowedPattern": "a|b"}, "a,c", "does not match a|b"),
        (
            {"Type": "AWS::SSM::Parameter::Value<CommaDelimitedList>", "MaxLength": 1},
            "a,bb",
            "must have at most 1 characters",
        ),
        ({"Type": "String", "AllowedValues": ["a"], "ConstraintDescription": "be a"}, "b", "be a (is not one of a)"),
        ({"Type": "String", "AllowedPattern": "a", "ConstraintDescription": "be a"}, "b", "be a"),
        ({"AllowedPattern": "a"}, "b", "does not match a"),
        ({"Type": "List<Number>"}, "1,x", "is not a number"),
    ],
)
def test_which_rule_is_broken(definition, value, problem):
    with pytest.raises(ParameterError) as refused:
        choose_values({"Parameters": {"Key": definition}}, option_values={"Key": value})
    assert refused.value.problems == (f"--parameter Key: {value!r} {problem}",)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("10.0.0.0/33", "'33' is not a valid netmask"),
        ("10.0.0/8", "expected 4 octets"),
        ("", "address cannot be empty"),
    ],
)
def test_a_range_of_addresses_must_be_one(value, problem):
    definition = {"Type": "String"}
    with pytest.raises(ParameterError) as refused:
        choose_values({"Parameters": {"VpcCidr": definition}}, option_values={"VpcCidr": value})
    assert problem in refused.value.problems[0]
    assert choose_values({"Parameters": {"Other": definition}}, option_values={"Other": value}).values == {
        "Other": value
    }
    described = {"Type": "String", "ConstraintDescription": "a range"}
    with pytest.raises(ParameterError, match=r"a range \("):
        choose_values({"Parameters": {"VpcCidr": described}}, option_values={"VpcCidr": value})


def test_what_is_kept_must_be_in_the_stack_be_it_asked_in_the_file_or_not():
    file = ParameterFile("p.yaml", kept_parameters=frozenset({"MaxSize"}))
    with pytest.raises(ParameterError, match="--keep MaxSize: the stack has no value to keep"):
        choose_values(ROOT, file=file, deployed_stack=stack(ApiAllowedCidr=CIDR))
    both = choose_values(
        ROOT,
        file=ParameterFile("p.yaml", {"MaxSize": "7"}),
        kept_parameters=["MaxSize"],
        deployed_stack=stack(ApiAllowedCidr=CIDR, MaxSize="9"),
    )
    assert entries(both)["MaxSize"] == "kept"


def test_what_is_missing_is_told_beside_what_is_wrong():
    with pytest.raises(ParameterError) as refused:
        choose_values(ROOT, option_values={"MaxSize": "x"})
    assert not isinstance(refused.value, MissingParameterError)
    assert [problem.partition(" ")[0] for problem in refused.value.problems] == ["--parameter", "ApiAllowedCidr"]
    root = {"Parameters": {"A": {"Description": "What."}, "B": {"ConstraintDescription": "must be"}, "C": {}}}
    with pytest.raises(MissingParameterError) as missing:
        choose_values(root)
    assert missing.value.problems == ("A has no value: What", "B has no value: must be", "C has no value: ")


def test_a_value_of_the_stack_that_is_kept_is_looked_at_too():
    with pytest.raises(ParameterError, match=r"^MaxSize, from the stack: '5001' must be at most 5000"):
        choose_values(ROOT, kept_parameters=["MaxSize"], deployed_stack=stack(ApiAllowedCidr=CIDR, MaxSize="5001"))
    broken = {"Parameters": {"MaxSize": {"Type": "Number", "MaxValue": 3, "Default": 4}}}
    with pytest.raises(ParameterError, match=r"^MaxSize, from its default: '4' must be at most 3"):
        choose_values(broken)

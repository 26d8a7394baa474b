"""What a rehearsal says about cfngen's assumptions about change sets, and the facts that are made of it."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployed import place
from rehearsing import Person
from test_report import REHEARSAL

from cfngen.cli.display.json_output import to_json_value
from cfngen.cli.render.rehearsal import fact_lines, result_lines
from cfngen.rehearse import assumptions
from cfngen.rehearse.assumptions import JudgedAssumption, judge_assumptions
from cfngen.rehearse.descriptions import _mask
from cfngen.rehearse.masking import Masks
from cfngen.rehearse.operations import DescribedChangeSet, NameNormalizer, Operation, OperationEvent
from cfngen.rehearse.report import Rehearsal, UnreadableReportError, markdown_page, propose_facts
from cfngen.sandbox.cloudformation import descriptions

ATTRIBUTE, LONG_VALUE = assumptions._ASSUMPTIONS
CUT_OFF = "(Truncated-Signature):<token-1>"


def changed(name: str, *causes: str, of: str = "AWS::EC2::VPC", **members: Any) -> dict[str, dict[str, Any]]:
    """One change of a resource, with a detail of each cause."""
    target = {"Attribute": "Properties", "Name": "Tags", "RequiresRecreation": "Never"}
    details = [
        {"Target": target, "Evaluation": "Dynamic", "ChangeSource": "ResourceAttribute", "CausingEntity": cause}
        for cause in causes
    ]
    change = {"Action": "Modify", "LogicalResourceId": name, "ResourceType": of, "Replacement": "False"}
    return {name: {**change, "Details": details, **members}}


def update(*events: str, status: str = "UPDATE_COMPLETE", **described: Mapping[str, Any]) -> Operation:
    """An update of a nested stack, whose events are `resource status`."""
    ended = (event.split() for event in events)
    return Operation(
        name="roll",
        status=status,
        events=tuple(OperationEvent(f"AStack/{name}", "", status, "", 0) for name, status in ended),
        change_sets=(DescribedChangeSet("AStack", **described),),
    )


A, B = changed("A"), changed("B", "A.Version")
LONG = {"Properties": {"Policies": "(1025 characters)"}}
SHORT = {"Properties": {"Name": "(1024 characters)", "Size": 3}}
TRUNCATED = {"Properties": {"Policies": CUT_OFF}}


@pytest.mark.parametrize(
    ("fact", "operation", "verdict"),
    [
        (ATTRIBUTE, update("B UPDATE_COMPLETE", with_values=A, without_values={**A, **B}), "confirmed"),
        (ATTRIBUTE, update("B UPDATE_COMPLETE", with_values={**A, **B}, without_values={**A, **B}), "refuted"),
        (ATTRIBUTE, update("A UPDATE_COMPLETE", with_values=A, without_values={**A, **B}), "refuted"),
        (ATTRIBUTE, update(status="planned", with_values=A, without_values={**A, **B}), "not seen"),
        (
            ATTRIBUTE,
            update(
                "B UPDATE_COMPLETE",
                with_values={**A, **changed("B", "Parameter")},
                without_values={**A, **changed("B", "Parameter", "A.Version")},
            ),
            "confirmed",
        ),
        (ATTRIBUTE, update(without_values={**A, **changed("B", "A")}), "not seen"),
        (ATTRIBUTE, update(without_values={**changed("A", Replacement="True"), **B}), "not seen"),
        (ATTRIBUTE, update(without_values={**changed("A", of="AWS::CloudFormation::Stack"), **B}), "not seen"),
        (LONG_VALUE, update(with_values=changed("A", BeforeContext=TRUNCATED, AfterContext=SHORT)), "confirmed"),
        (LONG_VALUE, update(with_values=changed("A", BeforeContext=TRUNCATED, AfterContext=LONG)), "refuted"),
        (LONG_VALUE, update(with_values=changed("A", AfterContext=SHORT)), "not seen"),
        (LONG_VALUE, update(with_values=changed("A", AfterContext=CUT_OFF)), "not seen"),
        (LONG_VALUE, update(), "not seen"),
    ],
)
def test_each_assumption_is_judged(fact: str, operation: Operation, verdict: str) -> None:
    [judged] = [each for each in judge_assumptions([operation]) if each.fact == fact]
    assert (judged.verdict, bool(judged.shown)) == (verdict, verdict != "not seen")


def test_one_case_refutes_what_others_confirm() -> None:
    confirming = update("B UPDATE_COMPLETE", with_values=A, without_values={**A, **B})
    refuting = dataclasses.replace(confirming, name="again", events=())
    judged = judge_assumptions([confirming, refuting, confirming])[0]
    assert (judged.verdict, judged.shown["case"]) == ("refuted", "again, AStack")


def test_the_limit_is_that_of_the_emulator() -> None:
    assert assumptions.MAX_SHOWN_LENGTH == descriptions.MAX_SHOWN_LENGTH


@pytest.mark.parametrize(
    ("context", "recorded"),
    [
        (
            json.dumps({"Properties": {"Arn": "arn:aws:iam::123456789012:role/a", "Policies": ["x" * 300], "Size": 3}}),
            {"Properties": {"Arn": "<arn-iam-1>", "Policies": "(304 characters)", "Size": 3}},
        ),
        (
            json.dumps({"Properties": {"A": [f"{'x' * 300} (Truncated-Signature):1"]}, "Metadata": {"B": "y" * 257}}),
            {
                "Properties": {"A": f'["{"x" * 300} (Truncated-Signature):1"]'},
                "Metadata": {"B": "(257 characters)"},
            },
        ),
        ('{"Metadata": {}}', {"Metadata": {}, "Properties": {}}),
        ("(Truncated-Signature):1", "(Truncated-Signature):1"),
        ('{"Properties": [', '{"Properties": ['),
        ("null", "null"),
        ("z" * 300, "(300 characters)"),
    ],
)
def test_definitions_are_recorded_masked_and_without_long_values(context: str, recorded: object) -> None:
    change = {"LogicalResourceId": "A", "AfterContext": context}
    masked = _mask(change, NameNormalizer(()), Masks())
    assert masked == {"LogicalResourceId": "A", "AfterContext": recorded}


def report_of(rehearsal: Rehearsal, directory: Path) -> Path:
    file = directory / "rehearsal.json"
    file.write_text(json.dumps(to_json_value(rehearsal)))
    return file


def test_a_report_becomes_facts_in_the_form_of_those_of_the_tests(tmp_path: Path) -> None:
    before, after = changed("A", AfterContext=LONG, PolicyAction="Delete", Replacement="True"), changed("A", "B.Arn")
    operation = update("A UPDATE_IN_PROGRESS", "A UPDATE_COMPLETE", with_values=before, without_values=after)
    before["A"]["Details"].append(
        {
            "Target": {"Attribute": "Metadata", "RequiresRecreation": "Never", "BeforeValue": "a", "AfterValue": "b"},
            "Evaluation": "Static",
            "ChangeSource": "DirectModification",
        }
    )
    rehearsal = dataclasses.replace(REHEARSAL, assumptions=judge_assumptions([operation]))
    proposed = propose_facts(report_of(rehearsal, tmp_path))
    assert yaml.safe_load("\n".join(fact_lines(proposed))) == [
        {
            "repository": "cfngen",
            "file": "cfngen rehearse 1.0 in us-west-2",
            "facts": [
                {
                    "fact": f"not so: {LONG_VALUE}",
                    "recorded": datetime.date(2026, 11, 22),
                    "case": "roll, AStack",
                    "values": {
                        "A": ["Modify True Delete", "Metadata Never Static DirectModification: a -> b"],
                    },
                    "plain": {"A": ["Modify", "Tags Never Dynamic ResourceAttribute B.Arn"]},
                    "events": {"A": "UPDATE_IN_PROGRESS UPDATE_COMPLETE"},
                }
            ],
        }
    ]
    assert f"- **not seen**: {ATTRIBUTE}\n- **refuted**: {LONG_VALUE}\n" in markdown_page(rehearsal)
    assert f"assumption refuted: {LONG_VALUE}" in " ".join(" ".join(result_lines(rehearsal)).split())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "rehearsal.json: the report cannot be read: No such file"),
        ("{", "no report in JSON"),
        ("[]", "no report in JSON"),
        ("{}", "no report in JSON"),
        ('{"assumptions": [{"fact": "x"}]}', "no report in JSON"),
    ],
)
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "rehearsal.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UnreadableReportError, match=said):
        propose_facts(file)


@pytest.mark.drill
@pytest.mark.parametrize(("mode", "verdict"), [(descriptions.AWS, "confirmed"), (descriptions.GENEROUS, "refuted")])
def test_a_rehearsal_records_what_it_judges(mode: str, verdict: str) -> None:
    with place() as where:
        where.world.cloud.answers.mode = mode
        rehearsal = Person(where.account).rehearse("program", "roll").rehearsal
    assert {judged.verdict for judged in rehearsal.assumptions} == {verdict}
    create, roll = (step.operations[0].operation for step in rehearsal.steps)
    assert create.change_sets[0].stack == ""
    assert {change_set.stack for change_set in create.change_sets} > {"MasterStack", "VpcStack"}
    assert create.change_sets[0].with_values["MasterStack"]["Action"] == "Add"
    [of_masters] = [each for each in roll.change_sets if each.stack == "MasterStack"]
    group = "MasterAAutoScalingGroup"
    assert group in of_masters.without_values
    assert (group in of_masters.with_values) == (mode == descriptions.GENEROUS)


def test_what_is_not_seen_is_no_fact(tmp_path: Path) -> None:
    rehearsal = dataclasses.replace(REHEARSAL, assumptions=(JudgedAssumption("x", "not seen"),))
    assert propose_facts(report_of(rehearsal, tmp_path)).facts == ()

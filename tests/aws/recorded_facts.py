"""Facts that the real AWS was recorded to answer, and the emulated account in which each is tried.

The facts are in `recorded_facts.yaml`, whose opening explains its keys.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from botocore.exceptions import ClientError
from small_stacks import TRUST, nested

from cfngen.sandbox.cloudformation import CloudFormation

FILE = Path(__file__).with_name("recorded_facts.yaml")
STACK, CHANGE_SET = "s", "c"
SECTIONS = ("Parameters", "Conditions", "Mappings", "Outputs")
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"]
SHAPES: dict[str, dict[str, Any]] = {
    # Any text can be its description, which changes in place; another name replaces it.
    "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}},
    # Another address range replaces it; its DNS settings change in place, and its attribute CidrBlock stays.
    "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
    # Its attribute LatestVersionNumber changes with its data, in place.
    "Template": {
        "Type": "AWS::EC2::LaunchTemplate",
        "Properties": {"LaunchTemplateData": {"InstanceType": "t3.small"}},
    },
    "Gateway": {"Type": "AWS::EC2::InternetGateway"},
    "Logs": {"Type": "AWS::Logs::LogGroup"},
    "Broken": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/4"}},
    "Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"},
}
RESULT = re.compile(r"<(\d+)\.([\w.]+)>")
Service = Callable[[str], Any]


@dataclass(frozen=True)
class Fact:
    """One fact; see the file for its keys.

    Attributes:
        name: what AWS does, in our words.
        source: repository, file and case.
        entry: the rest.
    """

    name: str
    source: str
    entry: Mapping[str, Any]

    @property
    def steps(self) -> list[dict[str, Any]]:
        return list(self.entry.get("do", ()))

    @property
    def expected(self) -> Mapping[str, Any]:
        return {key: self.entry[key] for key in COMPARED if key in self.entry}

    @property
    def difference(self) -> str:
        """How the emulator differs; empty where it does not."""
        return str(self.entry.get("emulator", {}).get("differs", ""))


@functools.cache
def facts() -> tuple[Fact, ...]:
    return tuple(
        Fact(entry["fact"], f"{part['repository']} {part['file']} {entry.get('case', '')}".rstrip(), entry)
        for part in yaml.load(FILE.read_text(), Loader=yaml.CSafeLoader)
        for entry in part["facts"]
    )


@dataclass
class Trial:
    """One fact tried in an empty account.

    Attributes:
        template: the template of the last `create`, `update` or `change`.
        results: what each step answered.
        refusal: how the last step was refused.
    """

    cloud: CloudFormation
    service: Service
    template: dict[str, Any] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    refusal: ClientError | None = None

    def run(self, fact: Fact) -> dict[str, Any]:
        """Do a fact's steps, and return what the fact speaks of, as the emulator says it."""
        for step in fact.steps:
            assert self.refusal is None, f"{self.refusal}: not the last step"
            ((name, arguments),) = step.items()
            try:
                self.results.append(self._do(name, copy.deepcopy(arguments or {})))
            except ClientError as error:
                if "refused" not in fact.entry:
                    raise
                self.refusal = error
        return {key: COMPARED[key](self, expected) for key, expected in fact.expected.items()}

    def _do(self, name: str, arguments: Any) -> Any:
        if name == "fail":
            self.cloud.fail(**arguments)
            return None
        if name == "parameter":
            self.cloud.parameter_store.update(arguments)
            return None
        is_waiting = arguments.pop("Wait", True)
        service, _, operation = name.rpartition(".")
        if not service:
            service = "cloudformation"
            operation, arguments = getattr(self, f"_{name}")(arguments)
        answer = getattr(self.service(service), operation)(**_with_results(arguments, self.results))
        if is_waiting:
            self._wait()
        return answer

    def _create(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "create_stack", self._submission(arguments)

    def _update(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "update_stack", self._submission(arguments)

    def _change(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "create_change_set", {"ChangeSetName": CHANGE_SET, **self._submission(arguments)}

    def _execute(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "execute_change_set", {"StackName": STACK, "ChangeSetName": CHANGE_SET, **arguments}

    def _delete(self, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return "delete_stack", {"StackName": STACK, **arguments}

    def _submission(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Arguments of a call with a template, which is that of the last call with the named parts changed."""
        options = arguments.pop("Options", {})
        values = arguments.pop("Values", {})
        given = [
            {"ParameterKey": key} | ({"UsePreviousValue": True} if value is None else {"ParameterValue": value})
            for key, value in values.items()
        ]
        sections = {name: arguments.pop(name) for name in SECTIONS if name in arguments}
        resources = {name: _resource(name, parts) for name, parts in arguments.items()}
        self.template = _merged(self.template, {"Resources": resources, **sections})
        is_given = {"TemplateBody", "TemplateURL", "UsePreviousTemplate"} & set(options)
        body = {} if is_given else {"TemplateBody": json.dumps(self.template)}
        return {"StackName": STACK, "Parameters": given, "Capabilities": CAPABILITIES, **body, **options}

    def _wait(self) -> None:
        """Let simulated time pass until nothing is in progress."""
        for _ in range(200):
            change_sets = [change_set for change_set in self.cloud.all_change_sets() if change_set.stack.name == STACK]
            if all(stack.finished for stack in self.cloud.stacks()) and not any(
                change_set.status.endswith(("_PENDING", "_IN_PROGRESS")) for change_set in change_sets
            ):
                return
            self.cloud.advance(30)


def _resource(name: str, parts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A resource from a shape with its properties, and the attributes beside it."""
    if parts is None:
        return None
    (shape, properties), *attributes = parts.items()
    if shape == "Nested":
        child = {"Resources": {key: _resource(key, each) for key, each in properties.pop("Resources").items()}}
        child |= {section: properties.pop(section) for section in SECTIONS if section in properties}
        if "Values" in properties:
            properties["Parameters"] = properties.pop("Values")
        base = nested(name, json.dumps(child))
    else:
        base = copy.deepcopy(SHAPES.get(shape) or {"Type": shape})
    merged = {**base.get("Properties", {}), **(properties or {})}
    return {**base, **({"Properties": merged} if merged else {}), **dict(attributes)}


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """A template with some members of its sections replaced, and without those that are null."""
    sections = {name: {**old.get(name, {}), **new.get(name, {})} for name in (*old, *new)}
    return {
        name: {key: each for key, each in members.items() if each is not None} for name, members in sections.items()
    }


def _with_results(value: Any, results: list[Any]) -> Any:
    """Arguments with `<0.KeyMetadata.KeyId>` replaced by that member of the first step's answer."""
    if isinstance(value, dict):
        return {key: _with_results(member, results) for key, member in value.items()}
    if isinstance(value, list):
        return [_with_results(member, results) for member in value]
    if isinstance(value, str):
        return RESULT.sub(lambda match: str(member(results[int(match[1])], match[2])), value)
    return value


def member(value: Any, path: str) -> Any:
    """What stands at a path such as `Stacks.0.StackStatus`; None if nothing does."""
    for key in path.split("."):
        if isinstance(value, list):
            value = value[int(key)] if int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _changes(trial: Trial, expected: Mapping[str, Any], *, with_values: bool) -> dict[str, list[str]]:
    answer = trial.service("cloudformation").describe_change_set(
        StackName=STACK, ChangeSetName=CHANGE_SET, IncludePropertyValues=with_values
    )
    changes = [change["ResourceChange"] for change in answer["Changes"]]
    return {
        change["LogicalResourceId"]: [
            " ".join(_head(change)),
            *sorted(_detail(detail, expected.get(change["LogicalResourceId"], ())) for detail in change["Details"]),
        ]
        for change in changes
    }


def _head(change: Mapping[str, Any]) -> Iterator[str]:
    yield change["Action"]
    # Of additions, AWS said in April 2025 that they replace something, with values; neither earlier nor later.
    if change["Action"] == "Modify" and change["Replacement"] != "False":
        yield change["Replacement"]
    if change.get("PolicyAction"):
        yield change["PolicyAction"]


def _detail(detail: Mapping[str, Any], expected: list[str]) -> str:
    """One detail as the file writes it; with the values where it names them."""
    target = detail["Target"]
    words = [
        target.get("Name") or target["Attribute"],
        target["RequiresRecreation"],
        detail["Evaluation"],
        detail["ChangeSource"],
        detail.get("CausingEntity", ""),
    ]
    short = " ".join(filter(None, words))
    full = f"{short}: {target.get('BeforeValue', '')} -> {target.get('AfterValue', '')}"
    return full if any(each.startswith(f"{short}: ") for each in expected) else short


def _events(trial: Trial, expected: Mapping[str, str]) -> dict[str, str]:
    pages = trial.service("cloudformation").get_paginator("describe_stack_events").paginate(StackName=_stack_id(trial))
    events = [event for page in pages for event in page["StackEvents"]][::-1]
    words: dict[str, list[str]] = {key: [] for key in expected}
    for event in events:
        name, status = event["LogicalResourceId"], event["ResourceStatus"]
        _add(words, "stack" if name == STACK else name, status)
        if status.endswith("_COMPLETE"):
            _add(words, f"physical {name}", event["PhysicalResourceId"])
            if name in expected.get("order", "").split():
                words.get("order", []).extend((name, status))
    return {key: " ".join(each) for key, each in words.items()}


def _add(words: dict[str, list[str]], key: str, word: str) -> None:
    """Add what is asked for, unless it repeats the last."""
    if key in words and words[key][-1:] != [word]:
        words[key].append(word)


def _stack_id(trial: Trial) -> str:
    return next(stack.id for stack in reversed(trial.cloud.stacks()) if stack.name == STACK)


def _reasons(trial: Trial, expected: Mapping[str, str]) -> dict[str, str]:
    """The expected words where an event says them; else what it says."""
    pages = trial.service("cloudformation").get_paginator("describe_stack_events").paginate(StackName=_stack_id(trial))
    events = [event for page in pages for event in page["StackEvents"]]
    answers = {}
    for key, words in expected.items():
        name, status = key.split()
        texts = [
            event.get("ResourceStatusReason", "")
            for event in events
            if event["ResourceStatus"] == status and event["LogicalResourceId"] == (STACK if name == "stack" else name)
        ]
        answers[key] = words if any(words in text for text in texts) else " | ".join(texts)
    return answers


def _refused(trial: Trial, expected: Mapping[str, Any]) -> dict[str, Any]:
    if trial.refusal is None:
        return {}
    response = trial.refusal.response
    text = response["Error"].get("Message", "")
    return {
        "code": response["Error"]["Code"],
        "status": response["ResponseMetadata"]["HTTPStatusCode"],
        **({"words": expected["words"] if expected["words"] in text else text} if "words" in expected else {}),
    }


def _members(answer: Any, expected: Mapping[str, Any]) -> dict[str, Any]:
    found = {path: member(answer, path) for path in expected}
    return {path: expected[path] if _says(found[path], expected[path]) else found[path] for path in expected}


def _says(value: Any, expected: Any) -> bool:
    """Whether a value is the expected one, or a text that contains the words between two ellipses."""
    is_part = isinstance(expected, str) and expected.startswith("…")
    return expected.strip("…") in str(value) if is_part else value == expected


def _described(trial: Trial, expected: Mapping[str, Any]) -> dict[str, Any]:
    answer = trial.service("cloudformation").describe_stacks(StackName=_stack_id(trial))["Stacks"][0]
    return _members(answer, expected)


def _change_set(trial: Trial, expected: Mapping[str, Any]) -> dict[str, Any]:
    describe = trial.service("cloudformation").describe_change_set
    return _members(describe(StackName=STACK, ChangeSetName=CHANGE_SET), expected)


COMPARED: dict[str, Callable[[Trial, Any], Any]] = {
    "values": functools.partial(_changes, with_values=True),
    "plain": functools.partial(_changes, with_values=False),
    "events": _events,
    "reasons": _reasons,
    "refused": _refused,
    "answer": lambda trial, expected: _members(trial.results[-1], expected),
    "stack": _described,
    "change_set": _change_set,
}

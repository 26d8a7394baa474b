"""The values of the root's parameters for one deployment, and where each comes from.

A flag is stronger than the file, the file than the template's default; `--keep` leaves a parameter at the value it has
in the stack. Defaults are passed explicitly: left out, CloudFormation would keep the value of the last deployment, and
a change of the cluster file would be lost. What has no default keeps its value.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.messages import Notice
from cfngen.deploy.parameters.parameter_file import ParameterFile
from cfngen.deploy.parameters.parameter_rules import broken_rule
from cfngen.deploy.publishing.publish import LOCATION
from cfngen.deploy.stacks import StackView
from cfngen.errors import CfngenError

MASK = "****"
API_CIDR = "ApiAllowedCidr"
"""The parameter that says from where the Kubernetes API can be reached."""
ANSWERED = {API_CIDR: "api.allowedCidrs"}
"""Parameters that a template has only where the cluster file leaves a key out, each with that key."""


class ParameterError(CfngenError):
    """Parameters are missing, unknown or not what the template allows.

    Attributes:
        problems: everything that is wrong, one sentence each.
    """

    def __init__(self, problems: Sequence[str], *, hint: str) -> None:
        super().__init__("\n".join(problems), hint=hint)
        self.problems = tuple(problems)


class MissingParameterError(ParameterError):
    """Parameters need a value and have none.

    Attributes:
        names: their names.
    """

    def __init__(self, problems: Sequence[str], names: Sequence[str], *, hint: str) -> None:
        super().__init__(problems, hint=hint)
        self.names = tuple(names)


@dataclass(frozen=True)
class Chosen:
    """The values of one deployment.

    Attributes:
        entries: `Parameters` of CreateChangeSet, in the template's order.
        values: the values as they will be; those with NoEcho that are kept are unknown and missing.
        notices: what an operator has changed in the stack and this deployment changes back.
    """

    entries: tuple[Mapping[str, Any], ...]
    values: Mapping[str, str]
    notices: tuple[Notice, ...] = ()


def chosen(
    root: Mapping[str, Any],
    *,
    flags: Mapping[str, str] | None = None,
    file: ParameterFile | None = None,
    keep: Collection[str] = (),
    previous: StackView | None = None,
    previous_root: Mapping[str, Any] | None = None,
) -> Chosen:
    """Return the value of every parameter of a root.

    Args:
        root: the template of the root, as uploaded.
        flags: values given on the command line.
        file: values given in a file.
        keep: parameters that keep the value they have in the stack.
        previous: the stack as it is; None if it is still to be created.
        previous_root: the template that the stack has now, whose defaults tell what an operator has changed.

    Raises:
        MissingParameterError: parameters without default are given no value.
        ParameterError: parameters are unknown, or values are not allowed.
    """
    definitions: Mapping[str, Mapping[str, Any]] = root.get("Parameters", {})
    flags, file = flags or {}, file or ParameterFile()
    stack = previous.parameters if previous else {}
    problems = [
        *_unknown(definitions, flags, "--parameter "),
        *_unknown(definitions, file.values.keys() | file.keep, f"{file.name}: "),
        *_unknown(definitions, keep, "--keep "),
        *(
            f"--keep {name}: the stack has no value to keep; give one with --parameter {name}=…"
            for name in sorted((set(keep) | file.keep) & definitions.keys() - stack.keys())
        ),
    ]
    values: dict[str, str] = {}
    kept_names: list[str] = []
    missing: list[str] = []
    for name, definition in definitions.items():
        is_secret = _hidden(definition)
        keeps_value = name in keep or (name in file.keep and name not in flags)
        if name in flags:
            values[name], source = flags[name], f"--parameter {name}"
        elif name in file.values and not keeps_value:
            values[name], source = file.values[name], f"{file.name}: {name}"
        elif name in stack and (keeps_value or "Default" not in definition or is_secret):
            # A secret is never reset to a default: nobody can see what it was.
            kept_names.append(name)
            values[name], source = stack[name], f"{name}, as it is in the stack"
        elif "Default" in definition:
            values[name], source = str(definition["Default"]), f"{name}, by its default"
        else:
            missing.append(name)
            continue
        if not (is_secret and name in kept_names) and (rule := broken_rule(name, definition, values[name])):
            problems.append(f"{source}: {MASK if is_secret else repr(values[name])} {rule}")
    if problems:
        problems += [_asked(name, definitions[name]) for name in missing]
        raise ParameterError(problems, hint="correct them and repeat; nothing was changed.")
    if missing:
        names = " ".join(f"--parameter {name}=…" for name in missing)
        texts = [_asked(name, definitions[name]) for name in missing]
        raise MissingParameterError(texts, missing, hint=f"give a value for each: {names}")
    return Chosen(
        entries=tuple(_entry(name, value, keeps_previous=name in kept_names) for name, value in values.items()),
        values={
            name: value for name, value in values.items() if not (name in kept_names and _hidden(definitions[name]))
        },
        notices=(
            *_open(values, {*flags, *file.values, *kept_names}),
            *_reverted(definitions, values, {*flags, *file.values, *kept_names}, stack, previous_root),
        ),
    )


def _entry(name: str, value: str, *, keeps_previous: bool) -> dict[str, Any]:
    return {"ParameterKey": name, **({"UsePreviousValue": True} if keeps_previous else {"ParameterValue": value})}


def _hidden(definition: Mapping[str, Any]) -> bool:
    return str(definition.get("NoEcho", "")).lower() == "true"


def _asked(name: str, definition: Mapping[str, Any]) -> str:
    """Say what a parameter without value wants."""
    description = str(definition.get("Description", "")).rstrip(".")
    rule = str(definition.get("ConstraintDescription", ""))
    return f"{name} has no value: " + (f"{description} ({rule})" if description and rule else description or rule)


def _unknown(definitions: Mapping[str, Any], names: Iterable[str], source: str) -> list[str]:
    problems = []
    for name in sorted(set(names) - definitions.keys()):
        if name in ANSWERED:
            advice_ = f"the cluster file's `{ANSWERED[name]}` answers it for good"
            problems.append(f"{source}{name}: {advice_}; leave it out, or change the file")
            continue
        if name in LOCATION:
            advice = "cfngen uploads the templates itself; leave it out (--bucket chooses the bucket)"
        elif matches := difflib.get_close_matches(name, definitions) or _spelled(name, definitions):
            advice = f"did you mean {matches[0]}?"
        else:
            advice = f"there are {', '.join(definitions)}" if definitions else "the template has none"
        problems.append(f"{source}{name}: there is no such parameter; {advice}")
    return problems


def _spelled(name: str, definitions: Iterable[str]) -> list[str]:
    return [definition for definition in definitions if definition.lower() == name.lower()]


def _open(values: Mapping[str, str], explicit: Collection[str]) -> list[Notice]:
    """Name what lets everybody in; of what the cluster file says, its own check has told."""
    if API_CIDR not in explicit or not values.get(API_CIDR, "").endswith("/0"):
        return []
    return [
        Notice(
            f"everybody may try the Kubernetes API: {API_CIDR} is {values[API_CIDR]}",
            f"name your own address range with --parameter {API_CIDR}=…, e.g. 203.0.113.7/32.",
        )
    ]


def _reverted(
    definitions: Mapping[str, Mapping[str, Any]],
    values: Mapping[str, str],
    explicit: Collection[str],
    stack: Mapping[str, str],
    previous_root: Mapping[str, Any] | None,
) -> list[Notice]:
    """Name what somebody has set on the stack, and this deployment, which goes by the cluster file, sets back."""
    previous_definitions = (previous_root or {}).get("Parameters", {})
    notices = []
    for name, value in values.items():
        if name in explicit or name not in stack or stack[name] == value or _hidden(definitions[name]):
            continue
        default = previous_definitions.get(name, {}).get("Default")
        # Without the template of the last deployment, a changed cluster file and a changed stack look the same.
        if default is not None and str(default) == stack[name]:
            continue
        notices.append(
            Notice(
                f"{name} was set to {stack[name]} in the stack and becomes {value} again, as the cluster file has it",
                f"--keep {name} leaves it at {stack[name]}; to have it so for good, change the cluster file.",
            )
        )
    return notices

"""Commands of the AWS CLI: whether there is such a one, by the models that botocore brings; and some carried out.

The CLI names operations and parameters as the API does, in lower case with hyphens. What it adds is listed here, from
its reference, https://docs.aws.amazon.com/cli/latest/reference/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jmespath
from botocore import xform_name
from botocore.exceptions import UnknownServiceError
from botocore.session import Session

GLOBAL = {"region": True, "profile": True, "output": True, "query": True, "no-cli-pager": False}
# Commands of the CLI's own: its options, and whether each takes a value.
OWN: Mapping[tuple[str, str], Mapping[str, bool]] = {
    ("s3", "cp"): {"recursive": False, "exclude": True, "include": True},
    ("s3", "rm"): {"recursive": False},
    ("s3", "rb"): {"force": False},
    ("cloudformation", "deploy"): {
        "stack-name": True,
        "capabilities": True,
        "template-file": True,
        "s3-bucket": True,
        "parameter-overrides": True,
    },
}
# Options that the CLI adds to an operation: whether each takes a value, and which of the API's it stands for
# (its reference of these commands).
ADDED: Mapping[tuple[str, str], Mapping[str, bool]] = {
    ("ec2", "authorize-security-group-ingress"): {"protocol": True, "port": True, "cidr": True},
    ("ec2", "create-network-acl-entry"): {"ingress": False},
}
STANDS_FOR = {"ingress": "egress", "no-protected-from-scale-in": "protected-from-scale-in"}
# With at least one option: the words "aws import" in a line of Python are no command.
SUGGESTED = re.compile(r"\baws [a-z0-9]+ [a-z-]+(?: --[a-z-]+(?: (?:\{[^}]*\}|[^\s`'\"-][^\s`'\",;)]*))?)+")
_session = Session()


class WrongCommandError(Exception):
    """The AWS CLI has no such command, or needs more."""


def parsed(words: list[str]) -> tuple[str, str, dict[str, list[str]]]:
    """Return service, operation and options of a command.

    Raises:
        WrongCommandError: there is no such service, operation or option, or an option is missing that has to be there.
    """
    _, service, operation, *rest = words
    own = OWN.get((service, operation))
    shape = None if own is not None else _operation(service, operation).input_shape
    members = shape.members if shape else {}
    values = own or {_option(name): member.type_name != "boolean" for name, member in members.items()}
    negated = {f"no-{name}": False for name, takes_value in values.items() if not takes_value}
    values = {**values, **negated, **ADDED.get((service, operation), {})}
    options: dict[str, list[str]] = {}
    for word in rest:
        if word.startswith("--"):
            if word[2:] not in {**GLOBAL, **values}:
                raise WrongCommandError(f"aws {service} {operation} has no option {word}")
            options[last := word[2:]] = []
        elif options and {**GLOBAL, **values}[last]:
            options[last].append(word)
        elif own is None:
            raise WrongCommandError(f"aws {service} {operation} takes no {word!r}")
    missing = {_option(name) for name in (shape.required_members if shape else ())} - {
        STANDS_FOR.get(option, option) for option in options
    }
    if missing:
        raise WrongCommandError(f"aws {service} {operation} lacks {', '.join(sorted(missing))}")
    return service, operation, options


def call(words: list[str], client: Callable[[str], Any]) -> str:
    """Carry a command out, and return what it prints with `--output text`.

    Args:
        words: the command.
        client: makes a client of a service.
    """
    service, operation, options = parsed(words)
    model = _operation(service, operation)
    arguments = {
        name: _value(member.type_name, options[_option(name)])
        for name, member in model.input_shape.members.items()
        if _option(name) in options
    }
    answer = getattr(client(service), xform_name(operation.replace("-", "_")))(**arguments)
    return str(jmespath.search(" ".join(options["query"]), answer)) if "query" in options else ""


def in_text(text: str) -> Iterator[list[str]]:
    """Return the commands that a text of the program suggests, as words; a value that is filled in is one word."""
    # A command may be written as two literals, of which the second begins with an option's name.
    joined = re.sub(r'(\baws [a-z0-9]+ [a-z-]+ --[^"\n]*) "\n *f?"(?=--)', r"\1 ", text)
    for command in SUGGESTED.findall(joined):
        yield re.sub(r"\{[^}]*\}", "VALUE", command).split()


def _operation(service: str, operation: str) -> Any:
    try:
        model = _session.get_service_model({"s3api": "s3"}.get(service, service))
    except UnknownServiceError:
        raise WrongCommandError(f"there is no aws {service}") from None
    for name in model.operation_names:
        if _option(name) == operation:
            return model.operation_model(name)
    raise WrongCommandError(f"there is no aws {service} {operation}")


def _option(name: str) -> str:
    return str(xform_name(name, "-"))


def _value(type_name: str, words: list[str]) -> Any:
    """Return an option's value for the API: structures are JSON here, where the CLI takes a shorthand as well."""
    text = " ".join(words)
    if text.startswith("file://"):
        return Path(text.removeprefix("file://")).read_text("utf-8")
    if type_name in ("list", "structure") and text.startswith(("[", "{")):
        return json.loads(text)
    if type_name == "list":
        return words
    # A flag has no word.
    return int(text) if type_name == "integer" else text or True

"""Outputs of Terraform in a cluster file: `terraform:FILE#OUTPUT` becomes the value of the output.

The file holds what `terraform output -json` prints, and its path is relative to the cluster file. A value replaces its
reference before anything is derived or validated, so it counts as if it stood in the cluster file.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from cfngen.bounded_files import NestingError, parse_json, read_bytes
from cfngen.cluster.paths import Path as KeyPath
from cfngen.cluster.paths import is_free_form
from cfngen.cluster.sections.references import TERRAFORM_PATTERN

# The name of an output, and the items of lists and maps in it, in Terraform's own notation.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_ITEM = re.compile(r'\[(?P<index>[0-9]+)\]|\["(?P<quoted>[^"]+)"\]|\.(?P<key>[A-Za-z_][A-Za-z0-9_-]*)')
SUBNETS: KeyPath = ("network", "subnets")
"""The key that may be one reference to a map, by zone."""
# What Terraform says of each output, by its name.
_Outputs: TypeAlias = Mapping[str, Mapping[str, object]]


class TerraformOutputError(ValueError):
    """An output that a cluster file refers to cannot be used; the message says why."""


class TerraformOutputs:
    """The outputs in files of `terraform output -json`; each file is read once.

    Attributes:
        digests: SHA-256 of the bytes of each file that was read, by its path.
    """

    def __init__(self, directory: Path) -> None:
        self.digests: dict[Path, str] = {}
        self._directory = directory
        self._outputs_by_file: dict[str, _Outputs] = {}

    def replace(self, data: Mapping[str, object], problems: dict[KeyPath, str]) -> dict[str, object]:
        """Return the content of a cluster file with the values of outputs in place of references to them.

        Args:
            problems: gets the problem of each reference that cannot be replaced, by its path; the reference stays.
        """
        return {key: self._replaced(value, problems, (key,)) for key, value in data.items()}

    def _replaced(self, data: object, problems: dict[KeyPath, str], path: KeyPath) -> object:
        if is_free_form(path):
            return data
        if isinstance(data, Mapping):
            return {key: self._replaced(value, problems, (*path, key)) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self._replaced(item, problems, (*path, index)) for index, item in enumerate(data)]
        if not isinstance(data, str) or not re.fullmatch(TERRAFORM_PATTERN, data):
            return data
        try:
            return self._subnets(data) if path == SUBNETS else self.value(data)
        except TerraformOutputError as error:
            problems[path] = str(error)
            return data

    def value(self, reference: str) -> str | int | bool:
        """Return the value of an output, or of an item in it.

        Raises:
            TerraformOutputError: there is no such file, output or item, or it cannot be used in a cluster file.
        """
        value, reached, file = self._find(reference)
        if isinstance(value, (list, Mapping)):
            raise TerraformOutputError(
                f"{reached} in {file} is {_describe(value)}; {_item_advice(value, file, reached)}"
            )
        if not isinstance(value, (str, int, bool)):
            raise TerraformOutputError(f"{reached} in {file} has the value {json.dumps(value)}; it must be a text")
        return value

    def _subnets(self, reference: str) -> list[dict[str, object]]:
        """Return the subnets in a map by zone, in the order of the zones, as `network.subnets` has them."""
        value, reached, file = self._find(reference)
        if not isinstance(value, Mapping) or not all(isinstance(subnet, Mapping) for subnet in value.values()):
            raise TerraformOutputError(
                f"{reached} in {file} is {_describe(value)}; it must be a map of subnets by zone, such as "
                '{"us-west-2a": {"id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/24"}}'
            )
        return [{"zone": zone, **value[zone]} for zone in sorted(value)]

    def _find(self, reference: str) -> tuple[object, str, str]:
        """Return the value of an output or of an item in it, its name, and the file that it is in."""
        file, _, expression = reference.removeprefix("terraform:").partition("#")
        outputs = self._read(file)
        name_match = _NAME.match(expression)
        if name_match is None:
            raise TerraformOutputError(f"{expression!r} is not the name of an output such as vpc_id")
        name = name_match[0]
        if name not in outputs:
            raise TerraformOutputError(f"{file} has no output {name}; {_advise(name, outputs)}")
        output = outputs[name]
        if output.get("sensitive"):
            raise TerraformOutputError(
                f"the output {name} in {file} is sensitive, and values of a cluster file are readable in templates; "
                "enter the value of an output that is not"
            )
        value, rest = output["value"], expression[name_match.end() :]
        reached = name
        while rest:
            item_match = _ITEM.match(rest)
            if item_match is None:
                raise TerraformOutputError(
                    f'{rest!r} after {reached} is not an item such as [0] or ["us-west-2a"] of a list or map'
                )
            value = _item(value, item_match, reached, file)
            reached, rest = reached + item_match[0], rest[item_match.end() :]
        return value, reached, file

    def _read(self, file: str) -> _Outputs:
        if file not in self._outputs_by_file:
            self._outputs_by_file[file] = _parse(file, self._directory / file, self.digests)
        return self._outputs_by_file[file]


def _parse(file: str, path: Path, digests: dict[Path, str]) -> _Outputs:
    """Return the outputs in a file, by name; add its digest to `digests`.

    Raises:
        TerraformOutputError: the file cannot be read, or is not what `terraform output -json` prints.
    """
    advice = f"`terraform output -json > {file}` writes it"
    try:
        data = read_bytes(path)
        digests[path] = sha256(data).hexdigest()
        content = parse_json(data.decode("utf-8-sig"))
    except FileNotFoundError:
        raise TerraformOutputError(f"there is no file {file} beside the cluster file; {advice}") from None
    except OSError as error:
        raise TerraformOutputError(f"{file} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except NestingError as error:
        raise TerraformOutputError(f"{file}:{error.line}: {error}; {advice}") from None
    except ValueError as error:
        raise TerraformOutputError(f"{file} is not JSON ({error}); {advice}") from None
    is_state = isinstance(content, Mapping) and "terraform_version" in content
    if is_state or not (
        isinstance(content, Mapping)
        and all(isinstance(output, Mapping) and "value" in output for output in content.values())
    ):
        kind = "is a state file and not" if is_state else "does not hold"
        raise TerraformOutputError(f"{file} {kind} what `terraform output -json` prints; {advice}")
    return content


def _item(value: object, match: re.Match[str], reached: str, file: str) -> object:
    """Return the item of a list or map that a match of `_ITEM` selects; `reached` is the expression before it."""
    if match["index"] is not None:
        if isinstance(value, str) and "," in value:
            # A list that Terraform's `join` has made one text, as outputs for other tools often are.
            value = value.split(",")
        if not isinstance(value, list):
            raise TerraformOutputError(f"{reached} in {file} is {_describe(value)} and not a list")
        if int(match["index"]) >= len(value):
            raise TerraformOutputError(f"{reached} in {file} is {_describe(value)}, so it has no {match[0]}")
        return value[int(match["index"])]
    key = match["quoted"] or match["key"]
    if not isinstance(value, Mapping):
        raise TerraformOutputError(f"{reached} in {file} is {_describe(value)} and not a map")
    if key not in value:
        raise TerraformOutputError(f"{reached} in {file} has no {key}; {_advise(key, value)}")
    return value[key]


def _describe(value: object) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "a map" if isinstance(value, Mapping) else f"the value {json.dumps(value)}"


def _item_advice(value: list[object] | Mapping[str, object], file: str, reached: str) -> str:
    first = "0" if isinstance(value, list) else json.dumps(next(iter(value), "KEY"))
    return f"name one item, e.g. terraform:{file}#{reached}[{first}]"


def _advise(name: str, existing: Mapping[str, object]) -> str:
    matches = difflib.get_close_matches(name, existing, n=1)
    if matches:
        return f"did you mean {matches[0]}?"
    return f"it has {', '.join(existing)}" if existing else "it has none"

"""Reading templates from files, to lint or to draw them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cfngen.bounded_files import NestingError, check_nesting, read_text
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from cfngen.templates.document import Document


class TemplateFileError(CfngenError):
    """Files are not CloudFormation templates that can be read.

    Attributes:
        problems: all problems, each with its file and, if known, its line.
    """

    code = "invalid-template-file"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            "\n".join(problems),
            hint="a CloudFormation template is JSON or YAML with Resources; correct the file or leave it out.",
        )
        self.problems = tuple(problems)


@dataclass(frozen=True)
class TemplateFile:
    """A template and the text it was read from.

    Attributes:
        document: the template as plain data; its name is the path of the file, its module is empty.
        region: the first valid region in the template's cfn-lint Metadata; None without one.
    """

    document: Document
    text: str
    region: str | None


def read_template_files(files: Sequence[Path]) -> tuple[TemplateFile, ...]:
    """Read templates in JSON or YAML; a file that is named twice is read once.

    Raises:
        TemplateFileError: with the problems of all files.
    """
    templates: list[TemplateFile] = []
    problems: list[str] = []
    for file in dict.fromkeys(files):
        try:
            templates.append(_read_template(file))
        except TemplateFileError as error:
            problems += error.problems
    if problems:
        raise TemplateFileError(problems)
    return tuple(templates)


def _read_template(file: Path) -> TemplateFile:
    from cfnlint.decode import decode_str

    from cfngen.templates.document import Document

    try:
        text = read_text(file)
        check_nesting(text)
    except UnicodeDecodeError as error:
        raise TemplateFileError([f"{file}: is not UTF-8 text (byte {error.start})"]) from None
    except NestingError as error:
        raise TemplateFileError([f"{file}:{error.line}: {error}"]) from None
    except OSError as error:
        raise TemplateFileError([f"{file}: cannot be read: {(error.strerror or str(error)).lower()}"]) from error
    if not text.strip():
        raise TemplateFileError([f"{file}: is empty"])
    body, matches = decode_str(text)
    if matches:
        raise TemplateFileError([f"{file}:{match.linenumber}: {_parser_message(match.message)}" for match in matches])
    if not isinstance(body, dict):
        value_kind = "a list" if isinstance(body, list) else "a single value"
        raise TemplateFileError([f"{file}: holds {value_kind}; a CloudFormation template is keys and values"])
    if "Resources" not in body:
        raise TemplateFileError([f"{file}: is not a CloudFormation template: it has no Resources"])
    problems = [
        f"{file}:{line}: {description}; CloudFormation takes keys and values there"
        for line, description in _find_non_mappings(body)
    ]
    if problems:
        raise TemplateFileError(problems)
    # Convert cfn-lint's nodes, which carry line numbers, to plain data.
    document = Document(name=str(file), body=json.loads(json.dumps(body, default=str)), module="")
    return TemplateFile(document, text, _metadata_region(body))


def _parser_message(message: str) -> str:
    """Return a parser's message on one line, without `"<unicode string>"`, the parser's name for the text."""
    return " ".join(message.replace('in "<unicode string>", ', "").split())


def _find_non_mappings(body: Mapping[str, object]) -> Iterator[tuple[int, str]]:
    """Yield each value at which cfn-lint would crash because it is not a mapping: its line and a description."""
    yield from _check_mapping(body, "Resources", name="Resources")
    yield from _check_metadata(body, name="Metadata")
    resources = body["Resources"]
    if not isinstance(resources, dict):
        return
    for logical_id, resource in resources.items():
        # The value of a loop (Fn::ForEach::Name) is a list.
        if not str(logical_id).startswith("Fn::"):
            yield from _check_mapping(resources, logical_id, name=f"Resources.{logical_id}")
            yield from _check_metadata(resource, name=f"Resources.{logical_id}.Metadata")


def _check_metadata(mapping: object, *, name: str) -> Iterator[tuple[int, str]]:
    """Yield a problem if the Metadata of a template or resource, or the cfn-lint entry in it, is not a mapping.

    A problem is the number of its line and a description.

    Args:
        name: how a problem refers to the Metadata.
    """
    if isinstance(mapping, dict):
        yield from _check_mapping(mapping, "Metadata", name=name)
        yield from _check_mapping(mapping.get("Metadata"), "cfn-lint", name=f"{name}.cfn-lint")


def _check_mapping(mapping: object, key: str, *, name: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the description of a problem if the value of a key is not a mapping.

    Args:
        mapping: what may contain the key; anything but a mapping is accepted here.
        name: how the description refers to the value.
    """
    if isinstance(mapping, dict) and key in mapping and not isinstance(mapping[key], dict):
        yield _line_of_key(mapping, key), f"{name} is {_kind_of_value(mapping[key])}"


def _kind_of_value(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "a number"


def _line_of_key(mapping: Mapping[str, object], key: str) -> int:
    """Return the number of the line on which a key stands; 1 if it is not known."""
    for node in mapping:
        # The parser's nodes for keys know their place in the text, counted from 0.
        mark = getattr(node, "start_mark", None)
        if node == key and mark:
            return int(mark.line) + 1
    return 1


def _metadata_region(body: Mapping[str, object]) -> str | None:
    """Return the first valid region in the template's Metadata for cfn-lint; None without one."""
    from cfnlint.helpers import REGIONS

    value: object = body
    for key in ("Metadata", "cfn-lint", "config", "regions"):
        value = value.get(key) if isinstance(value, dict) else None
    regions = value if isinstance(value, list) else [value]
    return next((str(region) for region in regions if isinstance(region, str) and region in REGIONS), None)

"""Writes the pages configuration.md and kube-up.md of docs/reference from the models and the table of variables.

Run `make docs` after a change; a test fails while the pages are stale.
"""

from __future__ import annotations

import argparse
import json
import types
import typing
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cfngen.cluster import kube_up, names
from cfngen.cluster.field_validation import TextPattern
from cfngen.cluster.keys import fields, is_list, section_of
from cfngen.cluster.model import Cluster

_NOTICE = "<!-- Made by `python -m cfngen.cluster.reference docs`; change the models, not this page. -->"

_CONFIGURATION_PAGE_BEGINNING = f"""\
{_NOTICE}
# The cluster file

A cluster file is YAML with the keys below. None is required, and `name: kubernetes` alone is the whole default cluster.
`cfngen init` writes a file to start from, `cfngen config` shows every value in effect and where it came from,
`cfngen schema` prints a JSON Schema for editors.

## How it is read

- Later wins: default, cluster file, [kube-up's environment variables](kube-up.md), `--set KEY=VALUE`.
- `--set 'nodeGroups[0].maxSize=6'` sets one value, with the same meaning as in the file; `--set ssh.keyName=` takes the
  key back to its default. A key with a dot in it stands in double quotes: `--set 'tags."example.com/team"=blue'`.
- The YAML is that of version 1.2: only `true` and `false` are truth values (`yes` is text), `010` is text, and a number
  with a dot is text, so `kubernetesVersion: 1.30` means what it says. A key may stand once; merge keys (`<<`) and tags
  (`!Ref`) are not accepted. A key without a value counts as left out.
- An unknown key is an error. All errors are reported at once, each with file, line and key.

## What follows from other values

| Left out | is |
|---|---|
| `region` | the region of the first subnet's zone |
| `kubernetesVersion` without a patch | the newest patch of that minor in cfngen's catalogue |
| `network.vpc.name` | the cluster's name followed by `-vpc` |
| `network.subnets` | one subnet, in the first zone (`a`) of the region |
| `network.subnets[].zone` | the first zone of the region that has no subnet yet |
| `network.subnets[].cidr` | the next free /24 of a created VPC, or an equal share of one too small for that |
| `network.plugin` | `cilium` if private subnets are created in several zones, unless `network.nat` is `single` or \
`none`, or a key that only `vpc-routes` has is set; else `vpc-routes` |
| `network.nat` of a private cluster | `perZone`; `single` with `vpc-routes` |
| `network.dnsServiceIp` | the tenth address of `network.serviceCidr` |
| `controlPlane.addresses` | the ninth address of the first subnets (172.20.0.9) |
| `nodeGroups[].zones` | the zones of all subnets |
| `nodeGroups[].maxSize` | `minSize`, at least 1 |
| `nodeGroups[].minSize` | 4, or `maxSize` if that is less |
| `controlPlane.image`, `nodeGroups[].image`, `bastion.image` | `image`, field by field; but no AMI beside another \
distribution or AMI |
| `bastion.instanceType` | `t3.micro`, or `t4g.micro` if its image is for arm64 |
| `bastion.zone` | the first Availability Zone with a subnet, in a private cluster with a public one if any is listed |
| `…image.architecture` | that of the instance type |

"""

_NAME_LENGTHS_TABLE_HEAD = """\
## How long names may be

Names are made from the cluster's and the group's; the shortest limit holds.

| Name | Made as | Most characters | Source |
|---|---|---|---|
"""

_KUBE_UP_PAGE_BEGINNING = f"""\
{_NOTICE}
# kube-up's environment variables

Who has a script that set variables for `cluster/kube-up.sh` can keep it: cfngen reads the same environment, after the
cluster file and before `--set`. A variable of kube-up on AWS is one of three things here:

- **honoured**: it sets the keys shown, in every node group if the key is one of node groups;
- **accepted**: the values shown describe what cfngen does anyway, every other value is refused;
- **refused**: it means nothing any more, and the error says what replaced it.

An empty variable counts as unset. Where an old name is given too (the `MINION` spelling of Kubernetes 1.0 and 1.1), it
works as well; both with different values are an error. `--no-env` ignores all of them. Variables of the operator's
machine, such as `KUBECONFIG`, are not looked at.

"""


def configuration_page() -> str:
    """Return the text of docs/reference/configuration.md."""
    text = _CONFIGURATION_PAGE_BEGINNING
    for title, description, section in _sections():
        text += f"## {title}\n\n{description}\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n"
        text += "".join(_table_row(key, field) for key, field in fields(section).items()) + "\n"
    text += _NAME_LENGTHS_TABLE_HEAD
    for derived_name in (*names.CLUSTER_NAMES, *names.GROUP_NAMES):
        example = derived_name.pattern.format(cluster="NAME", group="GROUP", group_in_pascal_case="Group")
        # The characters that CloudFormation appends to the names of nested stacks.
        example = example.replace("X" * 13, "…")
        source = derived_name.text_limit.source
        text += f"| {derived_name.subject} | `{example}` | {derived_name.max_length} | <{source}> |\n"
    return text


def kube_up_page() -> str:
    """Return the text of docs/reference/kube-up.md."""
    text = _KUBE_UP_PAGE_BEGINNING
    for heading, variables in kube_up.SECTIONS.items():
        text += f"## {heading}\n\n| Variable | Fate | Here |\n|---|---|---|\n"
        for variable in variables:
            variable_names = ", ".join(f"`{name}`" for name in (variable.name, *variable.old_names))
            text += f"| {variable_names} | {variable.handling} | {_escape_cell(_describe_effect(variable))} |\n"
        text += "\n"
    return text.rstrip("\n") + "\n"


def reference_pages() -> dict[str, str]:
    """Return the text of each page of the reference documentation, by the name of its file in docs."""
    return {"configuration.md": configuration_page(), "kube-up.md": kube_up_page()}


def _describe_effect(variable: kube_up.Variable) -> str:
    """Return the keys that a variable sets, the values that it accepts, and its explanation, as sentences."""
    sentence = variable.explanation
    # Names of programs stay in lower case.
    if not sentence.startswith(("etcd", "kubeadm", "kubelet")):
        sentence = sentence[:1].upper() + sentence[1:]
    if sentence and not sentence.endswith("."):
        sentence += "."
    sentences = []
    if variable.keys:
        sentences.append("Sets " + ", ".join(f"`{key}`" for key in variable.keys) + ".")
    if variable.accepted_values and "*" not in variable.accepted_values:
        sentences.append("Accepted: " + ", ".join(f"`{value}`" for value in variable.accepted_values) + ".")
    if sentence:
        sentences.append(sentence)
    return " ".join(sentences)


def _sections() -> Iterator[tuple[str, str, type[BaseModel]]]:
    """Yield title, description and class of each section of the cluster file.

    The title lists all paths of the section, e.g. `controlPlane.volume`; the description is the first line of the
    class's docstring.
    """
    paths_by_section: dict[type[BaseModel], list[str]] = {}

    def visit(section: type[BaseModel], path: str) -> None:
        """Add the path of a section, and the paths of the sections in it."""
        paths_by_section.setdefault(section, []).append(path)
        for key, field in fields(section).items():
            inner_section = section_of(field.annotation)
            if inner_section:
                inner_path = f"{path}.{key}".lstrip(".")
                visit(inner_section, f"{inner_path}[]" if is_list(field) else inner_path)

    visit(Cluster, "")
    for section, paths in paths_by_section.items():
        title = ", ".join(f"`{path}`" for path in paths) if paths != [""] else "Top level"
        yield title, (section.__doc__ or "").strip().splitlines()[0], section


def _table_row(key: str, field: FieldInfo) -> str:
    """Return the line of a section's table for one key: the key, what its value is, its default and its meaning."""
    inner = section_of(field.annotation)
    if inner:
        value_type = "list of sections" if is_list(field) else "section"
    else:
        value_type = _describe_type(field.annotation, field.metadata)
    description = field.description or ""
    return f"| `{key}` | {_escape_cell(value_type)} | {_describe_default(field)} | {_escape_cell(description)} |\n"


def _describe_default(field: FieldInfo) -> str:
    """Return the default of a key, in Markdown; empty for a section, whose keys have defaults of their own."""
    if field.is_required():
        return "required"
    if section_of(field.annotation):
        return ""
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, tuple):
        value = [str(item) for item in value]
    default = json.dumps(value) if isinstance(value, (bool, list, dict)) else str(value)
    return f"`{default}`"


def _describe_type(annotation: object, metadata: Sequence[object] = ()) -> str:
    """Return what a value may be, in words, e.g. `a whole number, 1 to 5`.

    Args:
        annotation: the type of the field, or a part of it.
        metadata: the constraints of this type, such as patterns and limits.
    """
    for constraint in metadata:
        if isinstance(constraint, TextPattern):
            # Without the rule after the colon, which only messages need.
            return constraint.expected.partition(": ")[0]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _describe_type(arguments[0], metadata=arguments[1:])
    if origin in (typing.Union, types.UnionType):
        return _describe_type(next(argument for argument in arguments if argument is not type(None)), metadata)
    if origin is tuple:
        return f"list; each item {_describe_type(arguments[0])}"
    if origin is typing.Literal:
        return " or ".join(f"`{argument}`" for argument in arguments)
    if annotation is int:
        return _describe_whole_number(metadata)
    if origin is dict:
        return "keys with values"
    descriptions: dict[object, str] = {
        bool: "`true` or `false`",
        str: "text",
        IPv4Network: "an IPv4 CIDR",
        IPv4Address: "an IPv4 address",
    }
    return descriptions[annotation]


def _describe_whole_number(metadata: Sequence[object]) -> str:
    """Return the range of a whole number in words, given the constraints of its field."""
    minimum = next((constraint.ge for constraint in metadata if isinstance(constraint, Ge)), None)
    maximum = next((constraint.le for constraint in metadata if isinstance(constraint, Le)), None)
    return f"a whole number, {minimum} to {maximum}"


def _escape_cell(text: str) -> str:
    """Return a text as one cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages into the directory that is named on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m cfngen.cluster.reference", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("directory", type=Path, help="where the pages go, e.g. docs")
    directory: Path = parser.parse_args(arguments).directory
    for name, text in reference_pages().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

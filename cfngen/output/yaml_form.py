"""Writes templates as YAML: in block style, with the long forms of functions, and text of several lines as a block."""

from __future__ import annotations

from collections.abc import Mapping

import yaml


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, without aliases, which CloudFormation does not support."""

    def ignore_aliases(self, data: object) -> bool:
        """Write a value in full each time it occurs: CloudFormation does not support YAML aliases."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key, as in CloudFormation's documentation."""
        super().increase_indent(flow, indentless=False)


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def to_yaml(body: Mapping[str, object]) -> str:
    """Return a template as YAML, in the order of its keys."""
    # The very large width disables the wrapping of lines, since wrapped lines are hard to compare.
    return yaml.dump(dict(body), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31)

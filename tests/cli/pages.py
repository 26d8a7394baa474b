"""The pages as somebody reads them who does what they say: commands and cluster files, in the page's order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from cfngen.cluster.model import Cluster

ROOT = Path(__file__).parents[2]
GENERATED = {"walkthrough.md", "walkthrough-full.md", "configuration.md", "kube-up.md", "json.md"}
PAGES = [ROOT / "README.md", *(page for page in sorted(ROOT.glob("docs/**/*.md")) if page.name not in GENERATED)]

# What a line of code begins with if it is a command. Of text in a line, the name of a program alone is no command.
PROGRAMS = re.compile(
    r"(?:\$ )?(?:[A-Z][A-Z_]*=\S+ )*(?:\(umask \d+; )?(?:sudo (?:-i )?)?(?:\.venv/bin/)?"
    r"(?:cfngen|make|aws|kubectl|helm|pipx|uv|pip|curl|git|ssh|eval|networkctl|crictl|ip"
    r"|[a-z]+ctl|systemctl|kubeadm|ctr|dd|e2fsck|less|rm|cloud-init|\.ci/[a-z-]+|\.|\$EDITOR)(?: |$)"
)
KEYS = {field.alias or name for name, field in Cluster.model_fields.items()}


@dataclass(frozen=True)
class Line:
    """A command of a page.

    Attributes:
        number: of the line it stands in.
        text: what is typed, without a prompt and a comment.
        shown: whether it stands in a block of its own; if not, in the midst of a sentence.
        section: the heading above it.
    """

    number: int
    text: str
    shown: bool
    section: str = ""


@dataclass(frozen=True)
class ClusterFile:
    """A cluster file of a page, or a part of one."""

    number: int
    text: str


@dataclass(frozen=True)
class Shown:
    """Any other block, such as what a command prints."""

    number: int
    text: str


Part = Line | ClusterFile | Shown


def read(page: Path) -> list[Part]:
    """Return what there is to do on a page, in its order."""
    text = page.read_text("utf-8")
    numbered = list(enumerate(text.splitlines(), 1))
    prose: list[tuple[int, str]] = []
    parts: list[Part] = []
    block: list[tuple[int, str]] = []
    fenced = False
    for number, line in [*numbered, (len(numbered) + 1, "end")]:
        fence = line.startswith("```")
        if not fence and (fenced or line.startswith("    ") or (block and not line)):
            block.append((number, line))
            continue
        if fence:
            fenced = not fenced
        parts += _block(block)
        block = []
        prose.append((number, "" if fence else line))
    parts += _sentences(prose)
    headings = [(number, line.lstrip("# ")) for number, line in prose if line.startswith("#")]
    return [_in_section(part, headings) for part in sorted(parts, key=lambda part: part.number)]


def _in_section(part: Part, headings: list[tuple[int, str]]) -> Part:
    above = [heading for number, heading in headings if number < part.number]
    return replace(part, section=above[-1]) if isinstance(part, Line) and above else part


def _block(lines: list[tuple[int, str]]) -> Iterator[Part]:
    while lines and not lines[-1][1]:
        lines.pop()
    if not lines:
        return
    number = lines[0][0]
    indent = min(len(line) - len(line.lstrip()) for _, line in lines if line)
    text = "\n".join(line[indent:] for _, line in lines) + "\n"
    if PROGRAMS.match(text):
        joined = re.sub(r"\\\n *", "\0", text)
        for line in joined.splitlines():
            if line:
                command = re.sub(r"(?:^| +)# .*$|   +.*$", "", line.removeprefix("$ ")).replace("\0", " ")
                yield Line(number, re.sub(r" +", " ", command).strip(), shown=True)
            number += 1 + line.count("\0")
        return
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        content = None
    if isinstance(content, dict) and content.keys() <= KEYS:
        yield ClusterFile(number, text)
    else:
        yield Shown(number, text)


def _sentences(prose: list[tuple[int, str]]) -> Iterator[Part]:
    """Spans of code that are commands; one may go over the end of a line, and not over that of a paragraph."""
    text = "\n".join(line for _, line in prose)
    for paragraph in re.finditer(r"(?:.+\n?)+", text):
        for span in re.finditer(r"(`+)(.+?)\1(?!`)", paragraph[0], re.DOTALL):
            command = re.sub(r"\s+", " ", span[2]).strip()
            if PROGRAMS.match(command) and " " in command:
                line = text.count("\n", 0, paragraph.start() + span.start())
                yield Line(prose[line][0], command, shown=False)

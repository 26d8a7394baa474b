"""Writing a picture of a cluster: its formats, and the file that it goes to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from cfngen.cli.paths import replace_file
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from cfngen.graph.picture import Picture

PictureFormat = Literal["svg", "html", "mermaid", "dot"]
FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)
SUFFIXES: dict[str, PictureFormat] = {
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
}
"""The format of a file, by the suffix of its name."""


class PictureFileError(CfngenError):
    """The file for a picture cannot be written, or its name says no format."""

    code = "picture-file"


def format_of(path: Path) -> PictureFormat:
    """Return the format that a file's name says.

    Raises:
        PictureFileError: it says none.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise PictureFileError(
            f"the name {path} does not say which format the picture shall have",
            hint="choose a name that ends in .svg, .html, .mmd or .dot.",
        )
    return SUFFIXES[suffix]


def require_writable(path: Path) -> None:
    """Check that a picture can be written to a file, before anything else is done.

    Raises:
        PictureFileError: it cannot.
    """
    folder = path.absolute().parent
    if path.is_dir():
        raise PictureFileError(f"{path} is a folder", hint="give the name of a file.")
    if not folder.is_dir():
        raise PictureFileError(f"the folder {folder} of {path} does not exist", hint="make it, or give another file.")
    if not os.access(folder, os.W_OK):
        raise PictureFileError(f"nothing can be written into the folder {folder}", hint="give another file.")


def render(picture: Picture, picture_format: PictureFormat) -> str:
    """Return a picture in a format."""
    # Each format is imported only when it is asked for.
    if picture_format == "mermaid":
        from cfngen.graph.mermaid import mermaid

        return mermaid(picture)
    if picture_format == "dot":
        from cfngen.graph.dot import dot

        return dot(picture)
    if picture_format == "html":
        from cfngen.graph.html import html

        return html(picture)
    from cfngen.graph.svg import svg

    return svg(picture)


def write(path: Path, text: str) -> None:
    """Write a file so that it has either its old or its complete new content.

    Raises:
        PictureFileError: it cannot be written.
    """
    try:
        replace_file(path, text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PictureFileError(
            f"the picture cannot be written to {path}: {reason}", hint="give another file."
        ) from error

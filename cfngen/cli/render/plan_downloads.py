"""Formats what mirrors must serve to instances that have no way to the internet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cfngen.cli.render.layout import BOLD, FAINT, paragraph
from cfngen.text import join_and, pluralize

if TYPE_CHECKING:
    from cfngen.userdata.downloads import Downloads


def download_lines(downloads: Downloads, width: int, *, is_complete: bool) -> Iterator[str]:
    """Yield what mirrors must serve.

    Args:
        is_complete: whether to list each file and chart, rather than how many there are.
    """
    yield ""
    yield from paragraph("Without a way to the internet", width, style=BOLD)
    urls = [*downloads.files, *downloads.charts]
    counts = join_and([pluralize(len(downloads.files), "file"), pluralize(len(downloads.charts), "chart")])
    server = downloads.mirror or "assets.mirror, which is not set,"
    text = f"{server} must serve {counts} to instances whose images do not contain them"
    if not is_complete:
        yield from paragraph(f"{text}; --full lists them.", width, 2)
    else:
        yield from paragraph(f"{text}:", width, 2)
        yield from (f"    {downloads.mirror}/{url.partition('://')[2]}" for url in urls)
    registries = join_and([*downloads.registries, "those of the charts' images"])
    yield from paragraph(
        f"Mirrors of registries (containerd.registryMirrors) must serve the images of {registries}. Packages of the "
        "distribution that the image lacks come from its own mirrors.",
        width,
        2,
        style=FAINT,
    )

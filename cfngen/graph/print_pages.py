"""How a picture is divided into pages for print: at the page's width, with no box, label or sentence in two pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cfngen.graph.layout.boxes import TRACK
from cfngen.graph.layout.drawing import Drawing
from cfngen.graph.legend import Entry

# What Letter and A4 both have within margins of 10 mm, in CSS pixels, less a line for the number of the page.
PAGE_WIDTH, PAGE_HEIGHT = 714, 930
_SMALLEST = 0.5  # scale at which the smallest texts can still be read: 11 pixels are 4 points then
_FULL = 0.6  # of a page at least has something on it
_HEAD = 10  # pixels that the head of an arrow takes

Span = tuple[float, float]


def print_pages(drawing: Drawing, entries: Sequence[Entry], top: int, size: tuple[int, int]) -> list[Span]:
    """Return the part of the picture for each page: its top and its height.

    Args:
        drawing: the drawing.
        entries: the legend.
        top: where the drawing begins; the heading is above it, and the legend below.
        size: width and height of the picture.
    """
    width, height = size
    scale = min(1.0, PAGE_WIDTH / width)
    if height * scale <= PAGE_HEIGHT or PAGE_HEIGHT / height >= _SMALLEST:
        return [(0, height)]
    kept = list(_kept_whole(drawing, entries, top))
    containers = [
        (top + placed.y * TRACK, top + (placed.y + placed.height) * TRACK)
        for placed in drawing.boxes
        if placed.children
    ]
    pages: list[Span] = []
    start = 0.0
    while (height - start) * scale > PAGE_HEIGHT:
        end = _best_gap(kept, containers, start, start + PAGE_HEIGHT / scale)
        pages.append((start, end - start))
        start = end
    return [*pages, (start, height - start)]


def _kept_whole(drawing: Drawing, entries: Sequence[Entry], top: int) -> Iterator[Span]:
    """Yield from where to where each thing reaches that no two pages share; containers and lines may go on."""
    yield 0, top
    for placed in drawing.boxes:
        _, y, _, height = placed.header_area()
        yield (top + y, top + y + height)
        if not placed.children:
            yield top + placed.y * TRACK, top + (placed.y + placed.height) * TRACK
    for line in drawing.lines:
        if line.label:
            _, y, _, height = line.label.area
            yield top + y, top + y + height
        for (_, y), _ in line.heads:
            yield top + y - _HEAD, top + y + _HEAD
    for entry in entries:
        y = top + drawing.height + entry.y
        yield y, y + entry.height


def _best_gap(kept: Sequence[Span], containers: Sequence[Span], start: float, limit: float) -> float:
    """Return where a page ends best: cutting nothing, few containers, and as far down as possible.

    If everything there would cut something, it is the limit.
    """
    end = limit // TRACK * TRACK - TRACK / 2  # lines run on tracks, so between two of them
    best, fewest = limit, len(containers) + 1
    while end > start + (limit - start) * _FULL:
        divided = _count(containers, end)
        if divided < fewest and not _count(kept, end):
            best, fewest = end, divided
        end -= TRACK
    return best


def _count(spans: Sequence[Span], place: float) -> int:
    """Return how many spans a place divides."""
    return sum(upper < place < lower for upper, lower in spans)

"""The style sheet of a picture. All is in classes: strict content security policies forbid `style` attributes."""

from __future__ import annotations

from cfngen.graph.colours import DARK, DASHES, FONTS, LIGHT, Scheme
from cfngen.graph.layout.drawing import Drawing


def stylesheet(drawing: Drawing) -> str:
    """Return the style sheet of a picture, for what occurs in it."""
    picture = drawing.picture
    kinds = {arrow.kind for arrow in picture.arrows}
    dashes = [f".{kind} .way{{stroke-dasharray:{dash}}}" for kind, dash in DASHES.items() if dash and kinds > {kind}]
    return "\n".join(
        [
            f".picture text{{font-family:{FONTS}}}",
            ".symbol{fill:none;stroke-width:1.3;stroke-linejoin:round;stroke-linecap:round}",
            ".outline{stroke-width:1.3}.around .outline{stroke-width:1.2}.zone .outline{stroke-dasharray:6 4}",
            ".way{fill:none;stroke-width:1.6;stroke-linejoin:round}",
            ".reach{fill:none;stroke:none;stroke-width:11;pointer-events:stroke}",
            *dashes,
            ".box.added .outline,.box.changed .outline,.box.replaced .outline,.box.removed .outline{stroke-width:2.6}",
            ".box.removed .outline{stroke-dasharray:5 3}.box.removed .name{text-decoration:line-through}",
            ".label rect{stroke-width:.8}.label{pointer-events:none}.badge{pointer-events:none}",
            ".arrow:hover .way{stroke-width:3}",
            *_colours(LIGHT, drawing),
            "@media screen and (prefers-color-scheme:dark){",
            *_colours(DARK, drawing),
            "}",
            "@media print{",
            # A picture that is a document of its own is fitted to the page: its width and its height.
            ".picture:root{width:100%;height:auto;max-height:100vh}",
            ".page{fill:none}.reach{display:none}.picture .outline,.picture .label rect{fill:#fff}",
            ".picture .heading,.picture .name,.picture .line:not(.loop){fill:#000}",
            "}",
        ]
    )


def _colours(scheme: Scheme, drawing: Drawing) -> list[str]:
    picture = drawing.picture
    kinds = dict.fromkeys(box.kind for box in picture.boxes)
    arrows = dict.fromkeys(arrow.kind for arrow in picture.arrows)
    changes = drawing.changes
    rules = [
        f".page{{fill:{scheme.page}}}.heading,.name{{fill:{scheme.text}}}.line{{fill:{scheme.quiet}}}",
        f".label rect{{fill:{scheme.page}}}.badge text{{fill:{scheme.on_change}}}",
    ]
    for kind in kinds:
        border = scheme.borders[kind]
        rules.append(f".{kind} .outline{{fill:{scheme.fills[kind]};stroke:{border}}}.{kind} .symbol{{stroke:{border}}}")
    rules += [_arrow(arrow, scheme.arrows[arrow]) for arrow in arrows]
    rules += [
        f".badge.{change} circle{{fill:{scheme.changes[change]};stroke:{scheme.page}}}"
        f".box.{change} .outline{{stroke:{scheme.changes[change]}}}" + _arrow(change, scheme.changes[change])
        for change in changes
    ]
    return rules


def _arrow(name: str, colour: str) -> str:
    return (
        f".arrow.{name} .way{{stroke:{colour}}}.arrow.{name} .head,.arrow.{name} .joint,.label.{name} text,"
        f".loop.{name}{{fill:{colour}}}.label.{name} rect{{stroke:{colour}}}"
    )

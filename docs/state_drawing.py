"""Draws the states of a partition and the arrows between them, as SVG: positions by hand, arrows from TRANSITIONS."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from html import escape
from itertools import groupby
from operator import itemgetter

from reassign.core.model.states import ENDED, State

Pair = tuple[str, str]
NO_ENTRY = "none"
WIDTH, HEIGHT = 830, 512
BOX_WIDTH, BOX_HEIGHT, STUB = 112, 40, 26

CENTRES: dict[str, tuple[int, int]] = {
    "Superseding": (116, 44),
    "Settling": (516, 44),
    "Failed": (716, 44),
    "Submitting": (116, 150),
    "InFlight": (316, 150),
    "Completed": (716, 150),
    "Cancelling": (316, 320),
    "Restoring": (516, 320),
    "Cancelled": (716, 320),
}
"""The middle of each state's box."""

LEFT, RIGHT, UP, DOWN = (-1, 0), (1, 0), (0, -1), (0, 1)
ENTRANCES: dict[str, tuple[int, int, tuple[int, int]]] = {
    "Superseding": (60, 36, LEFT),
    "Settling": (460, 36, LEFT),
    "Failed": (772, 36, RIGHT),
    "Submitting": (60, 142, LEFT),
    "InFlight": (296, 130, UP),
    "Completed": (772, 142, RIGHT),
    "Cancelled": (772, 312, RIGHT),
}
"""Where a partition without an entry comes into a state: a point of its box, and the side that it comes from."""

EXITS: dict[str, tuple[int, int, tuple[int, int]]] = {
    "Superseding": (60, 52, LEFT),
    "Settling": (460, 52, LEFT),
    "Failed": (772, 52, RIGHT),
    "Submitting": (60, 158, LEFT),
    "InFlight": (336, 130, UP),
    "Completed": (772, 158, RIGHT),
    "Cancelling": (260, 330, LEFT),
    "Restoring": (540, 340, DOWN),
    "Cancelled": (772, 328, RIGHT),
}
"""Where an entry is removed, likewise."""

ROUTES: dict[Pair, str] = {
    ("Submitting", "InFlight"): "M172 150H260",
    ("Submitting", "Settling"): "M100 130V88Q100 76 112 76H464Q476 76 476 70V64",
    ("Submitting", "Completed"): "M140 130V108Q140 96 152 96H614Q626 96 626 108V128Q626 140 638 140H660",
    ("Submitting", "Cancelling"): "M140 170V300Q140 312 152 312H260",
    ("Submitting", "Restoring"): "M108 170V356Q108 368 120 368H484Q496 368 496 356V340",
    ("Submitting", "Cancelled"): "M76 170V424Q76 436 88 436H728Q740 436 740 424V340",
    ("InFlight", "Completed"): "M372 156H660",
    ("InFlight", "Settling"): "M352 130L520 64",
    ("InFlight", "Cancelling"): "M316 170V300",
    ("InFlight", "Restoring"): "M334 170L500 300",
    ("InFlight", "Cancelled"): "M352 170L682 300",
    ("Cancelling", "Restoring"): "M372 312H460",
    ("Cancelling", "Completed"): "M352 300L682 170",
    ("Cancelling", "Cancelled"): "M340 340V388Q340 400 352 400H678Q690 400 690 388V340",
    ("Restoring", "Cancelling"): "M460 328H372",
    ("Restoring", "Cancelled"): "M572 320H660",
    ("Cancelled", "Completed"): "M730 300V170",
    ("Settling", "Completed"): "M572 44C640 44 684 76 684 130",
    ("Failed", "Completed"): "M730 64V130",
}
"""The way of each arrow between two boxes."""

HAPPY = {("Submitting", "InFlight"), ("InFlight", "Completed"), (NO_ENTRY, "Submitting")}
BACK = {"Cancelling", "Restoring", "Cancelled"}

LABELS = (
    (216, 142, "accepted"),
    (516, 148, "in order and in sync"),
    (230, 92, "done already"),
    (228, 226, "edited, deleted,"),
    (228, 243, "or the brake is set"),
    (416, 304, "confirmed"),
    (416, 345, "copies go on"),
    (616, 312, "restored"),
    (770, 240, "came true"),
    (600, 393, "it is back"),
    (416, 429, "not begun, or ended by another client"),
)
"""What moves a partition along the arrow beside it."""


def drawing(transitions: Mapping[State | None, Collection[State | None]]) -> str:
    """Return the drawing. Fail where a state has no position or a transition no way."""
    pairs = pairs_of(transitions)
    states = {state for pair in pairs for state in pair} - {NO_ENTRY}
    boxes = (_box(state, *CENTRES[state]) for state in sorted(states))
    body = [*map(_arrow, pairs), *boxes, *(_label(*label) for label in LABELS)]
    described = escape(" ".join(_sentences(pairs)))
    return HEAD.format(width=WIDTH, height=HEIGHT, described=described) + "\n".join(body) + "\n" + LEGEND


def pairs_of(transitions: Mapping[State | None, Collection[State | None]]) -> list[Pair]:
    """Return the transitions by the names of their states, in a fixed order."""
    return sorted((before or NO_ENTRY, after or NO_ENTRY) for before, afters in transitions.items() for after in afters)


def _sentences(pairs: Iterable[Pair]) -> Iterator[str]:
    """Return what the arrows say, for readers who hear the drawing."""
    for before, arrows in groupby(pairs, key=itemgetter(0)):
        yield f"From {before} to {', '.join(after for _, after in arrows)}.".replace(NO_ENTRY, "no entry")


def _arrow(pair: Pair) -> str:
    before, after = pair
    if before == NO_ENTRY:
        x, y, (right, down) = ENTRANCES[after]
        way = f"M{x + STUB * right} {y + STUB * down}L{x} {y}"
        dot = f'<circle class="begin" cx="{x + STUB * right}" cy="{y + STUB * down}" r="4.5"/>'
    elif after == NO_ENTRY:
        x, y, (right, down) = EXITS[before]
        way = f"M{x} {y}L{x + (STUB - 4) * right} {y + (STUB - 4) * down}"
        dot = f'<circle class="end" cx="{x + STUB * right}" cy="{y + STUB * down}" r="4"/>'
    else:
        way, dot = ROUTES[pair], ""
    kind = "back" if after in BACK and before != NO_ENTRY else "stub" if NO_ENTRY in pair else "on"
    kind = "happy" if pair in HAPPY else kind
    return (
        f'  <g data-from="{before}" data-to="{after}"><title>{before} → {after}</title>'
        f'<path class="arrow {kind}" d="{way}"/>{dot}</g>'
    )


def _box(state: str, x: int, y: int) -> str:
    kind = "ended" if state in ENDED else "active"
    return (
        f'  <g data-state="{state}"><rect class="box {kind}" x="{x - BOX_WIDTH // 2}" y="{y - BOX_HEIGHT // 2}" '
        f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/><text class="name" x="{x}" y="{y + 5}">{state}</text></g>'
    )


def _label(x: int, y: int, text: str) -> str:
    return f'  <text x="{x}" y="{y}">{text}</text>'


HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" \
aria-labelledby="title desc">
  <title id="title">The states of a partition</title>
  <desc id="desc">{described}</desc>
  <style>
    text {{ font: 13px Helvetica, Arial, "Liberation Sans", sans-serif; fill: #57606a; text-anchor: middle; }}
    .name {{ font-size: 14px; font-weight: bold; fill: #1f2328; }}
    .legend text {{ text-anchor: start; }}
    .ground {{ fill: #ffffff; }}
    .box {{ fill: #ffffff; stroke: #57606a; }}
    .ended {{ fill: #e7ebef; }}
    .arrow {{ fill: none; stroke: #8c959f; stroke-width: 1.5; marker-end: url(#stub); }}
    .on, .happy {{ stroke: #0a5cad; marker-end: url(#on); }}
    .happy {{ stroke-width: 3; }}
    .back {{ stroke: #b35900; marker-end: url(#back); }}
    .begin, #stub path {{ fill: #8c959f; }}
    .end {{ fill: none; stroke: #8c959f; stroke-width: 1.5; }}
    #on path {{ fill: #0a5cad; }}
    #back path {{ fill: #b35900; }}
    @media (prefers-color-scheme: dark) {{
      text {{ fill: #9ea7b1; }}
      .name {{ fill: #e6edf3; }}
      .ground {{ fill: #0d1117; }}
      .box {{ fill: #0d1117; stroke: #9ea7b1; }}
      .ended {{ fill: #2d333b; }}
      .arrow {{ stroke: #848d97; }}
      .on, .happy {{ stroke: #6cb2ff; }}
      .back {{ stroke: #f0a04b; }}
      .begin, #stub path {{ fill: #848d97; }}
      .end {{ fill: none; stroke: #848d97; }}
      #on path {{ fill: #6cb2ff; }}
      #back path {{ fill: #f0a04b; }}
    }}
  </style>
  <defs>
    <marker id="stub" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" \
markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z"/></marker>
    <marker id="on" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="10" markerHeight="10" \
markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 10 5 0 10z"/></marker>
    <marker id="back" viewBox="0 0 10 10" refX="10" refY="5" markerWidth="10" markerHeight="10" \
markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 10 5 0 10z"/></marker>
  </defs>
  <rect class="ground" width="{width}" height="{height}" rx="8"/>
"""

LEGEND = """\
  <g class="legend">
    <circle class="begin" cx="34" cy="482" r="4.5"/>
    <text x="46" y="486">no entry yet</text>
    <circle class="end" cx="158" cy="482" r="4"/>
    <text x="170" y="486">the entry is removed</text>
    <path class="arrow on" d="M326 482H356"/>
    <text x="364" y="486">to the target</text>
    <path class="arrow back" d="M474 482H504"/>
    <text x="512" y="486">the way back</text>
    <rect class="box ended" x="624" y="473" width="28" height="18" rx="4"/>
    <text x="660" y="486">ended: nothing in flight</text>
  </g>
</svg>
"""

"""The life of every saved storage in one step, as SVG: in memory, on its way, away; and what is computed again."""

from xml.sax.saxutils import escape

_COLOURS = {
    "kept": "#4c78a8",
    "out": "#f58518",
    "away": "#e4e4e4",
    "in": "#54a24b",
    "back": "#9ecae9",
    "again": "#b279a2",
}
_WORDS = {
    "kept": "in memory",
    "out": "being copied out",
    "away": "away",
    "in": "being copied in",
    "back": "in memory again",
    "again": "dropped, to be computed again",
}
_WIDTH, _LEFT, _TOP, _MOST_HEIGHT = 960, 20, 64, 900


def _parts(life, end):
    """(state, from, to) of one storage."""
    last = life["ended_ns"] if life["ended_ns"] >= 0 else end
    if life["left_ns"] < 0:
        return [("kept", life["saved_ns"], last)]
    fetched = life["fetched_ns"] if life["fetched_ns"] >= 0 else last
    back = life["back_ns"] if life["back_ns"] >= 0 else last
    return [
        ("out", life["saved_ns"], life["left_ns"]),
        ("away", life["left_ns"], fetched),
        ("in", fetched, back),
        ("back", back, last),
    ]


def _rows(step):
    """(begin, name, parts) of each line, in the order of the forward pass."""
    end = step["step_ns"]
    rows = [
        (life["saved_ns"], f"storage {number}, {life['bytes']} bytes", _parts(life, end))
        for number, life in enumerate(step["storages"])
    ]
    for number, segment in enumerate(step.get("segments", ())):
        if segment["again"]:
            begin = segment["began_ns"]
            rows.append((begin, f"segment {number}", [("again", begin, max(segment["ended_ns"], begin))]))
    return sorted(rows, key=lambda row: row[0])


def picture(step, title):
    rows = _rows(step)
    first = rows[0][0] if rows else 0  # what was before is none of the passes'
    took = max(step["step_ns"] - first, 1)
    row = max(1.5, min(12.0, _MOST_HEIGHT / max(len(rows), 1)))
    height = _TOP + row * len(rows) + 40
    scale = (_WIDTH - 2 * _LEFT) / took
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:.0f}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height:.0f}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
    ]
    at = _LEFT
    for state, words in _WORDS.items():
        lines.append(f'<rect x="{at}" y="36" width="12" height="12" fill="{_COLOURS[state]}"/>')
        lines.append(f'<text x="{at + 17}" y="46">{words}</text>')
        at += 40 + 7 * len(words)
    for index, (_, name, parts) in enumerate(rows):
        for state, begin, until in parts:
            lines.append(
                f'<rect x="{_LEFT + (begin - first) * scale:.1f}" y="{_TOP + index * row:.1f}" '
                f'width="{max((until - begin) * scale, 0.3):.1f}" height="{row * 0.85:.1f}" '
                f'fill="{_COLOURS[state]}"><title>{name}: '
                f"{_WORDS[state]}</title></rect>"
            )
    foot = f"{took / 1e6:,.0f} ms; a line for each saved storage and what is dropped, in the order of the forward pass"
    lines.append(f'<text x="{_LEFT}" y="{height - 14:.0f}">{foot}</text>')
    return "\n".join([*lines, "</svg>", ""])

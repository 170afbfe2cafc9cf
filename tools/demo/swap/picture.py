"""The life of every saved storage in one step, as SVG: in memory, on its way, away."""

from xml.sax.saxutils import escape

_COLOURS = {
    "kept": "#4c78a8",
    "out": "#f58518",
    "away": "#e4e4e4",
    "in": "#54a24b",
    "back": "#9ecae9",
}
_WORDS = {
    "kept": "in memory",
    "out": "being copied out",
    "away": "away",
    "in": "being copied in",
    "back": "in memory again",
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


def picture(step, title):
    storages, end = step["storages"], max(step["step_ns"], 1)
    row = max(1.5, min(12.0, _MOST_HEIGHT / max(len(storages), 1)))
    height = _TOP + row * len(storages) + 40
    scale = (_WIDTH - 2 * _LEFT) / end
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
    for index, life in enumerate(storages):
        for state, begin, until in _parts(life, end):
            lines.append(
                f'<rect x="{_LEFT + begin * scale:.1f}" y="{_TOP + index * row:.1f}" '
                f'width="{max((until - begin) * scale, 0.3):.1f}" height="{row * 0.85:.1f}" '
                f'fill="{_COLOURS[state]}"><title>storage {index}, {life["bytes"]} bytes: '
                f"{_WORDS[state]}</title></rect>"
            )
    foot = f"{end / 1e6:,.0f} ms; a line for each saved storage, in the order of the forward pass"
    lines.append(f'<text x="{_LEFT}" y="{height - 14:.0f}">{foot}</text>')
    return "\n".join([*lines, "</svg>", ""])

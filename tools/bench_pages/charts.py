"""Charts as SVG: lines on two logarithmic axes, and bars. Standard library only."""

import html
import math

WIDTH, HEIGHT = 860, 460
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 44, 48
LABEL_HEIGHT = 14
# Readers with dark colours see light lines and texts of the same hue on a dark ground.
DARK = ("<style>@media (prefers-color-scheme: dark) "
        "{ svg { filter: invert(.93) hue-rotate(180deg); } }</style>")
COLOURS = ("#0b62a4", "#d1495b", "#2a9d5c", "#8e5fbf", "#c77700", "#00838f", "#7a5230", "#5c6b7a",
           "#b5179e", "#4d7c0f", "#1f2937", "#e07a5f", "#6d597a", "#a3a300")


def line_chart(title, lines, axis_texts):
    """`lines`: name → [(x, y)], all above 0; `axis_texts`: of the x and the y axis."""
    lines = {name: points for name, points in lines.items() if points}
    x = _Axis([x for points in lines.values() for x, _ in points], LEFT, WIDTH - RIGHT)
    y = _Axis([y for points in lines.values() for _, y in points], HEIGHT - BOTTOM, TOP)
    parts = [_grid_line(x.place(at), TOP, x.place(at), HEIGHT - BOTTOM) +
             _text(x.place(at), HEIGHT - BOTTOM + 18, _tick_text(at), "middle")
             for at in x.decades()]
    parts += [_grid_line(LEFT, y.place(at), WIDTH - RIGHT, y.place(at)) +
              _text(LEFT - 8, y.place(at) + 4, _tick_text(at), "end") for at in y.decades()]
    ends = _apart({name: y.place(points[-1][1]) for name, points in lines.items()})
    for index, (name, points) in enumerate(lines.items()):
        colour = COLOURS[index % len(COLOURS)]
        dash = "" if index < len(COLOURS) else ' stroke-dasharray="5 3"'
        path = " ".join(f"{x.place(px):.1f},{y.place(py):.1f}" for px, py in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"'
                     f"{dash}/>")
        end = x.place(points[-1][0])
        parts.append(_leader(end, y.place(points[-1][1]), ends[name], colour))
        parts.append(_text(WIDTH - RIGHT + 24, ends[name] + 4, name, "start", colour))
    return _document(title, axis_texts, parts)


def bar_chart(title, bars, axis_text):
    """`bars`: name → value; horizontal, in the order given."""
    height = TOP + BOTTOM + 24 * len(bars)
    left, longest = 150, max(bars.values())
    scale = (WIDTH - left - 90) / longest
    parts = []
    for index, (name, value) in enumerate(bars.items()):
        top = TOP + 24 * index
        parts.append(f'<rect x="{left}" y="{top}" width="{value * scale:.1f}" height="16" '
                     f'fill="{COLOURS[0]}"/>')
        parts.append(_text(left - 8, top + 13, name, "end"))
        parts.append(_text(left + value * scale + 6, top + 13, f"{value:.1f}", "start"))
    return _document(title, (axis_text, ""), parts, height)


class _Axis:
    """A logarithmic axis, from one end in pixels to the other, whole decades at a time."""

    def __init__(self, values, begin, end):
        self._low = math.floor(math.log10(min(values)))
        self._high = max(math.ceil(math.log10(max(values))), self._low + 1)
        self._begin, self._end = begin, end

    def decades(self):
        return [10 ** power for power in range(self._low, self._high + 1)]

    def place(self, value):
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._begin + share * (self._end - self._begin)


def _apart(places):
    """The same places, moved so that labels do not overlap and stay in the chart."""
    result, free_from = {}, TOP
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        result[name] = max(place, free_from)
        free_from = result[name] + LABEL_HEIGHT
    overshoot = free_from - LABEL_HEIGHT - (HEIGHT - BOTTOM)
    ceiling = HEIGHT - BOTTOM
    if overshoot > 0:
        for name in sorted(result, key=result.get, reverse=True):
            result[name] = min(result[name], ceiling)
            ceiling = result[name] - LABEL_HEIGHT
    return result


def _tick_text(value):
    for unit, name in ((1_000_000, " M"), (1_000, " k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def _grid_line(x1, y1, x2, y2):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd" '
            'stroke-width="1"/>')


def _leader(x, y, label_y, colour):
    return (f'<polyline points="{x:.1f},{y:.1f} {WIDTH - RIGHT + 20},{label_y:.1f}" fill="none" '
            f'stroke="{colour}" stroke-width="0.7" opacity="0.6"/>')


def _text(x, y, text, anchor, colour="#333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
            f"{html.escape(text)}</text>")


def _document(title, axis_texts, parts, height=HEIGHT):
    x_text, y_text = axis_texts
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{html.escape(title)}</title>",
        DARK,
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="15" fill="#111">{html.escape(title)}</text>',
        _text(WIDTH - RIGHT, height - 10, x_text, "end"),
        _text(8, TOP - 8, y_text, "start"),
        *parts, "</svg>\n"])

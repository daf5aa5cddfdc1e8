"""Writes docs/benchmarks.md and its charts from bench/targets.toml and bench/results.json."""

import re

from bench_pages import targets as aims
from bench_pages.blocks import Image, Paragraph, Table
from bench_pages.charts import line_chart
from bench_pages.figures import figure, size

# Measure of timers_bench → name of its chart, and what it measures.
WORKLOADS = {
    "a first": ("first", "schedule, in a new wheel"),
    "a U60k": ("schedule", "schedule"),
    "b churn": ("churn", "cancel and schedule"),
    "b1 cancel": ("cancel", "cancel"),
    "c refresh": ("refresh", "keep-alive"),
    "d expire": ("expire", "expire tick by tick"),
    "g mixed": ("mixed", "mixed load"),
    "w web": ("web", "web server, 95 % cancelled"),
    "t game": ("game", "game, all due within 100 ticks"),
    "r recorded": ("recorded", "mixed load with recorded delays"),
}
WHEELS = ("TimerWheel", "DenseWheel", "FifoTimerWheel", "HeapQueue", "libuv")
# Chart → its title, the benchmark, the columns, the measures, and the axes.
CHARTS = {
    **{f"workload-{name}": (f"{text[0].upper()}{text[1:]}: CPU time, by the number of timers",
                            "timers_workloads", WHEELS, (measure,), ("timers", "ns"))
       for measure, (name, text) in WORKLOADS.items()},
    "growth-core": ("Wheels: CPU time per operation, by the number of pending timers",
                    "timers_growth", ("TimerWheel", "DenseWheel", "libev"),
                    ("schedule", "cancel", "fire"), ("timers pending", "ns")),
    "growth-waiting": ("Server: CPU time per task, by the number of waiting tasks", "growth_bench",
                       ("waiting",), ("put us", "lease us", "complete us", "cancel us"),
                       ("tasks waiting", "µs")),
    "growth-connections": ("Server: CPU time per request, by the number of busy connections",
                           "growth_bench", ("connections",), ("put us",), ("connections", "µs")),
    "growth-payload": ("Server: CPU time per task, by bytes of payload (0 is shown as 1)",
                       "growth_bench", ("payload",), ("put us", "lease us", "complete us"),
                       ("bytes", "µs")),
    "growth-queues": ("Server: CPU time per task (put) and per request (lease), by queues",
                      "growth_bench", ("queues",), ("put us", "lease us"), ("queues", "µs")),
}


def fill(page_text, sections):
    """Returns the text with each part between <!-- begin:NAME --> and <!-- end:NAME --> replaced by
    the section NAME. Raises ValueError for a marker without an end or without a section."""
    names = re.findall(r"<!-- begin:([\w-]+) -->", page_text)
    if not names:
        raise ValueError("the page has no <!-- begin:NAME -->")
    for name in names:
        pattern = rf"(<!-- begin:{name} -->\n).*?(<!-- end:{name} -->)"
        if name not in sections or not re.search(pattern, page_text, re.DOTALL):
            raise ValueError(f"'{name}' has no end, or is not one of {', '.join(sections)}")
        body = "\n\n".join(block.markdown() for block in sections[name])
        page_text = re.sub(pattern, lambda match, body=body: f"{match[1]}\n{body}\n\n{match[2]}",
                           page_text, flags=re.DOTALL)
    return page_text


def sections(targets, why, kept, images="images/"):
    result = {area: [aims.area_table(area, targets, kept)] for area in aims.AREAS}
    result["summary"] = [aims.summary(targets, kept)]
    result["misses"] = aims.misses(targets, why, kept)
    result["runs"] = [aims.runs_table(kept)]
    result["growth"] = growth_blocks(kept, images)
    return result


def growth_blocks(kept, images):
    """The charts, and a table for each measured program and axis."""
    drawn = charts(kept)
    blocks = [Image(f"{images}{name}.svg", CHARTS[name][0]) for name in drawn]
    names = list(kept["runs"])
    for program, growth in kept["growth"].items():
        run = kept["runs"][growth["run"]]
        busy = " (busy machine: only CPU time and bytes)" if run["foreign"] > aims.BUSY else ""
        blocks.append(Paragraph(f"`{program}`, run {names.index(growth['run']) + 1} of "
                                f"{aims.commit_text(run)}{busy}:"))
        for who, lines in growth["lines"].items():
            blocks.append(growth_table(who, lines))
    return blocks or [Paragraph("Not measured.")]


def growth_table(who, lines):
    """A row per measure, a column per size. `lines` has the format of bench/results.json."""
    sizes = sorted({each for line in lines.values() for each, _ in line})
    rows = []
    for measure, line in lines.items():
        by_size = dict(line)
        rows.append([measure] + [figure(by_size.get(each)) for each in sizes])
    return Table([who] + [size(each) for each in sizes], rows)


def charts(kept):
    """Name → SVG, for charts with kept lines."""
    result = {}
    for name, (title, program, whose, measures, axes) in CHARTS.items():
        kept_lines = kept["growth"].get(program, {}).get("lines", {})
        lines = {}
        for who in whose:
            for measure in measures:
                points = [(max(at, 1), max(value, 0.1))
                          for at, value in kept_lines.get(who, {}).get(measure, ())]
                label = f"{who} {measure}"
                if len(whose) == 1:
                    label = measure.removesuffix(" us")
                elif len(measures) == 1:
                    label = who
                if len(points) > 1:
                    lines[label] = points
        if lines:
            result[name] = line_chart(title, lines, axes)
    return result


def write(root, targets, why, kept):
    """The page and its charts under `root`/docs."""
    page = root / "docs" / "benchmarks.md"
    page.write_text(fill(page.read_text("utf-8"), sections(targets, why, kept)), "utf-8")
    for name, chart in charts(kept).items():
        (root / "docs" / "images" / f"{name}.svg").write_text(chart, "utf-8")

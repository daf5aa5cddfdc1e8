"""docs/benchmarks.md and its charts, from bench/targets.toml and bench/results.json alone."""

import re

from bench_pages import targets as aims
from bench_pages.blocks import Image, Paragraph, Table
from bench_pages.charts import line_chart
from bench_pages.figures import figure, size

# Chart → its title, the kept benchmark, whose lines, which measures, and the axes.
CHARTS = {
    "growth-core": ("The wheels: CPU time of one operation, by how many timers are pending",
                    "timers_growth", ("TimerWheel", "DenseWheel", "libev"),
                    ("schedule", "cancel", "fire"), ("timers pending", "ns")),
    "growth-waiting": ("The server: its CPU time a task, by how many others wait", "growth_bench",
                       ("waiting",), ("put us", "lease us", "complete us", "cancel us"),
                       ("tasks waiting", "µs")),
    "growth-connections": ("The server: its CPU time a request, by connections that are busy",
                           "growth_bench", ("connections",), ("put us",), ("connections", "µs")),
    "growth-payload": ("The server: its CPU time a task, by bytes of payload (0 drawn as 1)",
                       "growth_bench", ("payload",), ("put us", "lease us", "complete us"),
                       ("bytes", "µs")),
    "growth-queues": ("The server: its CPU time a task (put) and a request (lease), by queues",
                      "growth_bench", ("queues",), ("put us", "lease us"), ("queues", "µs")),
}


def fill(page_text, sections):
    """Replaces what stands between <!-- begin:NAME --> and <!-- end:NAME -->. Returns: the text.
    Raises ValueError for a marker without its end, or one that no section fills."""
    names = re.findall(r"<!-- begin:([\w-]+) -->", page_text)
    if not names:
        raise ValueError("there is no <!-- begin:NAME --> to fill")
    for name in names:
        pattern = rf"(<!-- begin:{name} -->\n).*?(<!-- end:{name} -->)"
        if name not in sections or not re.search(pattern, page_text, re.DOTALL):
            raise ValueError(f"'{name}' has no end, or is none of {', '.join(sections)}")
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
    """Charts, and a table for each program and axis that was measured."""
    drawn = charts(kept)
    blocks = [Image(f"{images}{name}.svg", CHARTS[name][0]) for name in drawn]
    names = list(kept["runs"])
    for program, growth in kept["growth"].items():
        run = kept["runs"][growth["run"]]
        busy = ", on a busy machine: CPU time and bytes only" if run["foreign"] > aims.BUSY else ""
        blocks.append(Paragraph(f"`{program}`, run {names.index(growth['run']) + 1} of "
                                f"{aims.commit_text(run)}{busy}:"))
        for who, lines in growth["lines"].items():
            blocks.append(growth_table(who, lines))
    return blocks or [Paragraph("Not measured.")]


def growth_table(who, lines):
    """A row a measure, a column a size; `lines` as in what is kept."""
    sizes = sorted({each for line in lines.values() for each, _ in line})
    rows = []
    for measure, line in lines.items():
        by_size = dict(line)
        rows.append([measure] + [figure(by_size.get(each)) for each in sizes])
    return Table([who] + [size(each) for each in sizes], rows)


def charts(kept):
    """Name → SVG of those whose lines are kept."""
    result = {}
    for name, (title, program, whose, measures, axes) in CHARTS.items():
        kept_lines = kept["growth"].get(program, {}).get("lines", {})
        lines = {}
        for who in whose:
            for measure in measures:
                points = [(max(at, 1), max(value, 0.1))
                          for at, value in kept_lines.get(who, {}).get(measure, ())]
                label = measure.removesuffix(" us") if len(whose) == 1 else f"{who} {measure}"
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

"""Reads the output folder of ./dev bench: the figures of each benchmark, and of the run itself."""

import json
import re

from bench_pages.figures import Figures


def read_runs(folder):
    """Benchmark → its run, in the order of their names."""
    runs = {}
    for path in sorted(folder.glob("*.run.json")):
        run = json.loads(path.read_text("utf-8"))
        runs[run["program"]] = run
    return runs


def read_figures(folder):
    """Benchmark → Figures, for the files with the columns of Figures."""
    figures = {}
    for path in sorted(folder.glob("*.csv")):
        with open(path, encoding="utf-8") as file:
            if not file.readline().startswith("timers,queue,measure,"):
                continue
        one = Figures(path)
        if one.queues:
            figures[path.stem] = one
    text = folder / "idle_cost.txt"
    if text.exists():
        rows = idle_rows(text.read_text("utf-8"))
        if rows:
            figures["idle_cost"] = Figures.of(rows)
    return figures


def idle_rows(text):
    """The output of bench/runtime/idle_cost.py as rows of Figures."""
    loaded = re.search(r"^loaded +(\d+) tasks", text, re.M)
    if not loaded:
        return []
    count, rows = int(loaded[1]), []
    idle = re.search(r"^idle +([\d.]+) % of a core, ([\d.]+) wake-ups/s.* (\d+) MB", text, re.M)
    if idle:
        rows = [(count, "detent", measure, float(value)) for measure, value in
                zip(("CPU %", "wake-ups /s", "memory MB"), idle.groups(), strict=True)]
    rows += [(count, "detent", f"{name} ms", float(value)) for name, value in
             re.findall(rf"^asked +(\w+) +p50 ([\d.]+) ms.*\({count} tasks\)", text, re.M)]
    rows += [(count, "detent", f"{word} /s", float(value) * 1_000) for word, value in
             re.findall(r"^by key +\d+ (\w+): ([\d.]+) thousand/s", text, re.M)]
    return rows


def results(folder):
    """All of it as one JSON value."""
    figures = [{"program": program, "count": count, "who": who, "measure": measure,
                "values": values}
               for program, one in read_figures(folder).items()
               for (count, who, measure), values in one.values.items()]
    counted = folder / "instructions.json"
    return {"runs": list(read_runs(folder).values()), "figures": figures,
            "instructions": json.loads(counted.read_text("utf-8")) if counted.exists() else None}

"""The performance targets and their results: read, compare, keep, and show them as tables.

bench/targets.toml has the targets, and names the benchmark and the figure of each.
bench/results.json has the last result of each target from a quiet machine, with its run.
docs/benchmarks.md is written from these two files.
"""

import dataclasses
import json
import tomllib

from bench_pages.blocks import Paragraph, Table
from bench_pages.figures import figure, short_count, size

# If other programs used more of the machine than this, the run does not count.
BUSY = 0.10
DIRTY = "-dirty"  # how git describes a commit with changes on top
AREAS = ("core", "runtime", "server", "engine", "cluster")
HEAD = ["benchmark", "target", "Detent", "noise", "best peer, same run", "ratio",
        "limit of the machine", "result", "run"]


@dataclasses.dataclass(frozen=True)
class Target:
    """One row. `bound` is the kind of `value`: most, least, or ratio (peer ÷ Detent)."""

    id: str
    area: str
    what: str
    program: str
    measure: str
    ours: str
    bound: str
    value: float
    count: int | None = None  # of timers or tasks; None: the largest measured count
    unit: str = ""
    rivals: tuple = ()
    limit: dict | str = ""  # a text, or the program, column and measure of a figure
    why: str = ""  # the reason of a miss: a key of [why]
    steady: bool = False  # does not depend on the load of the machine, such as bytes
    calibration: float | None = None  # ns of a dependent line on the machine of the target
    set_where: dict | None = None  # column, measure and value of a figure on that machine

    @property
    def wants_more(self):
        return self.bound == "least"


def load_targets(path):
    """The targets in their order, and the reasons of misses by key."""
    data = tomllib.loads(path.read_text("utf-8"))
    targets = []
    for entry in data["target"]:
        targets += _expanded(data["defaults"][entry["area"]] | entry, data["calibration"])
    ids = [target.id for target in targets]
    twice = {each for each in ids if ids.count(each) > 1}
    if twice:
        raise ValueError(f"{path}: duplicate target ids: {', '.join(sorted(twice))}")
    return targets, data["why"]


def _expanded(entry, calibration):
    """A target for each count. With `counts`, `most`, `least` and `ratio` are lists."""
    entry = dict(entry)
    bound = next(each for each in ("most", "least", "ratio") if each in entry)
    values, counts = entry.pop(bound), entry.pop("counts", None)
    scales = entry.pop("scales", False)
    entry["rivals"] = tuple(entry.get("rivals", ()))
    if counts is None:
        return [Target(**entry, bound=bound, value=values)]
    return [Target(**entry | {"id": f"{entry['id']}-{short_count(count).replace(' ', '').lower()}",
                              "what": f"{entry['what']}, {short_count(count)}"},
                   bound=bound, value=value, count=count,
                   calibration=calibration.get(str(count)) if scales else None)
            for count, value in zip(counts, values, strict=True)]


def sources(target):
    """The benchmarks that can measure the target: its own, and variants with other sizes or
    promises."""
    return [target.program.replace("_bench", ending)
            for ending in ("_bench", "_large", "_huge", "_interval", "_waiting")]


def measured_row(target, figures, program=None):
    """The result of a target in `figures` (program → Figures); None if it was not measured."""
    for source in (program,) if program else sources(target):
        mine = figures.get(source)
        if mine is None:
            continue
        count = target.count or max((n for n in mine.counts if mine.get(
            n, target.ours, target.measure) is not None), default=0)
        if mine.get(count, target.ours, target.measure) is None:
            continue
        row = _row(target, figures, mine, count)
        if target.bound != "ratio" or "best" in row:  # a ratio also needs a peer
            return row
    return None


def _row(target, figures, mine, count):
    row = {"ours": mine.get(count, target.ours, target.measure), "count": count,
           "noise": mine.noise(count, target.ours, target.measure)}
    known = {rival: mine.get(count, rival, target.measure) for rival in target.rivals}
    known = {rival: value for rival, value in known.items() if value is not None}
    if known:
        choose = max if target.wants_more else min
        row["rival"] = choose(known, key=known.get)
        row["best"] = known[row["rival"]]
    machine = figures.get("limit_bench")
    if isinstance(target.limit, dict):
        source = mine if target.limit["program"] == target.program else machine
        row["limit"] = source.get(count, target.limit["who"],
                                  target.limit["measure"]) if source else None
    if target.calibration and machine:
        line = machine.get(count, "64 B / 4 KiB", "dependent")
        row["scale"] = round(line / target.calibration, 2) if line else None
    if target.set_where:
        here = mine.get(count, target.set_where["who"], target.set_where["measure"])
        row["scale"] = round(here / target.set_where["value"], 2) if here else None
    return {key: round(value, 4) if isinstance(value, float) else value
            for key, value in row.items() if value is not None}


def keep(kept, targets, figures, runs):
    """Takes over the results of quiet runs. From a busy run it takes only steady results that have
    no earlier value. It takes nothing from failed runs and from uncommitted sources. Returns a
    sentence for each thing that it does not take, with the reason."""
    said = [f"{program}: {problem}; its results are not kept" for program, run in runs.items()
            if (problem := problem_of(run))]
    runs = {program: run for program, run in runs.items() if not problem_of(run)}
    if runs.get("limit_bench", {"foreign": 1})["foreign"] > BUSY:
        figures = {name: one for name, one in figures.items() if name != "limit_bench"}
    for program, run in runs.items():
        is_quiet = run["foreign"] <= BUSY
        fresh = {target.id: measured_row(target, figures, program) for target in targets
                 if program in sources(target)
                 and (is_quiet or target.steady and target.id not in kept["rows"])}
        fresh = {name: row for name, row in fresh.items() if row}
        lines = growth_lines(figures[program], is_quiet) if (
            program in GROWTH and program in figures and (
                is_quiet or program not in kept["growth"])) else {}
        lost = lost_sizes(kept["growth"].get(program, {}).get("lines", {}), lines)
        if lines and lost:
            said.append(f"{program}: the lines of growth are not replaced, because this run does "
                        f"not have {', '.join(lost)}")
        grows = lines and not lost
        if not is_quiet:
            said.append(f"{program}: other programs used {run['foreign']:.0%} of the machine, so "
                        "earlier results are not replaced")
        name = f"{run['date']} {run['commit']} {run['command']}"
        for row in fresh.values():
            row["run"] = name
        kept["rows"].update(fresh)
        if grows:
            kept["growth"][program] = {"run": name, "lines": lines}
        if fresh or grows:
            kept["runs"][name] = run
    used = {row["run"] for row in [*kept["rows"].values(), *kept["growth"].values()]}
    kept["runs"] = {name: run for name, run in kept["runs"].items() if name in used}
    return said


# The benchmarks whose results are kept as lines, for charts of cost against size.
GROWTH = ("growth_bench", "timers_growth", "timers_workloads")


def problem_of(run):
    """The reason why the figures of a run do not count; None if they count."""
    if run["status"] != 0:
        return f"it ended with status {run['status']}"
    if run["commit"].endswith(DIRTY) or run["commit"] == "unknown":
        return "its sources have uncommitted changes"
    return None


def lost_sizes(old, new):
    """The points of `old` (column → measure → [[size, figure]]) that `new` lacks, as texts."""
    return [f"{who} {measure} {size(at)}" for who, lines in old.items()
            for measure, line in lines.items() for at, _ in line
            if at not in dict(new.get(who, {}).get(measure, ()))]


def is_by_the_wall(measure):
    """Returns True for wall time and rates of wall time, by the unit. The load of the machine
    changes them. CPU time has the unit "us", or no unit in the benchmarks of the wheels."""
    return measure.split()[-1] in ("s", "ms", "/s")


def growth_lines(figures, is_quiet=True):
    """column → measure → [[count, median]]; from a busy machine, no wall times."""
    lines = {}
    for who in figures.queues:
        for measure in figures.measures:
            if not is_quiet and is_by_the_wall(measure):
                continue
            if line := figures.line(who, measure):
                lines.setdefault(who, {})[measure] = [list(point) for point in line]
    return lines


def load_kept(path):
    if not path.exists():
        return {"rows": {}, "runs": {}, "growth": {}}
    return json.loads(path.read_text("utf-8"))


def verdict(target, row):
    """met, missed or not measured."""
    if row is None:
        return "not measured"
    aim = target.value * row.get("scale", 1)
    if target.bound == "ratio":
        if "best" not in row:
            return "not measured"
        return "met" if row["best"] / row["ours"] >= aim else "missed"
    return "met" if (row["ours"] >= aim if target.wants_more else row["ours"] <= aim) else "missed"


def ratio(target, row):
    """Detent compared with the best peer; above 1, Detent is better."""
    if not row or "best" not in row or min(row["ours"], row["best"]) <= 0:
        return None
    quotient = row["ours"] / row["best"]
    return quotient if target.wants_more else 1 / quotient


def area_table(area, targets, kept):
    names = list(kept["runs"])
    rows = [_table_row(target, kept["rows"].get(target.id), names)
            for target in targets if target.area == area]
    return Table(HEAD, rows)


def _table_row(target, row, run_names):
    first = f"{target.what} <sub>`{target.id}`</sub>"
    result = verdict(target, row)
    if row is None:
        return [first, _aim(target, {}), "–", "–", "–", "–", _limit(target, {}), result, "–"]
    best = f"{figure(row['best'])} {row['rival']}" if "best" in row else "–"
    times = ratio(target, row)
    noise = f"{row['noise']:.0%}".replace("%", " %") if "noise" in row else "–"
    return [first, _aim(target, row), _with_unit(row["ours"], target.unit), noise, best,
            f"{times:.2g} ×" if times is not None and times < 10 else
            f"{times:.0f} ×" if times is not None else "–",
            _limit(target, row), "**missed**" if result == "missed" else result,
            str(run_names.index(row["run"]) + 1)]


def _with_unit(value, unit):
    return f"{figure(value)} {unit}".strip()


def _aim(target, row):
    if target.bound == "ratio":
        return f"≥ {target.value:g} × faster"
    sign = "≥" if target.wants_more else "≤"
    text = f"{sign} {figure(target.value)}{' ' + target.unit if target.unit else ''}"
    scale = row.get("scale")
    return f"{text} (here {figure(target.value * scale)})" if scale else text


def _limit(target, row):
    if isinstance(target.limit, str):
        return target.limit or "–"
    if "limit" not in row:
        return target.limit["text"]
    return f"{_with_unit(row['limit'], target.unit)}: {target.limit['text']}"


def summary(targets, kept):
    """The number of targets that are met, missed and not measured, by area."""
    rows = []
    for area in AREAS:
        results = [verdict(target, kept["rows"].get(target.id)) for target in targets
                   if target.area == area]
        rows.append([area] + [str(results.count(each)) for each in
                              ("met", "missed", "not measured")])
    rows.append(["all"] + [str(sum(int(row[i]) for row in rows)) for i in (1, 2, 3)])
    return Table(["", "met", "missed", "not measured"], rows)


def misses(targets, why, kept):
    """A paragraph for each reason of missed targets, with the ids of these targets."""
    concerned = {}
    for target in targets:
        if verdict(target, kept["rows"].get(target.id)) == "missed":
            concerned.setdefault(target.why, []).append(target.id)
    blocks = []
    for key, ids in concerned.items():
        names = ", ".join(f"`{each}`" for each in ids)
        blocks.append(Paragraph(f"**{names}.** {why[key].strip() if key in why else UNEXPLAINED}"))
    return blocks or [Paragraph("All measured targets are met.")]


UNEXPLAINED = "Not explained yet."


def commit_text(run):
    """The commit of a run. Runs with uncommitted changes are not kept, except old ones."""
    commit = run["commit"].removesuffix(DIRTY)
    return commit if commit == run["commit"] else f"{commit} **and uncommitted changes**"


def runs_table(kept):
    return Table(["run", "commit", "date", "command", "machine", "CPU used by others"],
                 [[str(number), commit_text(run), run["date"], f"`{run['command']}`",
                   run["machine"], "unknown" if run["foreign"] is None else
                   f"{run['foreign']:.0%}".replace("%", " %")]
                  for number, run in enumerate(kept["runs"].values(), 1)])

"""Targets of speed and what was measured for them: read, judged, kept, and shown as tables.

bench/targets.toml says what is aimed at and which figure of which benchmark tells. What was
measured last, on a machine that was quiet meanwhile, is kept in bench/results.json, a row a target
with the run that it is of; docs/benchmarks.md is made from these two files alone.
"""

import dataclasses
import json
import tomllib

from bench_pages.blocks import Paragraph, Table
from bench_pages.figures import figure, short_count, size

# A run during which others used more of the machine says nothing about it.
BUSY = 0.10
DIRTY = "-dirty"  # how git describes a commit with changes on top
AREAS = ("core", "runtime", "server", "engine", "cluster")
HEAD = ["target", "aim", "ours", "noise", "best peer, same run", "ratio", "the limit", "", "run"]


@dataclasses.dataclass(frozen=True)
class Target:
    """One row. `bound` is how `value` binds: most, least, or ratio (the peer's over ours)."""

    id: str
    area: str
    what: str
    program: str
    measure: str
    ours: str
    bound: str
    value: float
    count: int | None = None  # of timers or tasks; None: whatever was measured
    unit: str = ""
    rivals: tuple = ()
    limit: dict | str = ""  # a text, or program, who and measure of a figure
    why: str = ""  # what is known of a miss: a key of [why]
    steady: bool = False  # bytes, and what else does not depend on how busy the machine is
    calibration: float | None = None  # ns of a dependent line where the aim was set
    set_where: dict | None = None  # who, measure and value of a figure where the aim was set

    @property
    def wants_more(self):
        return self.bound == "least"


def load_targets(path):
    """The targets in order, and the explanations of misses by their keys."""
    data = tomllib.loads(path.read_text("utf-8"))
    targets = []
    for entry in data["target"]:
        targets += _expanded(data["defaults"][entry["area"]] | entry, data["calibration"])
    ids = [target.id for target in targets]
    twice = {each for each in ids if ids.count(each) > 1}
    if twice:
        raise ValueError(f"{path}: more than one target is called {', '.join(sorted(twice))}")
    return targets, data["why"]


def _expanded(entry, calibration):
    """A target for each of its counts; `most`, `least` and `ratio` are then lists, too."""
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
    """Whose figures tell: the benchmark's own run, or those with other sizes or promises beside
    it."""
    return [target.program.replace("_bench", ending)
            for ending in ("_bench", "_large", "_huge", "_interval", "_waiting")]


def measured_row(target, figures, program=None):
    """What `figures` (program → Figures) say of a target; None when that was not measured."""
    for source in (program,) if program else sources(target):
        mine = figures.get(source)
        if mine is None:
            continue
        count = target.count or max((n for n in mine.counts if mine.get(
            n, target.ours, target.measure) is not None), default=0)
        if mine.get(count, target.ours, target.measure) is None:
            continue
        row = _row(target, figures, mine, count)
        if target.bound != "ratio" or "best" in row:  # ours alone says nothing of a ratio
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
    """Takes over what was measured: all of quiet runs; of busy ones only what nobody has measured
    yet and other work moves little; nothing of runs that failed, or of sources that no commit has.
    Returns: sentences on what is not taken, and why."""
    said = [f"{program}: {problem}, so nothing of it is kept" for program, run in runs.items()
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
            said.append(f"{program}: its lines of growth stay as they are, since this run has no "
                        f"{', '.join(lost)}")
        grows = lines and not lost
        if not is_quiet:
            said.append(f"{program}: others used {run['foreign']:.0%} of the machine, so it "
                        "replaces nothing that was measured before")
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


# What is kept as lines, for charts of cost against size.
GROWTH = ("growth_bench", "timers_growth")


def problem_of(run):
    """Why its figures tell nothing of a commit; None when they do."""
    if run["status"] != 0:
        return f"it ended with status {run['status']}"
    if run["commit"].endswith(DIRTY) or run["commit"] == "unknown":
        return "it ran on changes that are not committed"
    return None


def lost_sizes(old, new):
    """What of lines (who → measure → [[size, figure]]) others do not have, as texts."""
    return [f"{who} {measure} {size(at)}" for who, lines in old.items()
            for measure, line in lines.items() for at, _ in line
            if at not in dict(new.get(who, {}).get(measure, ()))]


def is_by_the_wall(measure):
    """Whether it is a time or a rate of wall time, by its unit: other work moves those. CPU time
    has "us" or, of the wheels, no unit."""
    return measure.split()[-1] in ("s", "ms", "/s")


def growth_lines(figures, is_quiet=True):
    """who → measure → [[count, median]]; nothing by the wall of a machine that was busy."""
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
    """Above 1 is better than the best peer."""
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
    """How many are met, missed and not measured, by area."""
    rows = []
    for area in AREAS:
        results = [verdict(target, kept["rows"].get(target.id)) for target in targets
                   if target.area == area]
        rows.append([area] + [str(results.count(each)) for each in
                              ("met", "missed", "not measured")])
    rows.append(["together"] + [str(sum(int(row[i]) for row in rows)) for i in (1, 2, 3)])
    return Table(["", "met", "missed", "not measured"], rows)


def misses(targets, why, kept):
    """An explanation, and whom it concerns; misses without one are told as such."""
    concerned = {}
    for target in targets:
        if verdict(target, kept["rows"].get(target.id)) == "missed":
            concerned.setdefault(target.why, []).append(target.id)
    blocks = []
    for key, ids in concerned.items():
        names = ", ".join(f"`{each}`" for each in ids)
        blocks.append(Paragraph(f"**{names}.** {why[key].strip() if key in why else UNEXPLAINED}"))
    return blocks or [Paragraph("Nothing is missed.")]


UNEXPLAINED = "Not explained yet."


def commit_text(run):
    """Runs of an uncommitted tree are not kept any more; older ones are told as such."""
    commit = run["commit"].removesuffix(DIRTY)
    return commit if commit == run["commit"] else f"{commit} **and changes not committed**"


def runs_table(kept):
    return Table(["run", "commit", "when", "command", "machine", "others used"],
                 [[str(number), commit_text(run), run["date"], f"`{run['command']}`",
                   run["machine"], "not noted" if run["foreign"] is None else
                   f"{run['foreign']:.0%}".replace("%", " %")]
                  for number, run in enumerate(kept["runs"].values(), 1)])

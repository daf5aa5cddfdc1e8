"""Figures of the benchmarks: reads their CSV files and answers medians."""

import csv
import dataclasses
import math
import statistics

TIE = 1.1  # two figures nearer than this are not told apart


class Figures:
    """Medians of one CSV file with the columns timers, queue, measure, repetition, value; for other
    benchmarks a queue is whoever took part, and the timers are tasks, connections and the like."""

    def __init__(self, path):
        with open(path, newline="") as file:
            self._take(csv.DictReader(file))

    @classmethod
    def of(cls, rows):
        """Of (count, queue, measure, value) instead of a file."""
        figures = cls.__new__(cls)
        figures._take({"timers": count, "queue": queue, "measure": measure, "value": value}
                      for count, queue, measure, value in rows)
        return figures

    def _take(self, rows):
        values = {}
        for row in rows:
            key = int(row["timers"]), row["queue"], row["measure"]
            values.setdefault(key, []).append(float(row["value"]))
        self.values = values
        self._medians = {key: statistics.median(list_) for key, list_ in values.items()}
        # Each in the order the file first names it.
        self.counts = sorted({count for count, _, _ in values})
        self.queues = list(dict.fromkeys(queue for _, queue, _ in values))
        self.measures = list(dict.fromkeys(measure for _, _, measure in values))

    def get(self, count, queue, measure):
        """The median; None when the queue sat out."""
        return self._medians.get((count, queue, measure))

    def noise(self, count, queue, measure):
        """How far repetitions lie apart, as a share of their median; None if there is only one."""
        values = self.values.get((count, queue, measure), ())
        if len(values) < 2 or not self._medians[count, queue, measure]:
            return None
        return (max(values) - min(values)) / abs(self._medians[count, queue, measure])

    def line(self, queue, measure):
        """(timer count, median) for each count that the queue took part in."""
        points = [(count, self.get(count, queue, measure)) for count in self.counts]
        return [(count, value) for count, value in points if value is not None]


@dataclasses.dataclass
class Winner:
    """Who is cheaper from one timer count on; None says that the two are about equal."""

    queue: str | None
    from_count: int


def winners(figures, pair, measure):
    """Who is the cheaper of `pair` over the counts both took part in, earliest first."""
    lines = [dict(figures.line(queue, measure)) for queue in pair]
    result, before = [], None
    for count in sorted(lines[0].keys() & lines[1].keys()):
        first, second = lines[0][count], lines[1][count]
        cheaper = None
        if max(first, second) > TIE * max(min(first, second), 0.1):
            cheaper = pair[0] if first < second else pair[1]
        if not result or cheaper != result[-1].queue:
            result.append(Winner(cheaper, _crossing(before, (count, first, second))))
        before = count, first, second
    return result


def _crossing(before, after):
    """The count at which two straight lines through the logarithms meet; if they don't, the middle.

    It is rounded to two digits: the counts measured stand far apart.
    """
    if before is None:
        return after[0]
    (n1, a1, b1), (n2, a2, b2) = before, after
    gap1, gap2 = math.log(max(a1, 0.1) / max(b1, 0.1)), math.log(max(a2, 0.1) / max(b2, 0.1))
    share = gap1 / (gap1 - gap2) if gap1 * gap2 < 0 else 0.5
    count = math.exp(math.log(n1) + share * (math.log(n2) - math.log(n1)))
    return int(float(f"{count:.1e}"))


def short_count(count):
    """10 000 → "10 k"."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if count >= unit:
            return f"{count / unit:g} {name}"
    return str(count)


def short_value(value):
    """Three digits are all that such figures hold."""
    if value is None:
        return "-"
    if value >= 1_000:
        return f"{float(f'{value:.3g}'):,.0f}".replace(",", " ")
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def figure(value):
    """Three digits, however small: 0.0466, 2.5, 97.1, 691 000."""
    if value is None:
        return "–"
    return short_value(value) if value >= 1_000 else f"{float(f'{value:.3g}'):g}"


def size(count):
    """A size on an axis: 10 k, 16 Ki, 65.5 k."""
    if count >= 1_024 and count % 1_024 == 0 and count % 1_000:
        return f"{count // 1_024} Ki"
    return short_count(int(float(f"{count:.3g}")))

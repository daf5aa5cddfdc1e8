"""The history of a cluster test: the requests of clients and their answers, and the rules for them.

The clients' threads append events to the history. It is checked at the end. Times are milliseconds
since 1970. Clients and nodes use the same clock, because all of them run on one machine. An event
has the time before the request was sent (`start`) and the time after its answer came (`end`). The
order of two events is known only if these spans do not overlap. If no answer came, or if the answer
was "try again", the effect is not known: the outcome is `unknown`.
"""

import collections
import dataclasses
import math

# The largest difference between the time of an answer at the node and at the client. Clocks are
# read
# in whole milliseconds.
SLACK_MS = 20
TIMED = "timed"  # the queue that always has a worker: its lateness is the lateness of the cluster


@dataclasses.dataclass
class Event:
    kind: str  # put, handout, complete, fail, extend, cancel, move, read; take: an unanswered lease
    start: float
    end: float
    outcome: str  # done, unknown, conflict, missing, refused
    task: int = 0  # its id; 0: not known
    name: str = ""  # the client's name for the task, which is its payload
    queue: str = ""
    key: str = ""
    lease: str = ""
    at: float = 0  # handout: its time, by the node's clock
    due: float = 0  # the due time of the task; after put and fail: the earliest possible due time
    until: float = 0  # handout: the end of the lease; extend: the latest possible end


@dataclasses.dataclass
class Fault:
    kind: str
    start: float
    end: float
    voids_until: float = 0  # leases handed out until then can be void; 0: no lease may be void
    shards: frozenset = frozenset(range(256))  # only leases of these shards
    epoch: float = math.inf  # and only leases of epochs up to this one

    def may_void(self, handout, over):
        """True if the lease was open at the fault and may be void after it."""
        epoch = int(handout.lease.split("-")[0], 16)
        return (handout.task % 256 in self.shards and epoch <= self.epoch and
                handout.at <= self.voids_until and self.start < over)


class History:
    """Events in any order. Appending is thread-safe."""

    def __init__(self):
        self.events = []
        self.faults = []
        self.quiet = []  # spans (start, end) without a fault

    def add(self, *arguments, **fields):
        event = Event(*arguments, **fields)
        self.events.append(event)
        return event


class Life:
    """All events of one task."""

    def __init__(self):
        self.events = collections.defaultdict(list)

    def of(self, *kinds):
        return [event for kind in kinds for event in self.events[kind]]

    def ends(self):
        """Returns the events that ended the task, or may have ended it."""
        return [event for event in self.of("complete", "cancel")
                if event.outcome in ("done", "unknown")]


class Report:
    def __init__(self):
        self.violations = []
        self.figures = collections.Counter()
        self.lateness = []  # in the quiet phases, in milliseconds

    def violated(self, rule, event, why):
        self.violations.append(f"{rule}: task {event.task} {event.name} of {event.queue}: {why}")


def check(history):
    """Checks all rules and returns the report."""
    report = Report()
    lives = collections.defaultdict(Life)
    for event in history.events:
        if event.task:
            lives[event.task].events[event.kind].append(event)
    for life in lives.values():
        for events in life.events.values():
            events.sort(key=lambda event: event.at or event.start)
        check_lost(life, report)
        check_early(life, report)
        check_ended(life, report)
        check_leases(life, history.faults, report)
    check_names(history, report)
    check_order(history, lives, report)
    count(history, report)
    return report


def check_lost(life, report):
    """Rule: an acknowledged task exists until it has ended."""
    made = [put for put in life.of("put") if put.outcome == "done"]
    for missing in (event for event in life.of("read", "cancel", "move")
                    if event.outcome == "missing"):
        ends = [end for end in life.ends() if end is not missing and end.start < missing.end]
        if any(put.end < missing.start for put in made) and not ends:
            report.violated("lost", missing, f"answered 404 to a {missing.kind}")
    if made and not life.ends() and not any(
            read.outcome == "done" for read in life.of("read")):
        report.violated("lost", made[0], "neither ended nor seen at the end")


def check_early(life, report):
    for handout in life.of("handout"):
        if handout.at < handout.due:
            report.violated("early", handout, f"{handout.due - handout.at} ms by the node's times")
        if handout.end < handout.due:
            report.violated("early", handout, f"answered {handout.due - handout.end} ms before due")
        # Find the last known change of the due time before the hand-out. Skip the check if another
        # change may have come after it.
        changes = [event for event in life.of("put", "move", "fail")
                   if event.outcome in ("done", "unknown") and event.start < handout.at]
        last = max(changes, key=lambda event: event.end, default=None)
        if last is None or last.outcome == "unknown" or last.end > handout.at or any(
                other is not last and other.end > last.start for other in changes):
            continue
        if handout.at < last.due - 1:
            report.violated("early", handout, f"{last.due - handout.at} ms, after a {last.kind}")


def check_ended(life, report):
    """Rule: after an acknowledged end, a task never comes again, and it ends only once."""
    done = [end for end in life.ends() if end.outcome == "done"]
    for end in done:
        for handout in life.of("handout"):
            if handout.start > end.end or handout.at > end.end + SLACK_MS:
                report.violated("came again", handout, f"{handout.at - end.end:.0f} ms after the "
                                f"acknowledged {end.kind}")
    if len(done) > 1:
        report.violated("ended twice", done[1], " and ".join(end.kind for end in done))
    for change in (event for event in life.of("complete", "fail") if event.outcome == "done"):
        own = [h for h in life.of("handout") if h.lease == change.lease]
        newer = [h for h in life.of("handout") if h.lease != change.lease and own
                 and h.at > own[0].at and h.end < change.start]
        if newer:
            report.violated("stale write", change, f"{change.kind} by lease {change.lease} was "
                            f"accepted while {newer[0].lease} was out")


def runs_out(handout, life):
    """Returns the earliest possible end of the lease, with all acknowledged extensions."""
    return max([handout.until, *(event.until for event in life.of("extend")
                                 if event.lease == handout.lease and event.outcome == "done")])


def open_until(handout, life):
    """Returns the earliest time at which the lease was over, as far as the client can know."""
    closes = [event.start for event in life.of("complete", "fail") if event.lease == handout.lease
              and event.outcome in ("done", "unknown", "conflict")]
    return min([runs_out(handout, life), *closes])


def beside_fault(handout, before, faults):
    """For a report: the time of the hand-out relative to the last fault of its shard."""
    fault = max((fault for fault in faults
                 if handout.task % 256 in fault.shards and fault.start < before),
                key=lambda fault: fault.start, default=None)
    return "" if fault is None else (
        f"; it was handed out {handout.at - fault.start:.0f} ms after the start of a {fault.kind} "
        f"that voids those of {fault.voids_until - fault.start:.0f} ms")


def check_leases(life, faults, report):
    """Rule: while a lease is open, its task is not handed out again, except after a fault that can
    make the lease void."""
    handouts = life.of("handout")
    for handout in handouts:
        over = open_until(handout, life)
        voiding = [fault for fault in faults if fault.may_void(handout, over)]
        report.figures["leases open at faults"] += bool(voiding)
        uses = [event for event in life.of("complete", "fail", "extend")
                if event.lease == handout.lease]
        refused = [event for event in uses if event.outcome == "conflict"]
        if refused and not voiding and refused[0].end < runs_out(handout, life) and all(
                event.start >= refused[0].start for event in uses if event.kind != "extend"):
            report.violated("lease lost", refused[0], f"{handout.lease} was good for another "
                            f"{runs_out(handout, life) - refused[0].end:.0f} ms"
                            f"{beside_fault(handout, refused[0].end, faults)}")
        again = [other for other in handouts if handout.at <= other.at < over - 1
                 and other.lease != handout.lease]
        if not again:
            continue
        report.figures["duplicates"] += 1
        if not any(fault.start < again[0].at for fault in voiding):
            report.violated("two leases", again[0], f"{handout.lease} was open for another "
                            f"{over - again[0].at:.0f} ms, and no fault had voided it"
                            f"{beside_fault(handout, again[0].at, faults)}")


def check_names(history, report):
    """Rules: one id is one task; a key makes one task, however often it is sent; every task was
    requested."""
    names = {}
    ids = collections.defaultdict(set)
    asked = {event.name: event for event in history.events if event.kind == "put"}
    for event in history.events:
        if event.kind not in ("put", "handout") or not event.task:
            continue
        if names.setdefault(event.task, event.name) != event.name:
            report.violated("one id for two", event, f"it is {names[event.task]}, too")
        ids[event.name].add(event.task)
        if event.name not in asked:
            report.violated("invented", event, "nobody asked for it")
    for name, made in ids.items():
        put = asked.get(name)
        if put and put.key and len(made) > 1:
            report.violated("one key, two tasks", put, f"ids {sorted(made)}")


def check_order(history, lives, report):
    """Rule: in a quiet phase, a queue hands out its ready tasks in the order of due times. Also
    collects the lateness. A task may have been in a lease without an answer, and have come back."""
    unanswered = collections.defaultdict(list)
    for event in history.events:
        if event.kind == "take":
            unanswered[event.queue].append(event)
    for begin, end in history.quiet:
        queues = collections.defaultdict(list)
        for life in lives.values():
            handouts = life.of("handout")
            made = [put for put in life.of("put") if put.outcome == "done"]
            if handouts and handouts[0].queue == TIMED and begin < handouts[0].due and \
                    handouts[0].at < end:
                report.lateness.append(handouts[0].at - handouts[0].due)
            is_plain = len(handouts) == 1 and made and not life.of("move", "cancel", "extend")
            if is_plain and begin < made[0].start and handouts[0].at < end:
                queues[handouts[0].queue].append((handouts[0].at, made[0].end, handouts[0]))
        for handed in queues.values():
            handed.sort(key=lambda entry: entry[0])
            # The hand-out with the latest due time so far. A hand-out with an earlier due time that
            # comes after it is out of order, if its task was ready before.
            latest = None
            for at, known, handout in handed:
                ready = max(known, handout.due)
                was_away = any(take.start < at and take.end > ready
                               for take in unanswered[handout.queue])
                if latest and handout.due < latest.due - 2 and at > latest.at and \
                        ready < latest.at - SLACK_MS and not was_away:
                    report.violated("order", handout, f"after {latest.task}, which was due "
                                    f"{latest.due - handout.due} ms later")
                if latest is None or handout.due > latest.due:
                    latest = handout


def count(history, report):
    figures = report.figures
    for event in history.events:
        figures[f"{event.kind} {event.outcome}"] += 1
    losses = sum(fault.kind == "loss" for fault in history.faults)
    figures["faults"] = len(history.faults) - losses
    figures["shards lost"] = losses
    figures["tasks acknowledged"] = len(
        {event.task for event in history.events if event.kind == "put" and event.task})

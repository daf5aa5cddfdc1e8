"""What clients asked of a cluster and were answered, and what must hold of it whatever failed.

The history is a list of events that the clients' threads append to; it is checked when all is over.
Times are in milliseconds since 1970, those of the clients and those of the nodes by the same clock,
because all run on one machine. An event has the time before the request went out (`start`) and
after its answer came (`end`), so an order is concluded only where the two do not overlap. An answer
that did not come, or said "try again", leaves open what was done: the outcome is then `unknown`.
"""

import collections
import dataclasses
import math

# Between the instant of an answer as the node knows it and as the client does; clocks are read in
# whole milliseconds.
SLACK_MS = 20
TIMED = "timed"  # the queue with a worker always there: its lateness is the cluster's


@dataclasses.dataclass
class Event:
    kind: str  # put, handout, complete, fail, extend, cancel, move, read; take: a lease unanswered
    start: float
    end: float
    outcome: str  # done, unknown, conflict, missing, refused
    task: int = 0  # its id; 0: not known
    name: str = ""  # the client's own name of the task, in its payload
    queue: str = ""
    key: str = ""
    lease: str = ""
    at: float = 0  # handout: when, by the node
    due: float = 0  # the task's due time; put, fail: at the earliest
    until: float = 0  # handout, extend: when the lease runs out; extend: at the latest


@dataclasses.dataclass
class Fault:
    kind: str
    start: float
    end: float
    voids_until: float = 0  # leases handed out till then are void after it; 0: all must hold
    shards: frozenset = frozenset(range(256))  # of these
    epoch: float = math.inf  # and of engines of epochs up to this

    def may_void(self, handout, over):
        """Whether the lease was open at the fault, which it may not have outlived."""
        epoch = int(handout.lease.split("-")[0], 16)
        return (handout.task % 256 in self.shards and epoch <= self.epoch and
                handout.at <= self.voids_until and self.start < over)


class History:
    """Events in any order. Appending is thread-safe."""

    def __init__(self):
        self.events = []
        self.faults = []
        self.quiet = []  # (start, end) without a fault

    def add(self, *arguments, **fields):
        event = Event(*arguments, **fields)
        self.events.append(event)
        return event


class Life:
    """All that is known of one task."""

    def __init__(self):
        self.events = collections.defaultdict(list)

    def of(self, *kinds):
        return [event for kind in kinds for event in self.events[kind]]

    def ends(self):
        """What ended the task, or may have."""
        return [event for event in self.of("complete", "cancel")
                if event.outcome in ("done", "unknown")]


class Report:
    def __init__(self):
        self.violations = []
        self.figures = collections.Counter()
        self.lateness = []  # of the quiet phases, in milliseconds

    def violated(self, rule, event, why):
        self.violations.append(f"{rule}: task {event.task} {event.name} of {event.queue}: {why}")


def check(history):
    """The report on a history."""
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
    """What was acknowledged and not ended is there when it is asked for."""
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
        # The last change of the due time that is known to have come before, if none may have
        # come after it.
        changes = [event for event in life.of("put", "move", "fail")
                   if event.outcome in ("done", "unknown") and event.start < handout.at]
        last = max(changes, key=lambda event: event.end, default=None)
        if last is None or last.outcome == "unknown" or last.end > handout.at or any(
                other is not last and other.end > last.start for other in changes):
            continue
        if handout.at < last.due - 1:
            report.violated("early", handout, f"{last.due - handout.at} ms, after a {last.kind}")


def check_ended(life, report):
    """A task whose end was acknowledged never comes again, and ends once."""
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
    """At the earliest, with the extensions that were acknowledged."""
    return max([handout.until, *(event.until for event in life.of("extend")
                                 if event.lease == handout.lease and event.outcome == "done")])


def open_until(handout, life):
    """When the lease was over at the earliest, as far as the client can know."""
    closes = [event.start for event in life.of("complete", "fail") if event.lease == handout.lease
              and event.outcome in ("done", "unknown", "conflict")]
    return min([runs_out(handout, life), *closes])


def beside_fault(handout, before, faults):
    """For a report: when a lease was handed out, beside the last fault of its shard."""
    fault = max((fault for fault in faults
                 if handout.task % 256 in fault.shards and fault.start < before),
                key=lambda fault: fault.start, default=None)
    return "" if fault is None else (
        f"; it was handed out {handout.at - fault.start:.0f} ms after the start of a {fault.kind} "
        f"that voids those of {fault.voids_until - fault.start:.0f} ms")


def check_leases(life, faults, report):
    """While a lease is open the task is not handed out again, but for a fault that voids leases."""
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
    """One id is one task; a key makes one task however often it is asked; nothing is invented."""
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
    """In a quiet phase a queue hands out by due time what lies ready. Lateness is of it, too. A
    task may have been in a lease that was not answered, and have come back since."""
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
            # The latest due time handed out so far, and when; a later one before an earlier one
            # that was ready by then is out of order.
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

"""Finds shards that a node lost by itself in the logs of the nodes, and judges the cause.

A node loses a shard, with its open leases, if a statement of the store takes too long, or if the
node cannot renew its lease in time. On an overloaded machine this can happen without a fault of the
program. Otherwise it is a violation, even if the clients saw no error.
"""

import dataclasses
import datetime
import re
import threading

from history import Fault
from patience import scheduled, share_of

STARVED = 0.5  # share of the wanted processor time below which processes are starved
LINE = re.compile(r"^(\S+) \w+ (.*?) shard=(\d+) epoch=(\d+)( .*)?$")
FAILED = "a shard's store failed; giving up the shard"
LOST = "the node lost a shard; its task leases are invalid"


@dataclasses.dataclass
class Loss:
    shard: int
    epoch: int
    began: float  # milliseconds since 1970; before any higher epoch began
    at: float  # milliseconds since 1970; the node noticed the loss
    why: str


def losses(logs):
    """Returns the losses in the nodes' logs at level debug. Each loss is listed once, as the first
    log line reports it."""
    lines = []
    for log in logs:
        for match in filter(None, map(LINE.match, log.splitlines())):
            time = datetime.datetime.fromisoformat(match[1].replace("Z", "+00:00"))
            lines.append((time.timestamp() * 1_000, match[2], int(match[3]), int(match[4]),
                          match[5] or ""))
    found = {}
    for at, what, shard, epoch, cause in sorted(lines):
        if what in (FAILED, LOST) and (shard, epoch) not in found:
            later = [time for time, _, other, higher, _ in lines
                     if other == shard and higher > epoch]
            found[shard, epoch] = Loss(shard, epoch, min([at, *later]), at, what + cause)
    return list(found.values())


def as_faults(found):
    """Returns the losses as faults, for the check of a history."""
    return [Fault("loss", loss.began, loss.at, loss.at, frozenset([loss.shard]), loss.epoch)
            for loss in found]


class Shares:
    """Measures again and again which share of the wanted processor time the processes got."""

    def __init__(self, processes, now_ms, seconds=0.5):
        self.processes = processes
        self.now_ms = now_ms
        self.seconds = seconds
        self.of = []  # (from, until, share)
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        since, before = self.now_ms(), scheduled(self.processes())
        while not self.is_over.wait(self.seconds):
            until, after = self.now_ms(), scheduled(self.processes())
            self.of.append((since, until, share_of(before, after)))
            since, before = until, after

    def stop(self):
        self.is_over.set()
        self.thread.join()

    def lowest(self, start, end):
        return min((share for since, until, share in self.of if since < end and until > start),
                   default=1)


def without_cause(found, faults, shares, lease_ms):
    """Returns a text for each loss that neither a fault nor a lack of processor time explains."""
    told = []
    for loss in found:
        is_of_fault = any(loss.shard in fault.shards and
                          fault.start <= loss.at and loss.began <= fault.end + lease_ms
                          for fault in faults)
        share = shares.lowest(loss.began - 2 * lease_ms, loss.at)
        if not is_of_fault and share >= STARVED:
            told.append(f"lost for nothing: shard {loss.shard} at epoch {loss.epoch}, with "
                        f"{share:.0%} of the processor time that was wanted: {loss.why}")
    return told

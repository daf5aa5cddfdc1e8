"""Shards that a node lost by itself, as the nodes' logs tell, and whether it could help it.

A statement of a store that takes too long, or a node that does not come to say in time that it is
alive, ends a shard's epoch with the leases that are open. On a machine with more to do than it can
that happens without any fault of ours; else it is a violation, whatever the clients saw.
"""

import dataclasses
import datetime
import re
import threading

from history import Fault
from patience import scheduled, share_of

STARVED = 0.5  # of the processor time that they wanted
LINE = re.compile(r"^(\S+) \w+ (.*?) shard=(\d+) epoch=(\d+)( .*)?$")
FAILED = "the store of a shard failed; it is given up"
LOST = "a shard was lost; its open leases are void"


@dataclasses.dataclass
class Loss:
    shard: int
    epoch: int
    began: float  # in milliseconds since 1970, as all times: before there was a higher epoch
    at: float  # the node noticed it
    why: str


def losses(logs):
    """Of the texts of the nodes' logs; each once, as it was told first."""
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
    """What these losses have made of leases, for the checker of a history."""
    return [Fault("loss", loss.began, loss.at, loss.at, frozenset([loss.shard]), loss.epoch)
            for loss in found]


class Shares:
    """Which share of the processor time that they wanted the processes had, again and again."""

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
    """What is said of those that neither a fault explains nor a want of processor time."""
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

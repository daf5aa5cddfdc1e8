"""The worker: leases due tasks of one queue, hands them to a function and reports the results.

If the handler returns, the task is completed. If it raises, the attempt has failed, and the task
comes again after its backoff (raise Retry to set the delay). The worker extends its leases at every
third of the visibility timeout, so a handler may take as long as it needs. While the server, or a
shard of a cluster, is away, the worker keeps its leases and repeats its reports until the lease
expires. Delivery is at least once: after a crash of either side a task comes again, so a handler
must be safe to run twice.

Threads: one leases, one extends, and `concurrency` threads run the handler.
"""

from __future__ import annotations

import collections
import logging
import os
import signal
import socket
import threading
import time
from datetime import timedelta
from types import FrameType
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence

from ._transport import Abort
from .client import Client, LeaseResult
from .errors import DetentError, Internal, Unavailable
from .values import Body, Duration, LeasedTask, put_duration

_log = logging.getLogger("detent")
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # between calls that fail


def _pause(failures: int) -> float:
    """The pause after `failures` failed calls in a row, at least one."""
    return _PAUSES[min(failures, len(_PAUSES)) - 1]


def _told(error: Exception) -> DetentError:
    """Returns a DetentError, also for the exceptions that an answer of unexpected form causes."""
    if isinstance(error, DetentError):
        return error
    return Internal(f"unexpected answer of the server: {error!r}")


_MAX_DELAY = timedelta(seconds=4_294_967_295)


def _within_limits(delay: Optional[Duration]) -> Optional[Duration]:
    """Clamps a delay. The server would refuse it, and the task would wait until its lease ends."""
    if isinstance(delay, timedelta):
        return min(max(delay, timedelta(0)), _MAX_DELAY)
    if isinstance(delay, (int, float)):
        return min(max(delay, 0), _MAX_DELAY.total_seconds())
    return delay


class Retry(Exception):
    """Raised by a handler: the attempt failed with this error. The task comes again after `delay`
    (immediately if negative; at most 136 years), default: after its backoff."""

    def __init__(self, error: str = "", delay: Optional[Duration] = None) -> None:
        super().__init__(error)
        self.delay = delay


class Dead(Exception):
    """Raised by a handler: the attempt failed with this error, and further attempts are useless.
    The task is dead."""


class WorkTask:
    """A task in the form that its handler gets: the members of LeasedTask, and `abandoned`.

    abandoned: set when the result is no longer wanted: the lease was lost, or stop() no longer
        waits. The worker does not report what the handler then returns.
    """

    def __init__(self, leased: LeasedTask) -> None:
        self.leased = leased
        self.id = leased.id
        self.attempt = leased.attempt
        self.queue = leased.queue
        self.key = leased.key
        self.payload = leased.payload
        self.priority = leased.priority
        self.due_at = leased.due_at
        self.lateness = leased.lateness
        self.headers = leased.headers
        self.abandoned = threading.Event()
        # Guarded by the worker's lock: has the handler finished, and when does the lease end?
        self._is_reported = False
        self._lease_end = 0.0


Handler = Callable[[WorkTask], Any]


class Worker:
    """Thread-safe. Runs once: start() and stop(), or run()."""

    def __init__(
        self,
        client: Client,
        queue: str,
        handler: Handler,
        *,
        concurrency: int = 1,
        prefetch: int = 0,
        visibility_timeout: float = 60,
        wait: float = 20,
        name: Optional[str] = None,
        on_error: Optional[Callable[[Exception], None]] = None,
    ) -> None:
        """client: must stay open.
        handler: called by up to `concurrency` threads at the same time.
        concurrency: number of tasks that are worked on at the same time.
        prefetch: number of further leased tasks, so that the next task is there when one ends; for
            short tasks.
        visibility_timeout: seconds; if this process dies, its tasks come again after this time.
        wait: seconds that a lease waits for a task; at most 60.
        name: a name for people; default: the names of this host and process.
        on_error: called for failed calls and lost leases; must not raise. Default: the logger
            "detent" logs them.
        """
        if concurrency < 1 or prefetch < 0 or visibility_timeout <= 0:
            raise ValueError("concurrency and visibility_timeout must be positive")
        self._client, self._queue, self._handler = client, queue, handler
        self._concurrency, self._capacity = concurrency, concurrency + prefetch
        self._visibility_timeout, self._wait = visibility_timeout, wait
        self._name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._on_error = on_error or (lambda error: _log.warning("%s: %s", queue, error))
        self._abort = Abort()
        self._now = time.monotonic
        self._changed = threading.Condition()
        # Guarded by the lock: tasks by lease, the tasks without a handler yet, the state of a stop.
        self._held: Dict[str, WorkTask] = {}
        self._waiting: Deque[WorkTask] = collections.deque()
        self._is_stopping = False
        self._is_grace_over = False
        self._is_over = False
        self._threads: List[threading.Thread] = []

    def start(self) -> None:
        """Starts the threads and returns immediately."""
        with self._changed:
            if self._threads or self._is_stopping:
                raise RuntimeError("a worker runs once")
            targets = [self._lease_on, self._extend_on] + [self._work_on] * self._concurrency
            self._threads = [threading.Thread(target=target, daemon=True) for target in targets]
        for thread in self._threads:
            thread.start()

    def stop(self, grace: float = 30) -> None:
        """Stops leasing, releases tasks that no handler has begun, and waits up to `grace` seconds
        for the handlers. Then it abandons and releases the running tasks, so that another worker
        gets them immediately. Idempotent. Handlers must not call it."""
        with self._changed:
            self._is_stopping = True
            unbegun = [task.leased.lease for task in self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
        self._abort.set()
        self._release(unbegun)
        with self._changed:
            self._changed.wait_for(lambda: not self._held, grace)
            self._is_grace_over = True
            self._changed.notify_all()
            late = [task for task in self._held.values() if not task._is_reported]
            for task in late:
                task.abandoned.set()
        self._release([task.leased.lease for task in late])
        with self._changed:
            self._changed.wait_for(lambda: not self._held)  # at most one call for each task
            self._is_over = True
            self._changed.notify_all()
        for thread in self._threads[:2] + ([] if late else self._threads[2:]):
            thread.join()

    def run(self, grace: float = 30) -> None:
        """Works until the process gets SIGTERM or SIGINT, then stops like stop(grace). Call it in
        the main thread."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)

        def on_signal(_: int, __: Optional[FrameType]) -> None:
            os.write(writer, b"s")  # a signal handler must not take locks

        numbers = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, on_signal) for number in numbers]
        try:
            self.start()
            os.read(reader, 1)
            self.stop(grace)
        finally:
            for number, handler in zip(numbers, before):
                signal.signal(number, handler)
            os.close(reader)
            os.close(writer)

    # ---- leasing ----

    def _lease_on(self) -> None:
        failures = 0
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._is_stopping or len(self._held) < self._capacity)
                if self._is_stopping:
                    return
                free = min(1000, self._capacity - len(self._held))
            try:
                tasks = self._client._lease(
                    self._queue, free, self._wait, self._visibility_timeout, self._name,
                    retry_for=0, abort=self._abort)
                failures = 0
            except Exception as error:  # also for an answer that lacks a field
                if self._abort.is_set():
                    return
                self._on_error(_told(error))
                failures += 1
                self._rest(_pause(failures))
                continue
            self._take([WorkTask(task) for task in tasks])

    def _take(self, tasks: List[WorkTask]) -> None:
        with self._changed:
            is_late = self._is_stopping
            for task in tasks:
                task._lease_end = self._now() + self._visibility_timeout
            if not is_late:
                self._held.update({task.leased.lease: task for task in tasks})
                self._waiting.extend(tasks)
                self._changed.notify_all()
        if is_late:
            self._release([task.leased.lease for task in tasks])

    def _rest(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping, seconds)

    def _release(self, leases: List[str]) -> None:
        if leases:
            self._try("release", leases, {})
        with self._changed:
            for lease in leases:
                self._held.pop(lease, None)
            self._changed.notify_all()

    # ---- keeping ----

    def _extend_on(self) -> None:
        body: Body = {}
        put_duration(body, "by", self._visibility_timeout)
        failures = 0
        while True:
            pause = self._visibility_timeout / 3
            with self._changed:
                if failures:
                    pause = min(pause, _pause(failures))
                if self._changed.wait_for(lambda: self._is_over, pause):
                    return
                leases = list(self._held)
            if not leases:
                failures = 0
                continue
            # Each call is made once. Repeats would delay the extension of leases on other shards.
            results = self._try("extend", leases, body, retry_for=0)
            self._keep([lease for lease, result in zip(leases, results) if result == "done"])
            self._lose([lease for lease, result in zip(leases, results) if result == "conflict"])
            is_known = not any(isinstance(result, Unavailable) for result in results)
            failures = 0 if is_known else failures + 1

    def _keep(self, leases: List[str]) -> None:
        with self._changed:
            end = self._now() + self._visibility_timeout
            for lease in leases:
                if lease in self._held:
                    self._held[lease]._lease_end = end

    def _lose(self, leases: List[str]) -> None:
        """Another worker may have these tasks now. Drops the tasks that have not begun."""
        with self._changed:
            held = [self._held[lease] for lease in leases if lease in self._held]
            lost = [task for task in held if not task._is_reported]
            for task in lost:
                task.abandoned.set()
                if task in self._waiting:
                    self._waiting.remove(task)
                    del self._held[task.leased.lease]
            self._changed.notify_all()
        for task in lost:
            self._on_error(RuntimeError(f"the lease of task {task.id} was lost"))

    # ---- working ----

    def _work_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_stopping)
                if not self._waiting:
                    return
                task = self._waiting.popleft()
            report = self._work(task)
            with self._changed:
                task._is_reported = not task.abandoned.is_set()
            if task._is_reported:
                self._repeat(task, report)
            with self._changed:
                self._held.pop(task.leased.lease, None)
                self._changed.notify_all()

    def _work(self, task: WorkTask) -> Callable[[], List[LeaseResult]]:
        """Runs the handler. Returns the call that reports to the server."""
        leases = [task.leased.lease]
        delay: Optional[Duration] = None
        final = False
        try:
            self._handler(task)
        except Dead as dead:
            text, final = str(dead), True
        except Retry as retry:
            text, delay = str(retry), _within_limits(retry.delay)
        except Exception as raised:
            text = f"{type(raised).__name__}: {raised}"
        else:
            return lambda: self._try("complete", leases, {})
        body: Body = {"error": text.encode(errors="replace").decode()}  # only text that JSON allows
        if final:
            body["final"] = True
        try:
            put_duration(body, "delay", delay)
        except Exception as wrong:  # an invalid delay
            self._on_error(wrong)
        return lambda: self._try("fail", leases, body)

    def _repeat(self, task: WorkTask, report: Callable[[], List[LeaseResult]]) -> None:
        """Reports until the server has given a result for the lease, or the lease has expired."""
        failures = 0
        while True:
            result = report()[0]
            if result == "conflict":
                # A call that was answered "unavailable" may have been carried out.
                or_done = ", or an earlier report was carried out" if failures else ""
                self._on_error(RuntimeError(f"the lease of task {task.id} was lost{or_done}"))
            if not isinstance(result, Unavailable):
                return
            failures += 1
            with self._changed:
                left = task._lease_end - self._now()
                if left <= 0 or self._changed.wait_for(
                        lambda: self._is_grace_over, min(left, _pause(failures))):
                    return

    def _try(
        self, verb: str, leases: Sequence[str], body: Body, *, retry_for: Optional[float] = None
    ) -> List[LeaseResult]:
        """Returns a result for each. An error is reported once for all of them."""
        try:
            results = self._client._report(verb, leases, body, retry_for=retry_for)
            if len(results) != len(leases):
                raise Internal("the server's answer has results for other leases")
        except Exception as error:
            lost = _told(error)
            results = [lost for _ in leases]
        errors = [result for result in results if isinstance(result, DetentError)]
        if errors:
            self._on_error(errors[0])
        return results

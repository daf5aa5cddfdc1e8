"""The client: one method per operation, with values as arguments and results.

If the server is away, restarts or answers 503 (with its Retry-After), the client repeats the call
for up to `retry_for` seconds. It does not repeat calls for which a second run has another effect:

    schedule and schedule_many of tasks without a key      would create two tasks
    trigger_schedule                                       would create two tasks
    purge, redrive                                         would change tasks that came in between

If a task has a key, it is safe to schedule it again, for this client and for you. `is_repeated` of
an error says that the request was sent more than once. For example, cancel() raises NotFound if the
first request was carried out and only its answer was lost. A repeated lease() takes other tasks.
The tasks of the lost answer come back after their visibility timeout.
"""

from __future__ import annotations

import builtins
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union
from urllib.parse import quote, urlencode

from ._transport import Abort, Repeat, Transport
from .errors import DetentError, Unavailable
from .values import (
    Backoff,
    Body,
    Duration,
    Instant,
    LeasedTask,
    NewTask,
    Queue,
    Schedule,
    ScheduledTask,
    Task,
    TaskKey,
    TaskPage,
    put_duration,
    put_payload,
    read_instant,
    to_instant,
    to_milliseconds,
)

TaskName = Union[str, TaskKey]
LeaseResult = Union[str, DetentError]

_SETTING_DURATIONS = ("visibility_timeout", "retention", "key_retention")


def _queue(name: str, rest: str = "") -> str:
    return f"/v1/queues/{quote(name, safe='')}{rest}"


def _schedule(name: str, rest: str = "") -> str:
    return f"/v1/schedules/{quote(name, safe='')}{rest}"


def _task(task: TaskName) -> str:
    if isinstance(task, TaskKey):
        return _queue(task.queue, f"/keys/{quote(task.key, safe='')}")
    return f"/v1/tasks/{quote(task, safe='')}"


def _due(delay: Optional[Duration], due_at: Optional[Instant]) -> Body:
    body: Body = {}
    put_duration(body, "delay", delay)
    if due_at is not None:
        body["due_at"] = to_instant(due_at)
    return body


def _names(tasks: Sequence[TaskName]) -> Body:
    """Ids, or keys of one queue."""
    keys = [task for task in tasks if isinstance(task, TaskKey)]
    if not keys:
        return {"ids": list(tasks)}
    if len(keys) != len(tasks) or len({key.queue for key in keys}) != 1:
        raise ValueError("tasks must all be ids, or all keys of one queue")
    return {"queue": keys[0].queue, "keys": [key.key for key in keys]}


class Client:
    """Thread-safe. Every method raises a DetentError (errors.py) if it fails. The answers of the
    server are in docs/reference/http.md."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:7070",
        *,
        token: Optional[str] = None,
        timeout: float = 30,
        retry_for: float = 15,
        ca_file: Optional[str] = None,
    ) -> None:
        """Does not connect yet.

        token: an access token, if the server requires one.
        timeout: seconds without a byte before a try is given up; lease() adds its wait. Must be
            greater than 0 and at most a day; otherwise ValueError.
        retry_for: seconds for which a call is repeated; 0: never.
        ca_file: PEM file with the trusted certificates for https; default: those of the system.
        """
        self._http = Transport(url, token, timeout, retry_for, ca_file)

    def close(self) -> None:
        """Closes the connections. You can use the client again."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- tasks ----

    def schedule(
        self,
        queue: str,
        payload: Any = None,
        *,
        delay: Optional[Duration] = None,
        due_at: Optional[Instant] = None,
        key: Optional[str] = None,
        priority: Optional[int] = None,
        max_attempts: Optional[int] = None,
        visibility_timeout: Optional[Duration] = None,
        backoff: Optional[Backoff] = None,
        webhook: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        on_key: Optional[str] = None,
        max_wait: Optional[Duration] = None,
    ) -> ScheduledTask:
        """When it returns, the task is on the server's disk. Raises Conflict if the key stands for
        a request with other fields, unless `on_key` is "replace" or "postpone"."""
        task = NewTask(queue, payload, delay, due_at, key, priority, max_attempts,
                       visibility_timeout, backoff, webhook, headers, on_key, max_wait)
        repeat = Repeat.always if key else Repeat.never
        return ScheduledTask.from_body(
            self._http.call("POST", "/v1/tasks", task.to_body(), repeat=repeat))

    def schedule_many(
        self, tasks: Iterable[NewTask]
    ) -> List[Union[ScheduledTask, DetentError]]:
        """Schedules up to 10 000 tasks in one commit. A result each, in order; a wrong task fails
        alone."""
        batch = builtins.list(tasks)
        repeat = Repeat.always if all(task.key for task in batch) else Repeat.never
        return self._http.call_for_each(
            "/v1/tasks/batch", batch, lambda some: [task.to_body() for task in some],
            ScheduledTask.from_body, repeat=repeat)

    def get(self, task: TaskName) -> Task:
        return Task.from_body(self._http.call("GET", _task(task)))

    def list(
        self,
        *,
        queue: Optional[str] = None,
        state: Optional[str] = None,
        key: Optional[str] = None,
        due_after: Optional[Instant] = None,
        due_before: Optional[Instant] = None,
        limit: int = 100,
        cursor: Optional[str] = None,
    ) -> TaskPage:
        """Returns a page of the tasks that match all arguments, in due order. A page can be short,
        or even empty, before the end: continue from its cursor until the cursor is None."""
        query: Dict[str, Union[str, int]] = {"limit": limit}
        for name, wanted in (("queue", queue), ("state", state), ("key", key), ("cursor", cursor)):
            if wanted is not None:
                query[name] = wanted
        for name, instant in (("due_after", due_after), ("due_before", due_before)):
            if instant is not None:
                query[name] = to_instant(instant)
        page = self._http.call("GET", "/v1/tasks?" + urlencode(query, quote_via=quote, safe=""))
        return TaskPage([Task.from_body(task) for task in page["tasks"]], page["cursor"])

    def cancel(self, task: TaskName) -> None:
        """Raises NotFound, and Conflict while the task is leased."""
        self._http.call("DELETE", _task(task))

    def cancel_many(self, tasks: Sequence[TaskName]) -> List[Optional[DetentError]]:
        """Ids, or keys of one queue; up to 10 000 in one commit. None for each cancelled task."""
        return self._http.call_for_each("/v1/tasks/cancel", tasks, _names, lambda _: None)

    def move(
        self,
        task: TaskName,
        *,
        delay: Optional[Duration] = None,
        due_at: Optional[Instant] = None,
    ) -> ScheduledTask:
        """Sets another due time. A dead task becomes live again. Raises as cancel() does."""
        return ScheduledTask.from_body(
            self._http.call("PATCH", _task(task), _due(delay, due_at)))

    def move_many(
        self,
        tasks: Sequence[TaskName],
        *,
        delay: Optional[Duration] = None,
        due_at: Optional[Instant] = None,
    ) -> List[Union[ScheduledTask, DetentError]]:
        due = _due(delay, due_at)
        return self._http.call_for_each(
            "/v1/tasks/move", tasks, lambda some: {**_names(some), **due}, ScheduledTask.from_body)

    def run_now(self, task_id: str) -> ScheduledTask:
        """Makes the task due now. Raises as cancel() does."""
        return ScheduledTask.from_body(self._http.call("POST", f"{_task(task_id)}/run"))

    # ---- leases; Worker (worker.py) calls these methods for you ----

    def lease(
        self,
        queue: str,
        *,
        max: int = 1,
        wait: Duration = 0,
        visibility_timeout: Optional[Duration] = None,
        worker: Optional[str] = None,
    ) -> List[LeasedTask]:
        """Leases due tasks, most urgent first. Waits (at most 60 s) if no task is ready."""
        return self._lease(queue, max, wait, visibility_timeout, worker)

    def _lease(
        self,
        queue: str,
        max: int,
        wait: Duration,
        visibility_timeout: Optional[Duration],
        worker: Optional[str],
        *,
        retry_for: Optional[float] = None,
        abort: Optional[Abort] = None,
    ) -> List[LeasedTask]:
        body: Body = {"max": max}
        put_duration(body, "wait", wait)
        put_duration(body, "visibility_timeout", visibility_timeout)
        if worker is not None:
            body["worker"] = worker
        patience = 60 if isinstance(wait, str) else to_milliseconds(wait) / 1000
        answer = self._http.call("POST", _queue(queue, "/lease"), body, patience=patience,
                                 retry_for=retry_for, abort=abort)
        return [LeasedTask.from_body(task) for task in answer["tasks"]]

    def complete(self, leases: Sequence[str]) -> List[str]:
        """Reports that the work is done. Returns the status of each lease. "done"; "conflict": the
        lease is no longer held; "unavailable": the result is not known and the lease may still be
        held, because its shard of a cluster was away for all of `retry_for`; "error": the server
        failed at this lease. A repeated call may answer "conflict" if the first call was carried
        out."""
        return self._leases("complete", leases, {})

    def fail(
        self,
        leases: Sequence[str],
        *,
        error: str = "",
        delay: Optional[Duration] = None,
        final: bool = False,
    ) -> List[str]:
        """Reports a failed attempt. The task comes again after `delay`, default: its backoff.
        `final`: further attempts are useless, so the task is dead now. Status "dead": the task is
        dead, because the attempt was the last or a final one."""
        body: Body = {"error": error} if error else {}
        put_duration(body, "delay", delay)
        if final:
            body["final"] = True
        return self._leases("fail", leases, body)

    def extend(self, leases: Sequence[str], by: Duration) -> List[str]:
        """The leases end `by` from now, or at their old end if that is later."""
        body: Body = {}
        put_duration(body, "by", by)
        return self._leases("extend", leases, body)

    def release(
        self,
        leases: Sequence[str],
        *,
        delay: Optional[Duration] = None,
        priority: Optional[int] = None,
    ) -> List[str]:
        """Gives tasks back. The attempt does not count."""
        body: Body = {} if priority is None else {"priority": priority}
        put_duration(body, "delay", delay)
        return self._leases("release", leases, body)

    def _leases(self, verb: str, leases: Sequence[str], body: Body) -> List[str]:
        return [result if isinstance(result, str)
                else "unavailable" if isinstance(result, Unavailable) else "error"
                for result in self._report(verb, leases, body)]

    def _report(
        self, verb: str, leases: Sequence[str], body: Body, *, retry_for: Optional[float] = None
    ) -> List[LeaseResult]:
        """Returns a status or an error for each. `retry_for`: the time for all tries together."""
        return self._http.call_for_each(
            f"/v1/leases/{verb}", leases, lambda some: {"leases": some, **body},
            lambda result: result["status"], retry_for=retry_for)

    # ---- queues ----

    def queues(self) -> List[Queue]:
        return [Queue.from_body(queue) for queue in self._http.call("GET", "/v1/queues")["queues"]]

    def queue(self, name: str) -> Queue:
        return Queue.from_body(self._http.call("GET", _queue(name)))

    def change_queue(self, name: str, **settings: Any) -> Queue:
        """Changes the given settings (docs/reference/queues.md). None: back to the default."""
        body: Body = {}
        for setting, value in settings.items():
            if setting in _SETTING_DURATIONS and value is not None:
                put_duration(body, setting, value)
            else:
                body[setting] = value.to_body() if isinstance(value, Backoff) else value
        return Queue.from_body(self._http.call("PATCH", _queue(name), body))

    def remove_queue(self, name: str) -> None:
        """Removes the queue. Raises Conflict while it has tasks."""
        self._http.call("DELETE", _queue(name))

    def pause(self, name: str) -> Queue:
        return Queue.from_body(self._http.call("POST", _queue(name, "/pause")))

    def resume(self, name: str) -> Queue:
        return Queue.from_body(self._http.call("POST", _queue(name, "/resume")))

    def purge(self, name: str) -> int:
        """Removes all tasks that are not leased; returns their number."""
        return int(self._count(_queue(name, "/purge")))

    def redrive(self, name: str) -> int:
        """Makes all dead tasks due now; returns their number."""
        return int(self._count(_queue(name, "/redrive")))

    def _count(self, path: str) -> Any:
        return self._http.call("POST", path, repeat=Repeat.never, patience=60)["count"]

    # ---- recurring schedules ----

    def put_schedule(
        self, name: str, *, queue: str, payload: Any = None, **members: Any
    ) -> Schedule:
        """Creates or replaces a schedule. `members` are those of PUT /v1/schedules/{name}: one of
        cron, every and calendar, time_zone, jitter, … with durations, instants and Backoff of this
        client."""
        body: Body = {"queue": queue}
        put_payload(body, payload)
        for member, value in members.items():
            if member in ("every", "jitter", "misfire_grace", "visibility_timeout"):
                put_duration(body, member, value)
            elif member in ("anchor", "start", "end"):
                body[member] = to_instant(value)
            else:
                body[member] = value.to_body() if isinstance(value, Backoff) else value
        return Schedule.from_body(self._http.call("PUT", _schedule(name), body))

    def get_schedule(self, name: str) -> Schedule:
        return Schedule.from_body(self._http.call("GET", _schedule(name)))

    def schedules(self) -> List[Schedule]:
        """Returns all schedules, by name."""
        found: List[Schedule] = []
        cursor = ""
        while True:
            page = self._http.call(
                "GET", f"/v1/schedules?limit=1000{cursor and '&cursor=' + quote(cursor, safe='')}")
            found += [Schedule.from_body(schedule) for schedule in page["schedules"]]
            cursor = page["cursor"] or ""
            if not cursor:
                return found

    def next_occurrences(self, name: str, count: int = 10) -> List[Any]:
        """Returns the datetimes of the next occurrences."""
        answer = self._http.call("GET", _schedule(name, f"/next?count={count}"))
        return [read_instant(instant) for instant in answer["next"]]

    def pause_schedule(self, name: str) -> Schedule:
        return Schedule.from_body(self._http.call("POST", _schedule(name, "/pause")))

    def resume_schedule(self, name: str) -> Schedule:
        return Schedule.from_body(self._http.call("POST", _schedule(name, "/resume")))

    def trigger_schedule(self, name: str) -> ScheduledTask:
        """Creates a task now."""
        return ScheduledTask.from_body(
            self._http.call("POST", _schedule(name, "/trigger"), repeat=Repeat.never))

    def remove_schedule(self, name: str) -> None:
        """Removes the schedule. Its tasks stay."""
        self._http.call("DELETE", _schedule(name))

    # ---- the server ----

    def stats(self) -> Dict[str, Any]:
        """Returns counts, in the form of the server."""
        answer: Dict[str, Any] = self._http.call("GET", "/v1/stats")
        return answer

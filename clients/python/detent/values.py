"""Arguments and results as values, and their form in JSON.

Durations are seconds (int, float), a timedelta, or the server's text ("1500ms", "30s", "30d",
"P30D"). Instants are datetimes with a time zone, RFC 3339 text, or milliseconds since 1970 (int).
Results have seconds (float) and datetimes in UTC. A payload is any JSON value, or bytes. Unknown
members from a newer server are ignored.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Union

Duration = Union[str, int, float, timedelta]
Instant = Union[str, int, datetime]
Body = Dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def to_milliseconds(duration: Union[int, float, timedelta]) -> int:
    """Rounds up to whole milliseconds, so a task is never earlier than requested."""
    if isinstance(duration, timedelta):
        return -(-duration // timedelta(milliseconds=1))
    return math.ceil(round(duration * 1000, 3))


def put_duration(body: Body, name: str, duration: Optional[Duration]) -> None:
    """Adds a duration under the field's name; under the name with `_ms` if it is not text."""
    if isinstance(duration, str):
        body[name] = duration
    elif duration is not None:
        body[name + "_ms"] = to_milliseconds(duration)


def to_instant(instant: Instant) -> Union[str, int]:
    if not isinstance(instant, datetime):
        return instant
    if instant.tzinfo is None:
        raise ValueError("a datetime must have a time zone")
    return to_milliseconds(instant - _EPOCH)


def read_instant(text: Optional[str]) -> Optional[datetime]:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))


def _due(body: Mapping[str, Any], name: str = "due_at") -> datetime:
    return datetime.fromisoformat(str(body[name]).replace("Z", "+00:00"))


def put_payload(body: Body, payload: Any) -> None:
    if isinstance(payload, (bytes, bytearray, memoryview)):
        body["payload_base64"] = base64.b64encode(payload).decode()
    else:
        body["payload"] = payload


def _payload(body: Mapping[str, Any]) -> Any:
    if "payload_base64" in body:
        return base64.b64decode(body["payload_base64"])
    return body.get("payload")


def _seconds(body: Mapping[str, Any], name: str) -> float:
    return float(body.get(name, 0)) / 1000


class TaskKey(NamedTuple):
    """Names a task by the key of its creator, instead of the server's id."""

    queue: str
    key: str


@dataclass(frozen=True)
class Backoff:
    """The wait after attempt n is initial * 2^(n - 1), at most max."""

    initial: Duration
    max: Duration

    def to_body(self) -> Body:
        body: Body = {}
        put_duration(body, "initial", self.initial)
        put_duration(body, "max", self.max)
        return body


@dataclass(frozen=True)
class NewTask:
    """A task to schedule. It is due `delay` from now, or at `due_at`; by default immediately.

    With a `key` you can repeat the call: the same request again returns the first task. With
    `on_key` "replace" the task of the key gets this content and due time, with "postpone" only the
    due time; either way it is due at most `max_wait` after it was first scheduled. A field that is
    None has the value of the queue.
    """

    queue: str
    payload: Any = None
    delay: Optional[Duration] = None
    due_at: Optional[Instant] = None
    key: Optional[str] = None
    priority: Optional[int] = None
    max_attempts: Optional[int] = None
    visibility_timeout: Optional[Duration] = None
    backoff: Optional[Backoff] = None
    webhook: Optional[str] = None
    headers: Optional[Mapping[str, str]] = None
    on_key: Optional[str] = None
    max_wait: Optional[Duration] = None

    def to_body(self) -> Body:
        body: Body = {"queue": self.queue}
        put_duration(body, "max_wait", self.max_wait)
        put_payload(body, self.payload)
        put_duration(body, "delay", self.delay)
        if self.due_at is not None:
            body["due_at"] = to_instant(self.due_at)
        put_duration(body, "visibility_timeout", self.visibility_timeout)
        if self.backoff is not None:
            body["backoff"] = self.backoff.to_body()
        if self.headers is not None:
            body["headers"] = dict(self.headers)
        for name in ("key", "priority", "max_attempts", "webhook", "on_key"):
            if getattr(self, name) is not None:
                body[name] = getattr(self, name)
        return body


@dataclass(frozen=True)
class ScheduledTask:
    """A task on the server's disk. `was_there`: its key already stood for it."""

    id: str
    queue: str
    state: str
    due_at: datetime
    was_there: bool = False

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "ScheduledTask":
        return cls(body["id"], body["queue"], body["state"], _due(body),
                   body.get("was_there", False))


@dataclass(frozen=True)
class Task:
    """All fields of a task. `body` has every member in the server's form, including `history`."""

    id: str
    queue: str
    state: str  # scheduled, ready, leased, dead; completed or cancelled if the queue keeps it
    due_at: datetime
    created_at: datetime
    payload: Any
    key: str
    priority: int
    attempts: int  # number of ended attempts
    last_error: str
    body: Mapping[str, Any] = field(repr=False)

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "Task":
        return cls(body["id"], body["queue"], body["state"], _due(body), _due(body, "created_at"),
                   _payload(body), body.get("key", ""), body["priority"], body["attempts"],
                   body.get("last_error", ""), body)


@dataclass(frozen=True)
class TaskPage:
    """A page of tasks, and the cursor of the next page; None at the end."""

    tasks: List[Task]
    cursor: Optional[str]


@dataclass(frozen=True)
class LeasedTask:
    """A task with its lease, which is valid until `lease_until`."""

    id: str
    lease: str
    attempt: int  # counted from 1
    queue: str
    key: str
    payload: Any
    priority: int
    due_at: datetime
    lease_until: datetime
    lateness: float  # seconds
    headers: Mapping[str, str]

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "LeasedTask":
        return cls(body["id"], body["lease"], body["attempt"], body["queue"], body.get("key", ""),
                   _payload(body), body["priority"], _due(body), _due(body, "lease_until"),
                   _seconds(body, "lateness_ms"), body.get("headers", {}))


@dataclass(frozen=True)
class Queue:
    """The counts of a queue by state, and its settings in the server's form."""

    name: str
    scheduled: int
    ready: int
    leased: int
    dead: int
    oldest_ready_age: Optional[float]  # seconds; None when no task is ready
    bytes: int  # size of the payloads
    settings: Mapping[str, Any]

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "Queue":
        age = body.get("oldest_ready_age_ms")
        return cls(body["queue"], body["scheduled"], body["ready"], body["leased"], body["dead"],
                   None if age is None else age / 1000, body["bytes"], body["settings"])


@dataclass(frozen=True)
class Schedule:
    """A recurring schedule. `body` has every member in the server's form."""

    name: str
    state: str  # active, paused, over, broken
    words: str  # the rule in plain English
    queue: str
    next_at: Optional[datetime]
    body: Mapping[str, Any] = field(repr=False)

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> "Schedule":
        return cls(body["name"], body["state"], body["words"], body["queue"],
                   read_instant(body.get("next_at")), body)

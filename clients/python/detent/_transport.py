"""Calls over kept-alive connections, and the rules for repeating a call without an answer.

A client of a task server must know whether the server may have carried a request out. So each call
says whether a second run has the same effect (Repeat.always). If no connection could be made, the
server has not seen the request, and any call is repeated. After another failure (connection lost,
time-out, 408, 502, 503, 504) a call is repeated only if a second run has the same effect. The
first pause is 0.1 s. Each further pause is twice as long, up to 5 s, less a random part. If
Retry-After is longer, it is the pause. A call for many elements is repeated for the elements that
a cluster could not reach.
"""

from __future__ import annotations

import enum
import http.client
import json
import random
import select
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .errors import DetentError, Internal, Unavailable, error_of

_FIRST_PAUSE, _LAST_PAUSE = 0.1, 5.0
_LONGEST_TIMEOUT = 86_400


class Repeat(enum.Enum):
    never = 0  # a second run has another effect
    always = 1


class _Unseen(Unavailable):
    """There was no connection, so the server has not seen the request."""


class Abort:
    """Ends a call from another thread. Closes only the sending side, so an answer that is on its
    way still arrives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: Optional[socket.socket] = None
        self._is_set = False

    def is_set(self) -> bool:
        with self._lock:
            return self._is_set

    def set(self) -> None:
        with self._lock:
            self._is_set = True
            self._close()

    def watch(self, connected: Optional[socket.socket]) -> None:
        with self._lock:
            self._socket = connected
            if self._is_set:
                self._close()

    def _close(self) -> None:
        if self._socket is None:
            return
        try:  # not SSLSocket.shutdown, which would remove TLS under the reading thread
            socket.socket.shutdown(self._socket, socket.SHUT_WR)
        except OSError:
            pass


class Tries:
    """The pauses between the tries of a call, while there is time for another try."""

    def __init__(
        self, retry_for: float, now: Callable[[], float], wait: Callable[[float], None]
    ) -> None:
        self._now, self._wait = now, wait
        self._give_up = now() + retry_for
        self._pauses = 0

    def left(self) -> float:
        """Seconds."""
        return max(0.0, self._give_up - self._now())

    def rest(self, told: Optional[float] = None) -> bool:
        """Waits for the next try, at least `told` seconds. Returns False immediately if no try is
        left."""
        pause = min(_LAST_PAUSE, _FIRST_PAUSE * 2 ** self._pauses) * random.uniform(0.5, 1)
        pause = max(pause, told or 0)
        if self._now() + pause > self._give_up:
            return False
        self._pauses += 1
        self._wait(pause)
        return True


class Transport:
    """Thread-safe. One call uses a connection at a time. The pool keeps as many connections as
    there were calls at the same time."""

    def __init__(
        self,
        url: str,
        token: Optional[str],
        timeout: float,
        retry_for: float,
        ca_file: Optional[str],
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} must be http://HOST[:PORT] or https://HOST[:PORT]")
        if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username:
            raise ValueError(f"{url!r} must have only a host and a port")
        if not 0 < timeout <= _LONGEST_TIMEOUT:
            raise ValueError(
                f"timeout must be greater than 0 and at most 86400 seconds, got {timeout!r}")
        self._host, self._port = parts.hostname, parts.port
        self._tls = (
            ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
        )
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._timeout, self._retry_for = timeout, retry_for
        self._now, self._wait = now, wait
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        repeat: Repeat = Repeat.always,
        patience: float = 0,
        retry_for: Optional[float] = None,
        abort: Optional[Abort] = None,
    ) -> Any:
        """Returns the JSON of the answer. `patience`: more seconds for the server's answer."""
        tries = self.tries(retry_for)
        data = None if body is None else json.dumps(
            body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        sends = 0  # requests that the server may have seen
        while True:
            pause = None
            try:
                status, retry_after, answer = self._exchange(method, path, data, patience, abort)
                if status < 300:
                    return answer
                error = error_of(status, answer)
                pause = retry_after
            except (Unavailable, Internal) as lost:
                error = lost
            sends += not isinstance(error, _Unseen)
            error.is_repeated = sends > 1
            is_harmless = repeat is Repeat.always or isinstance(error, _Unseen)
            is_over = abort is not None and abort.is_set()
            if not isinstance(error, Unavailable) or not is_harmless or is_over:
                raise error
            if not tries.rest(pause):
                raise error

    def call_for_each(
        self,
        path: str,
        elements: Sequence[Any],
        body_of: Callable[[List[Any]], Any],
        read: Callable[[Any], Any],
        *,
        repeat: Repeat = Repeat.always,
        retry_for: Optional[float] = None,
    ) -> List[Any]:
        """A call for many elements. Returns for each result its value from `read`, or its error.
        If a shard of a cluster is away, only its elements are `Unavailable`. They are repeated
        like a whole call. All tries together take at most `retry_for` seconds."""
        tries = self.tries(retry_for)
        answer = self.call("POST", path, body_of([*elements]), repeat=repeat, retry_for=retry_for)
        results = read_results(answer, read)
        while repeat is Repeat.always:
            away = [i for i, result in enumerate(results) if isinstance(result, Unavailable)]
            if not away or not tries.rest():
                break
            try:
                answer = self.call("POST", path, body_of([elements[i] for i in away]),
                                   retry_for=tries.left())
            except DetentError:
                break  # keep the results of the other elements
            for i, result in zip(away, read_results(answer, read)):
                results[i] = result
                if isinstance(result, DetentError):
                    result.is_repeated = True
        return results

    def tries(self, retry_for: Optional[float] = None) -> Tries:
        seconds = self._retry_for if retry_for is None else retry_for
        return Tries(seconds, self._now, self._wait)

    def close(self) -> None:
        """Closes the connections that no call uses. Later calls open new connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _exchange(
        self, method: str, path: str, data: Optional[bytes], patience: float,
        abort: Optional[Abort],
    ) -> Tuple[int, Optional[float], Any]:
        """Returns status, seconds of Retry-After, JSON. Raises Unavailable or Internal."""
        connection = self._connect(self._timeout + patience)
        headers = dict(self._headers)
        if data is not None:
            headers["content-type"] = "application/json"
        try:
            if abort is not None:
                abort.watch(connection.sock)
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as lost:
            connection.close()
            raise Unavailable(f"{method} {path}: {lost or type(lost).__name__}") from lost
        except BaseException:
            connection.close()
            raise
        finally:
            if abort is not None:
                abort.watch(None)
        if response.will_close or (abort is not None and abort.is_set()):
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return response.status, _seconds(response.getheader("retry-after")), _read(response, text)

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        connection = self._take_idle()
        if connection is None:
            connection = (
                http.client.HTTPConnection(self._host, self._port, timeout=timeout)
                if self._tls is None
                else http.client.HTTPSConnection(
                    self._host, self._port, timeout=timeout, context=self._tls)
            )
            try:
                connection.connect()
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as refused:
                connection.close()
                raise _Unseen(f"connect to {self._host}:{connection.port}: {refused}") from refused
        connection.sock.settimeout(timeout)
        return connection

    def _take_idle(self) -> Optional[http.client.HTTPConnection]:
        """Returns a kept connection that the server has not closed. A kept connection that is
        readable has been closed."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            poll = select.poll()
            poll.register(connection.sock, select.POLLIN)
            if not poll.poll(0):
                return connection
            connection.close()


def _seconds(retry_after: Optional[str]) -> Optional[float]:
    return float(retry_after) if retry_after is not None and retry_after.isdigit() else None


def _read(response: http.client.HTTPResponse, text: bytes) -> Any:
    """Returns JSON; None for an error without JSON (the page of a proxy)."""
    try:
        return json.loads(text)
    except ValueError as bad:
        if response.status < 300:
            raise Internal(f"the answer is not JSON: {bad}", status=response.status) from bad
        return None


def read_results(answer: Any, read: Callable[[Dict[str, Any]], Any]) -> List[Any]:
    """Returns a value or an error for each result of a call for many."""
    results: List[Any] = []
    for result in answer["results"]:
        problem = result.get("error")
        is_error = isinstance(problem, dict)
        results.append(error_of(problem.get("status", 0), problem) if is_error else read(result))
    return results

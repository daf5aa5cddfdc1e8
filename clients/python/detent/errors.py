"""What goes wrong, as one exception class for each thing that a caller can do about it.

All but InvalidSignature carry the server's problem document (RFC 9457); its `type` decides the
class, and where it has none of Detent's the status does.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Type


class DetentError(Exception):
    """A call that was not done. `str()` is for people.

    problem: what the server said, as it said it; empty when there was no answer.
    status: of the answer; 0 when there was none.
    detail, field: what is wrong, and in which field of the request ("" when in none).
    is_repeated: the request was sent more than once. A NotFound or Conflict may then be the effect
        of the first time, whose answer was lost.
    """

    def __init__(self, detail: str, problem: Optional[Mapping[str, Any]] = None, status: int = 0):
        self.problem: Dict[str, Any] = dict(problem or {})
        self.status = status
        self.detail = detail
        self.field = str(self.problem.get("field", ""))
        self.is_repeated = False
        super().__init__(f"{self.field}: {detail}" if self.field else detail)


class InvalidArgument(DetentError):
    """The request is wrong: fix it."""


class Unauthorized(DetentError):
    """The server wants a token."""


class Forbidden(DetentError):
    """Not with this token."""


class NotFound(DetentError):
    """It is not there, or not any more."""


class Conflict(DetentError):
    """Its state forbids this, or its key stands for another task: read it again."""


class TooLarge(DetentError):
    """Over a limit that `detail` states."""


class ResourceExhausted(DetentError):
    """Over a quota or out of space: later may succeed."""


class Unavailable(DetentError):
    """No answer, or none yet. What was to be changed may have been changed."""


class DataLoss(DetentError):
    """What was stored cannot be read back."""


class Internal(DetentError):
    """An unexpected failure of the server, or an answer that is none."""


class InvalidSignature(Exception):
    """A webhook that is not genuine, or not fresh: answer it 4xx and do nothing."""


_BY_TYPE: Dict[str, Type[DetentError]] = {
    "urn:detent:error:invalid_argument": InvalidArgument,
    "urn:detent:error:forbidden": Forbidden,
    "urn:detent:error:not_found": NotFound,
    "urn:detent:error:conflict": Conflict,
    "urn:detent:error:too_large": TooLarge,
    "urn:detent:error:resource_exhausted": ResourceExhausted,
    "urn:detent:error:unavailable": Unavailable,
    "urn:detent:error:data_loss": DataLoss,
    "urn:detent:error:internal": Internal,
}
_BY_STATUS: Dict[int, Type[DetentError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    412: Conflict,
    413: TooLarge,
    429: ResourceExhausted,
    502: Unavailable,  # this and 504: of a proxy that reaches no server
    503: Unavailable,
    504: Unavailable,
}


def error_of(status: int, problem: Any) -> DetentError:
    """The error that an answer of this status says; `problem` may be anything."""
    fields: Mapping[str, Any] = problem if isinstance(problem, dict) else {}
    other = InvalidArgument if 400 <= status < 500 else Internal
    kind = _BY_TYPE.get(str(fields.get("type")), _BY_STATUS.get(status, other))
    detail = fields.get("detail") or fields.get("title") or f"the server answered {status}"
    return kind(str(detail), fields, status)

"""Errors, as one exception class for each action that a caller can take.

All errors except InvalidSignature have the server's problem document (RFC 9457). Its `type` decides
the class. If the type is not one of Detent's, the status decides.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Type


class DetentError(Exception):
    """A call that failed. `str()` is for people.

    problem: the problem document as the server sent it; empty without an answer.
    status: status of the answer; 0 without an answer.
    detail, field: the reason, and the wrong field of the request ("" if no single field is wrong).
    is_repeated: the request was sent more than once. A NotFound or Conflict may then be the effect
        of the first request, whose answer was lost.
    """

    def __init__(self, detail: str, problem: Optional[Mapping[str, Any]] = None, status: int = 0):
        self.problem: Dict[str, Any] = dict(problem or {})
        self.status = status
        self.detail = detail
        self.field = str(self.problem.get("field", ""))
        self.is_repeated = False
        super().__init__(f"{self.field}: {detail}" if self.field else detail)


class InvalidArgument(DetentError):
    """The request is wrong: fix the request."""


class Unauthorized(DetentError):
    """The server requires an access token."""


class Forbidden(DetentError):
    """The access token does not have the scope for this."""


class NotFound(DetentError):
    """The object does not exist, or no longer exists."""


class Conflict(DetentError):
    """The state of the object forbids this, or its key stands for another task: read it again."""


class TooLarge(DetentError):
    """The request exceeds a limit that `detail` names."""


class ResourceExhausted(DetentError):
    """A quota or the space is used up: the request may succeed later."""


class Unavailable(DetentError):
    """No answer, or no answer yet. The server may have carried the request out."""


class DataLoss(DetentError):
    """Stored data cannot be read."""


class Internal(DetentError):
    """An unexpected failure of the server, or an unreadable answer."""


class InvalidSignature(Exception):
    """A webhook that is not genuine, or too old: answer it with 4xx and ignore it."""


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
    502: Unavailable,  # 502 and 504 come from a proxy that reaches no server
    503: Unavailable,
    504: Unavailable,
}


def error_of(status: int, problem: Any) -> DetentError:
    """Returns the error for an answer with this status; `problem` may have any type."""
    fields: Mapping[str, Any] = problem if isinstance(problem, dict) else {}
    other = InvalidArgument if 400 <= status < 500 else Internal
    kind = _BY_TYPE.get(str(fields.get("type")), _BY_STATUS.get(status, other))
    detail = fields.get("detail") or fields.get("title") or f"the server answered {status}"
    return kind(str(detail), fields, status)

"""Checks that a webhook is from your server, complete and recent: Standard Webhooks, version 1."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from typing import Mapping, Optional, Sequence, Union

from .errors import InvalidSignature


def verify_webhook(
    keys: Union[str, Sequence[str]],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: float = 300,
    now: Optional[float] = None,
) -> str:
    """Returns the webhook's id, the same at every attempt; raises InvalidSignature.

    keys: "whsec_…", one or several; the signature of one key is enough.
    headers: of the request; upper and lower case are equal.
    body: the received bytes. JSON that was parsed and written again has other bytes.
    tolerance: largest difference in seconds between the timestamp and `now`.
    now: seconds since 1970; default: the system's time.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        message, sent = given["webhook-id"], given["webhook-timestamp"]
        signatures = given["webhook-signature"].split(" ")
        age = (time.time() if now is None else now) - int(sent)
    except (KeyError, ValueError) as error:
        raise InvalidSignature(
            "webhook-id, webhook-timestamp or webhook-signature is missing or malformed") from error
    if abs(age) > tolerance:
        raise InvalidSignature(
            "webhook-timestamp differs from the current time by more than the tolerance")
    content = f"{message}.{sent}.".encode() + body
    for key in [keys] if isinstance(keys, str) else keys:
        signed = hmac.new(_secret(key), content, hashlib.sha256).digest()
        expected = b"v1," + base64.b64encode(signed)
        if any([hmac.compare_digest(expected, one.encode()) for one in signatures]):
            return message
    raise InvalidSignature("no signature matches one of the keys")


def _secret(key: str) -> bytes:
    """Raises ValueError for an invalid key. The message does not have the key."""
    try:
        if key.startswith("whsec_"):
            return base64.b64decode(key[len("whsec_"):], validate=True)
    except binascii.Error:
        pass
    raise ValueError("a key must be \"whsec_\" and base64")

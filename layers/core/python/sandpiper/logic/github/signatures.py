"""Who sent it: GitHub, by its signature over the raw body; or our own webhook, by a proof under the same secret.

The function that holds the App's key may be called by sandboxes too. A delivery that is handed to it carries a proof
that only someone with the webhook's secret can make, so that no sandbox can make up a comment.
"""

from __future__ import annotations

import hashlib
import hmac

_PREFIX = "sha256="
_DELIVERY = b"sandpiper delivery\n"  # a signature of GitHub's is never a proof, nor the other way round


def signature(secret: str, body: bytes) -> str:
    return _PREFIX + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(secret: str, body: bytes, header: str | None) -> bool:
    """In constant time. A header that is no ASCII is wrong, not an error."""
    return bool(secret) and hmac.compare_digest(signature(secret, body).encode(), (header or "").encode())


def proof(secret: str, delivery: str) -> str:
    return signature(secret, _DELIVERY + delivery.encode())


def is_proven(secret: str, delivery: str, given: str) -> bool:
    return is_signed(secret, _DELIVERY + delivery.encode(), given)

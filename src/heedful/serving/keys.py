"""API keys, compared in constant time."""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Final, final

from starlette.exceptions import HTTPException
from starlette.requests import Request

_SCHEMES: Final = ("bearer", "deepl-auth-key")


@final
class Keys:
    """Keys that a server accepts; without any, every request is allowed."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        """Store hashes of the keys."""
        self._hashes: Final = tuple(_hash(key) for key in keys if key)

    @property
    def are_required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._hashes)

    def check(self, request: Request, fields: Mapping[str, object]) -> None:
        """Check the key of a request: a field ``api_key`` or ``apiKey``, or a header.

        Raises:
            HTTPException: 403, no key is one of the server's.
        """
        if not self.accepts(_keys_of(request, fields)):
            raise HTTPException(403, "Invalid API key")

    def accepts(self, keys: Iterable[str]) -> bool:
        """Compare keys with those of the server, each with every one, in time that does not depend on the result.

        Returns:
            Whether one of them is the server's, or the server has none.
        """
        matches = [hmac.compare_digest(_hash(key), known) for key in keys for known in self._hashes]
        return not self._hashes or any(matches)


def _keys_of(request: Request, fields: Mapping[str, object]) -> list[str]:
    named = [fields.get("api_key"), fields.get("apiKey"), fields.get("auth_key"), request.headers.get("x-api-key")]
    scheme, _, word = request.headers.get("authorization", "").partition(" ")
    keys = [value for value in named if isinstance(value, str)]
    return [*keys, word.strip()] if scheme.lower() in _SCHEMES else keys


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()

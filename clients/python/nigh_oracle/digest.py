"""HTTP Digest (RFC 7616) with SHA-256 and ``qop=auth``, which the standard library does not support."""

from __future__ import annotations

import hashlib
import secrets
import urllib.parse
import urllib.request
from typing import Any, Dict, Optional


def _hash(*parts: str) -> str:
    return hashlib.sha256(":".join(parts).encode()).hexdigest()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def parse(challenge: str) -> Optional[Dict[str, str]]:
    """The parameters of a challenge that can be answered, else none (RFC 7616 section 3.3)."""
    scheme, _, rest = challenge.partition(" ")
    if scheme.lower() != "digest":
        return None
    items = urllib.request.parse_http_list(rest)
    given = urllib.request.parse_keqv_list([item for item in items if "=" in item])
    found = {name.lower(): value for name, value in given.items()}
    offered = [each.strip() for each in found.get("qop", "").split(",")]
    known = found.get("algorithm", "MD5").upper() == "SHA-256" and "auth" in offered
    return found if known and "realm" in found and "nonce" in found else None


def response(
    challenge: Dict[str, str],
    user: str,
    password: str,
    method: str,
    uri: str,
    count: int,
    cnonce: str,
) -> str:
    """The value of Authorization that answers a challenge (RFC 7616 section 3.4)."""
    realm, nonce, nc = challenge["realm"], challenge["nonce"], f"{count:08x}"
    a1, a2 = _hash(user, realm, password), _hash(method, uri)
    if user.isascii():
        name = f"username={_quoted(user)}"
    else:
        name = f"username*=UTF-8''{urllib.parse.quote(user, safe='')}"
    parts = [
        name,
        f"realm={_quoted(realm)}",
        f"uri={_quoted(uri)}",
        "algorithm=SHA-256",
        f"nonce={_quoted(nonce)}",
        f"nc={nc}",
        f"cnonce={_quoted(cnonce)}",
        "qop=auth",
        f'response="{_hash(a1, nonce, nc, cnonce, "auth", a2)}"',
    ]
    if "opaque" in challenge:
        parts.append(f"opaque={_quoted(challenge['opaque'])}")
    return "Digest " + ", ".join(parts)


class DigestHandler(urllib.request.BaseHandler):
    """Answers the challenges of one server, and of no other, in the name of one user."""

    handler_order = 490  # as the standard library's own handlers of passwords

    def __init__(self, directory: str, user: str, password: str) -> None:
        self._server = urllib.parse.urlsplit(directory)[:2]
        self._user, self._password = user, password
        self._challenge: Optional[Dict[str, str]] = None
        self._count = 0

    def _sign(self, request: urllib.request.Request) -> None:
        if self._challenge is None or urllib.parse.urlsplit(request.full_url)[:2] != self._server:
            return
        self._count += 1
        value = response(
            self._challenge,
            self._user,
            self._password,
            request.get_method(),
            request.selector,
            self._count,
            secrets.token_hex(16),
        )
        request.add_unredirected_header("Authorization", value)

    def https_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Signs at once with the challenge of the question before."""
        self._sign(request)
        return request

    http_request = https_request

    def http_error_401(
        self, request: urllib.request.Request, answer: Any, code: int, message: str, headers: Any
    ) -> Any:
        """Asks again once; a second time only if the server marks its nonce as stale."""
        found = [parse(value) for value in headers.get_all("WWW-Authenticate", [])]
        challenge = next((each for each in found if each is not None), None)
        tries = getattr(request, "digest_tries", 0)
        stale = challenge is not None and challenge.get("stale", "").lower() == "true"
        if challenge is None or tries > (1 if stale else 0):
            return None
        if urllib.parse.urlsplit(request.full_url)[:2] != self._server:
            return None
        if tries == 0 and self._challenge is not None and not stale:
            return None  # it was signed already, and the password is wrong
        setattr(request, "digest_tries", tries + 1)
        self._challenge, self._count = challenge, 0
        answer.read()
        answer.close()
        # The opener signs what it opens.
        return self.parent.open(request, timeout=request.timeout)

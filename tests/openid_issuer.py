"""An issuer of OpenID Connect inside of a test, whose answers the test changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import orjson
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from tests.http_server import Handler, serving

CLIENT_ID = "almanac"
SECRET = "planted-openid-secret"


@dataclass
class Issuer:
    """The answers. ``changes`` are claims that replace those of the id token; None removes one."""

    url: str = ""
    key: ECKey = field(default_factory=lambda: ECKey.generate_key("P-256", {"kid": "one", "use": "sig"}))
    metadata: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    # Answers by path: a status and a body, in place of the right ones.
    faults: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=lambda: {"sub": "ada", "name": "Ada"})
    # Replaces the id token.
    id_token: str | None = None
    sends_id_token: bool = True
    refresh_token: str | None = "planted-refresh-token"
    requests: list[tuple[str, str, dict[str, list[str]]]] = field(default_factory=list)

    def token(self) -> str:
        """The id token."""
        moment = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "sub": "ada",
            "nonce": "nonce",
            "iat": moment,
            "exp": moment + 300,
            "preferred_username": "ada",
            "groups": ["admins"],
        } | self.changes
        claims = {name: value for name, value in claims.items() if value is not None}
        return self.id_token or jwt.encode({"alg": "ES256", "kid": self.key.kid}, claims, self.key)

    def answer(self, path: str) -> tuple[int, bytes]:
        """The answer to a request."""
        if path in self.faults:
            return self.faults[path]
        known: dict[str, Any] = {
            "/.well-known/openid-configuration": {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "userinfo_endpoint": f"{self.url}/userinfo",
            }
            | self.metadata,
            "/keys": KeySet([self.key]).as_dict(private=False),
            "/userinfo": self.userinfo,
        }
        if path == "/token":
            tokens = {"access_token": "planted-access-token", "token_type": "Bearer"}
            more = {"id_token": self.token() if self.sends_id_token else None}
            more["refresh_token"] = self.refresh_token
            return 200, orjson.dumps(tokens | {name: each for name, each in more.items() if each})
        return (200, orjson.dumps(known[path])) if path in known else (404, b"{}")


@contextmanager
def issuing() -> Iterator[Issuer]:
    """An issuer on a free port."""
    issuer = Issuer()

    class Answers(Handler):
        def do_GET(self) -> None:
            body = parse_qs(self.read_body().decode())
            issuer.requests.append((self.path, self.headers.get("Authorization", ""), body))
            status, content = issuer.answer(self.path)
            self.reply(status, content, {"Content-Type": "application/json"})

        do_POST = do_GET

    with serving(Answers) as url:
        issuer.url = url
        yield issuer

"""Between the workers and the sandbox: forwards requests, and mutates the answers of the tested account."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import requests

from tests.fuzz.conversations import Asked, Conversation
from tests.fuzz.mutations import mutated
from tests.http_server import KeepAliveHandler, serving

PASSED_ON = ("Authorization", "Content-Type", "Prefer", "If-Match", "Accept")
PASSED_BACK = ("Content-Type", "ETag", "Retry-After")
# The index of the mutated request in a case: most cases have one or two.
FIRST = (0, 0, 0, 1, 1, 2)


class Case:
    """One account's case: repeated requests get the same mutated answer."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._target = self._random.choice(FIRST)
        self._lock = threading.Lock()
        self.heard = Conversation("busy")
        self.mutations = 0

    def answer(self, asked: Asked, status: int, content: bytes) -> tuple[int, bytes]:
        """The answer that replaces this one."""
        with self._lock:
            known = self.heard.answers.get(asked.key)
            if known is not None and known[0] is not asked:
                if status < 300 and known[1] < 300:
                    return known[1], known[2]
            elif len(self.heard.answers) == self._target:
                content, self.mutations = mutated(content, self._random), self.mutations + 1
            self.heard.answers[asked.key] = asked, status, content
            return status, content


@dataclass
class Proxy:
    """``cases`` by the access token of the tested account."""

    url: str = ""
    cases: dict[str, Case] = field(default_factory=dict)


@contextmanager
def between(sandbox: str) -> Iterator[Proxy]:
    """A proxy in front of the sandbox."""
    proxy = Proxy()
    local = threading.local()

    class ProxyHandler(KeepAliveHandler):
        def handle_any(self) -> None:
            body = self.read_body() or None
            if not hasattr(local, "session"):
                local.session = requests.Session()
                local.session.trust_env = False
            headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
            # Links to pages must lead here.
            headers["Host"] = self.headers["Host"]
            got = local.session.request(
                self.command,
                sandbox + self.path,
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=30,
            )
            status, content = got.status_code, got.content
            case = proxy.cases.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
            if case is not None:
                status, content = case.answer(Asked(self.command, self.path, body), status, content)
            kept = {name: got.headers[name] for name in PASSED_BACK if name in got.headers}
            self.reply(status, content, kept)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

    with serving(ProxyHandler) as proxy.url:
        yield proxy

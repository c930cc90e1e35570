"""Long responses are compressed for clients that accept it; short responses are not."""

from __future__ import annotations

import gzip
import json

import pytest
from backports import zstd

from app.http import responses

LONG = {"start": "2026-11-23", "end": "2026-12-23", "slotDuration": 5}
SHORT = {"start": "2026-11-23", "end": "2026-11-24"}


@pytest.fixture
def path(new_user, sandbox) -> str:
    return f"/users/{new_user(sandbox.account('google', 'ada@compression.example'))}/scheduling"


def ask(api, path, accepted, query):
    return api.get(path, {"Accept-Encoding": accepted}, **query)


@pytest.mark.parametrize(
    ("accepted", "chosen", "undo"),
    [
        ("gzip, deflate", "gzip", gzip.decompress),
        ("gzip, deflate, br, zstd", "zstd", zstd.decompress),
        ("zstd;q=0.5, gzip", "gzip", gzip.decompress),
        ("br;q=0, gzip", "gzip", gzip.decompress),
        ("gzip, identity;q=0", "gzip", gzip.decompress),
    ],
)
def test_a_streamed_answer_is_the_same_compressed(api, worker, path, monkeypatch, accepted, chosen, undo):
    monkeypatch.setattr(responses, "STREAMED_FROM", 100_000)
    plain, packed = ask(api, path, "identity", LONG), ask(api, path, accepted, LONG)

    assert len(plain.data) > max(responses.STREAMED_FROM, 10 * len(packed.data))
    assert packed.headers["Content-Encoding"] == chosen
    assert undo(packed.data) == plain.data
    assert len(json.loads(plain.data)["data"]["availableSlots"]) == 30 * 288


@pytest.mark.parametrize("accepted", ["", "identity", "br", "gzip;q=0"])
def test_answer_without_accepted_encoding_is_not_compressed(api, worker, path, accepted):
    answer = ask(api, path, accepted, LONG)

    assert "Content-Encoding" not in answer.headers
    assert "Accept-Encoding" in answer.headers["Vary"]


def test_a_short_answer_is_not_worth_it(api, worker, path):
    answer = ask(api, path, "gzip, zstd", SHORT)

    assert "Content-Encoding" not in answer.headers
    assert len(answer.json["data"]["availableSlots"]) == 48

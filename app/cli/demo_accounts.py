"""Accounts of the demo outside the sandbox: at a CalDAV server, if one is installed, and feeds."""

from __future__ import annotations

import importlib.util
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import requests
from flask import Flask, Response, abort

START_SECONDS = 20.0


def as_text(events: Iterable[Mapping[str, Any]], zone: str) -> bytes:
    """Events in the time of a zone as one calendar of RFC 5545."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Almanac//Demo//EN", "X-WR-CALNAME:Calendar"]
    for number, each in enumerate(events):
        start, end = (_in_utc(each[edge], zone) for edge in ("start", "end"))
        lines += [
            *("BEGIN:VEVENT", f"UID:demo-{number}", "DTSTAMP:20260101T000000Z"),
            *(f"DTSTART:{start}", f"DTEND:{end}", f"SUMMARY:{each['subject']}", "END:VEVENT"),
        ]
    return "\r\n".join([*lines, "END:VCALENDAR", ""]).encode()


def _in_utc(local: str, zone: str) -> str:
    moment = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone))
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def install(app: Flask) -> dict[str, bytes]:
    """Let an application serve feeds; returns them by name, none at first. Others get 404."""
    feeds: dict[str, bytes] = {}

    @app.get("/calendars/<name>.ics")
    def feed(name: str) -> Response:
        return Response(feeds[name], mimetype="text/calendar") if name in feeds else abort(404)

    return feeds


def has_caldav_server() -> bool:
    """Whether Radicale is installed."""
    return importlib.util.find_spec("radicale") is not None


@contextmanager
def caldav_server(folder: Path, user: str, text: bytes) -> Iterator[dict[str, str]]:
    """Run Radicale with one account and its calendar; yields the values of the form that connects it."""
    password, port = secrets.token_urlsafe(12), _free_port()
    (folder / "caldav-users").write_text(f"{user}:{password}\n")
    options = {
        "server-hosts": f"127.0.0.1:{port}",
        "auth-type": "htpasswd",
        "auth-htpasswd-filename": str(folder / "caldav-users"),
        "auth-htpasswd-encryption": "plain",
        "storage-filesystem-folder": str(folder / "caldav"),
    }
    command = [sys.executable, "-m", "radicale", "--config", ""]
    command += [f"--{name}={value}" for name, value in options.items()]
    # Ctrl-C ends the callers of the server first.
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    url = f"http://127.0.0.1:{port}/"
    try:
        with requests.Session() as session:
            session.trust_env = False
            session.auth = (user, password)
            _wait(session, url)
            kind = {"Content-Type": "text/calendar; charset=utf-8"}
            session.put(f"{url}{user}/work/", text, headers=kind, timeout=10).raise_for_status()
        yield {"provider": "caldav", "url": url, "username": user, "password": password}
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(session: requests.Session, url: str) -> None:
    """Return when the server answers."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            session.options(url, timeout=5)
            return
        except requests.ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)

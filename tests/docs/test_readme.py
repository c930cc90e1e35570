"""The README: its numbers are those of their sources, its picture is of the dashboard that there is."""

from __future__ import annotations

import re
import shlex
import subprocess
from datetime import datetime, timedelta

import pytest

from tests.benchmarks import doc
from tests.docs.fences import ROOT

README = (ROOT / "README.md").read_text()
PICTURES = sorted(set(re.findall(r'(?:src|srcset)="([^"]+)"', README)))
# The parts that the picture shows: the explorer, and the frame of every page.
SHOWN = ("app/dashboard/explorer", "app/dashboard/templates", "app/dashboard/static")
# A picture may be as much older than the last change of what it shows.
OLDEST = timedelta(days=7)


def git(*words: str) -> str:
    ran = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def changed(*paths: str) -> datetime:
    return datetime.fromisoformat(git("log", "-1", "--format=%cI", "--", *paths))


def number(source: str, pattern: str) -> str:
    found = re.search(pattern, (ROOT / source).read_text(), re.MULTILINE)
    assert found is not None, source
    return f"{int(found[1].replace(',', '')):,}".replace(",", " ")


def test_its_numbers_are_those_of_their_sources():
    requests = number("docs/engineering/benchmarks.md", r"^\| Almanac, 7 d \| ([\d,]+) \|")
    compared = number("docs/engineering/soak.md", r"; (\d+) answers compared, 0 wrong\.")

    assert f"**{requests} requests a second**" in README
    assert f"**{compared} answers compared, 0 wrong**" in README


def test_its_pictures_are_of_this_dashboard():
    if git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("a shallow clone does not tell when a file was changed")
    assert PICTURES
    assert all((ROOT / path).exists() for path in (*PICTURES, *SHOWN))

    assert changed(*SHOWN) - changed(*PICTURES) < OLDEST, "make pictures"


def test_its_line_for_other_ports_gives_them_to_the_demo():
    (line,) = re.findall(r"^make demo [A-Z].*$", README, re.MULTILINE)
    command = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "--old-file", "setup", *shlex.split(line)[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.replace("\\\n", " ")

    ran = shlex.split(command)
    assert ran[ran.index("demo") :] == [
        *("demo", "--port", "8180", "--sandbox-port", "8190", "--booking-port", "8191")
    ]


def test_the_page_of_benchmarks_begins_with_the_figures_of_its_tables():
    text = doc.DOCUMENT.read_text()
    first = text.partition("<!-- users: measured -->")[2].partition("<!-- users: end -->")[0]

    assert first.strip().splitlines() == doc.for_users(text)

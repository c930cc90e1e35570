"""Builds the documentation site into `build/site`: `python docs/site/build.py`, or `make docs`.

The site has the documents for those who use and run the service. The ones in `docs/engineering` stay in the
repository. Needs nothing but zensical, as it also runs where wheels are built.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What zensical reads: copies of the documents, without what only tests and a checkout need.
STAGE = ROOT / "build/docs"
SITE = ROOT / "build/site"
NAVIGATION = ROOT / "mkdocs.yml"
PARTS = ("index.md", "start", "guides", "reference", "operate", "pictures")

# The first line of a block: its language, and what the tests know about it.
_FENCE = re.compile(r"^( *`{3,}\w+) .*$", re.MULTILINE)
# The last column of a table in which every row names its tests, for those who have the repository.
_TESTS = re.compile(r"^(\|.*\|) tests \|\n\|(.*)---\|\n((?:\|.*\n)+)", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def stage(document: Path) -> str:
    """The text of a document for the site: no notes for tests, no links to files outside of the site."""
    text = _FENCE.sub(r"\1", document.read_text())
    text = _TESTS.sub(_without_tests, text)
    return _LINK.sub(lambda link: link[0] if _is_served(document, link[2]) else link[1], text)


def _without_tests(table: re.Match[str]) -> str:
    rows = (f"{row.rsplit('|', 2)[0]}|\n" for row in table[3].splitlines())
    return f"{table[1]}\n|{table[2]}\n{''.join(rows)}"


def llms(documents: list[Path]) -> str:
    """The list of all pages for assistants (https://llmstxt.org): each with its first sentence."""
    lines: list[str] = []
    for document in documents:
        name = document.relative_to(STAGE)
        title, *paragraphs = document.read_text().split("\n\n")
        sentence = next(_sentence(each) for each in paragraphs if each[0].isalpha() or each[0] in "`*")
        if name.name == "index.md":
            lines += [title, "", f"> {sentence}", "", "The API is described in /v1/openapi.json."]
            continue
        heading = f"## {name.parts[0].title()}"
        if heading not in lines:
            lines += ["", heading, ""]
        lines.append(f"- [{title.removeprefix('# ')}]({name.as_posix()}): {sentence}")
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    """The first sentence of a paragraph, without links and line ends."""
    plain = _LINK.sub(r"\1", " ".join(text.split()))
    return re.split(r"(?<=[.:])\s", plain, maxsplit=1)[0].removesuffix(":")


def _is_served(document: Path, target: str) -> bool:
    if not target or re.match(r"[a-z]+:", target):
        return True
    found = Path(os.path.normpath(document.parent / target))
    return any(found.is_relative_to(DOCS / part) for part in PARTS)


def build() -> None:
    """Write the site; a link that leads nowhere is an error.

    :raise subprocess.CalledProcessError: if zensical has found an error
    """
    shutil.rmtree(STAGE, ignore_errors=True)
    for part in PARTS:
        for source in [DOCS / part] if part.endswith(".md") else sorted((DOCS / part).rglob("*")):
            target = STAGE / source.relative_to(DOCS)
            if source.suffix == ".md":
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(stage(source))
            elif source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
    for own in ("site.css", "site.js"):
        shutil.copy(DOCS / "site" / own, STAGE / own)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    subprocess.run(command, cwd=ROOT, check=True)
    # As Markdown, for assistants: a page takes a tenth of the room of its HTML.
    pages = [STAGE / name for name in re.findall(r"- (\S+\.md)$", NAVIGATION.read_text(), re.MULTILINE)]
    for page in pages:
        shutil.copy(page, SITE / page.relative_to(STAGE))
    (SITE / "llms.txt").write_text(llms(pages))


if __name__ == "__main__":
    try:
        build()
    except subprocess.CalledProcessError as error:
        sys.exit(f"The documents were not built: zensical ended with {error.returncode}")

"""The fenced blocks of the documentation, as its readers see them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = frozenset({"sh", "json", "python", "http", "text", "ts", "js", "yaml"})

_FENCE = re.compile(r"( *)(`{3,}|~{3,})(.*)")


@dataclass(frozen=True)
class Block:
    """A block of ``document``, fenced from ``line`` on; ``shown`` is the answer that directly follows."""

    document: str
    line: int
    language: str
    info: dict[str, str]
    text: str
    shown: Block | None = None

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def runs(self) -> bool:
        return "no-run" not in self.info


def blocks(file: Path) -> list[Block]:
    """The blocks of a document in order; an answer is part of the block that it answers."""
    found: list[Block] = []
    lines = file.read_text().splitlines()
    ends = -1
    number = 0
    while number < len(lines):
        fence = _FENCE.fullmatch(lines[number])
        if fence is None:
            number += 1
            continue
        end = lines.index(fence[1] + fence[2], number + 1)
        block = _block(file, number, fence, lines[number + 1 : end])
        follows = not any(lines[ends + 1 : number])
        if found and follows and _answers(block, found[-1]):
            found[-1] = Block(**(vars(found[-1]) | {"shown": block}))
        else:
            found.append(block)
        ends, number = end, end + 1
    return found


def _block(file: Path, number: int, fence: re.Match[str], lines: list[str]) -> Block:
    language, *words = shlex.split(fence[3]) or [""]
    info = {name: value for name, _, value in (word.partition("=") for word in words)}
    text = "\n".join(line.removeprefix(fence[1]) for line in lines)
    return Block(str(file.relative_to(ROOT)), number + 1, language, info, text)


def _answers(block: Block, asked: Block) -> bool:
    return asked.language == "sh" and asked.runs and block.language in ("json", "http", "text") and block.runs

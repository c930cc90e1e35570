"""Mutations of answers: JSON with a changed structure, or bytes that are no JSON."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import orjson

# A place in a document: the keys and numbers that lead there.
Path = tuple[str | int, ...]

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    2**53,
    2**63,
    -(2**63),
    1e308,
    "",
    " ",
    "x",
    "0",
    "true",
    "false",
    "null",
    "\u0000",
    "\U0001f4c5",
    [],
    {},
    [[]],
    [{}],
    [None],
    [0],
    {"": ""},
)
# "Etc" is a folder of zones, and the last ones leave it.
ZONES = (
    "Mars/Phobos",
    "",
    " ",
    "Etc",
    "utc",
    " UTC",
    "Europe/Berlin",
    "Pacific Standard Time",
    "tzone://Microsoft/Custom",
    "Customized Time Zone",
    "../../etc/passwd",
    "/etc/localtime",
    "Etc/GMT+14",
)
TIMES = (
    "2026-02-30T09:00:00Z",
    "2026-12-03T25:00:00Z",
    "2026-12-03T09:61:00Z",
    "2026-12-03T24:00:00Z",
    "2026-12-03T09:00:00",
    "2026-12-03T09:00:00+25:00",
    "2026-12-03T09:00:00.0000000",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00.0000000",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59.9999999",
    "9999-12-31T23:59:59-14:00",
    "12026-12-03T09:00:00Z",
    "-2026-12-03T09:00:00Z",
    "1764752400",
    "now",
    "2026-12-03",
)
WORDS = ("unheardOf", "BUSY", "Busy ", "cancelled", "declined", "free", "tentative", "organizer")


def mutated(content: bytes, random: Random, changes: int = 1) -> bytes:
    """An answer with one or several mutations."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return random.choice(BYTES)(content, random)
    if random.random() < 0.15:
        return random.choice(BYTES)(content, random)
    for _ in range(changes):
        document = mutated_document(document, random)
    return orjson.dumps(document)


def mutated_document(document: Any, random: Random) -> Any:
    """A document with one change in its structure; it may be changed itself."""
    # Deep values are rare in a document and decide most: each depth has the same chance.
    by_depth: dict[int, list[Path]] = {}
    for path in paths(document):
        by_depth.setdefault(len(path), []).append(path)
    path = random.choice(by_depth[random.choice(list(by_depth))])
    if not path:
        return random.choice((replaced, nested))(document, random)
    holder = at(document, path[:-1])
    change = random.choice(CHANGES)
    change(holder, path[-1], random)
    return document


def paths(document: Any, here: Path = ()) -> list[Path]:
    """Every place in a document, the whole of it first."""
    found = [here]
    if len(here) > 12:
        return found
    pairs = document.items() if isinstance(document, dict) else ()
    for key, value in [*pairs, *(enumerate(document) if isinstance(document, list) else ())]:
        found += paths(value, (*here, key))
    return found


def at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def drop(holder: Any, key: Any, random: Random) -> None:
    del holder[key]


def retype(holder: Any, key: Any, random: Random) -> None:
    holder[key] = replaced(holder[key], random)


def wrap(holder: Any, key: Any, random: Random) -> None:
    holder[key] = nested(holder[key], random)


def duplicate(holder: Any, key: Any, random: Random) -> None:
    if isinstance(holder, list):
        holder.insert(random.randrange(len(holder) + 1), holder[key])
    else:
        holder[f"{key} "] = holder[key]


def swap(holder: Any, key: Any, random: Random) -> None:
    other = random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]


def rename(holder: Any, key: Any, random: Random) -> None:
    if isinstance(holder, dict):
        holder[random.choice((key.upper(), f" {key}", f"{key}s", ""))] = holder.pop(key)
    else:
        random.shuffle(holder)


def word(holder: Any, key: Any, random: Random) -> None:
    """A text that might stand there: a time, a zone, a word of another list."""
    if key in ("timeZone", "originalStartTimeZone"):
        holder[key] = random.choice(ZONES)
    elif key in ("start", "end", "dateTime", "date"):
        holder[key] = random.choice(TIMES)
    else:
        holder[key] = random.choice((*WORDS, *ZONES, *TIMES))


def huge(holder: Any, key: Any, random: Random) -> None:
    value = holder[key]
    holder[key] = random.choice(("x" * 50_000, [value] * 200, {str(n): value for n in range(200)}))


def letter(holder: Any, key: Any, random: Random) -> None:
    """One letter of a text changed, lost or doubled."""
    value = holder[key]
    if not isinstance(value, str) or not value:
        return retype(holder, key, random)
    place = random.randrange(len(value))
    other = random.choice(("", value[place] * 2, random.choice("09:-+TZz. é"), chr(ord(value[place]) ^ 1)))
    holder[key] = value[:place] + other + value[place + 1 :]
    return None


def swap_edges(holder: Any, key: Any, random: Random) -> None:
    """Starts and ends swapped."""
    value = holder[key]
    if isinstance(value, dict) and "start" in value and "end" in value:
        value["start"], value["end"] = value["end"], value["start"]
    elif isinstance(holder, dict) and "start" in holder and "end" in holder:
        holder["start"], holder["end"] = holder["end"], holder["start"]
    else:
        retype(holder, key, random)


CHANGES: tuple[Callable[[Any, Any, Random], None], ...] = (
    drop,
    drop,
    retype,
    retype,
    wrap,
    duplicate,
    swap,
    rename,
    word,
    word,
    letter,
    letter,
    swap_edges,
    huge,
)


def replaced(value: Any, random: Random) -> Any:
    """Another value, usually of another type."""
    # A copy: it may be changed once more.
    return deepcopy(random.choice((*VALUES, str(value)[:100], not value)))


def nested(value: Any, random: Random) -> Any:
    """The same value, nested; at times deeper than JSON is written again."""
    depth = random.choice((1, 1, 1, 260, 900))
    opens, closes = random.choice(((b"[", b"]"), (b'{"value":', b"}")))
    # Ready text: orjson reads such depth, and does not write it.
    return orjson.Fragment(opens * depth + orjson.dumps(value) + closes * depth)


def flipped(content: bytes, random: Random) -> bytes:
    """One bit changed."""
    flipped = bytearray(content or b"{}")
    flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    return bytes(flipped)


def constant(content: bytes, random: Random) -> bytes:
    """A number that JSON does not have, or no integer type can hold, in the place of a value."""
    pieces = content.split(b":")
    place = random.randrange(1, len(pieces)) if len(pieces) > 1 else 0
    odd = random.choice((b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 400, b"-0", b"undefined"))
    end = min((found for mark in b",}]" if (found := pieces[place].find(mark)) >= 0), default=0)
    pieces[place] = odd + pieces[place][end:]
    return b":".join(pieces)


BYTES: tuple[Callable[[bytes, Random], bytes], ...] = (
    flipped,
    flipped,
    constant,
    constant,
    lambda content, random: content[: random.randrange(len(content) + 1)],
    lambda content, random: content[random.randrange(len(content) + 1) :],
    lambda content, random: content + content,
    lambda content, random: content.decode(errors="replace").encode("utf-16"),
    lambda content, random: b"\xef\xbb\xbf" + content,
    lambda content, random: b")]}'\n" + content,
    lambda content, random: gzip.compress(content),
    lambda content, random: random.choice(
        (b"", b"[]", b"{}", b"null", b"true", b"0", b'"', b"<html>Sign in</html>")
    ),
    lambda content, random: random.randbytes(random.randrange(200)),
)

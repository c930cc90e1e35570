"""Texts of attacks, and the form that each of them must never take in an answer."""

from __future__ import annotations

MARK = "planted7f3a"

# Text that a page would run if it were not escaped.
MARKUP = f"<script>{MARK}</script>"

INJECTIONS = (
    "' OR '1'='1",
    "'; DROP TABLE users; --",
    '" UNION SELECT sealed_access_token FROM oauth_connections --',
    "1); SELECT pg_sleep(10); --",
    "%' ESCAPE '!",
    "_%[]",
    "{{7*7}}",
    "{{ config.items() }}",
    "${7*7}",
    "#{7*7}",
    "<%= 7*7 %>",
    "%s%s%s%n",
    "{0.__class__.__init__.__globals__}",
    "%(levelname)s",
    "$(sleep 10)",
    "`sleep 10`",
    "; sleep 10 |",
    "*)(uid=*))(|(uid=*",
    MARKUP,
    f"\"'><img src=x onerror={MARK}>",
    "javascript:alert(1)",
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "\r\nSet-Cookie: planted=1",
    "%0d%0aSet-Cookie:%20planted=1",
    "a\x00b",
    "%00",
    "\x1b[31mred",
    "\u202egnp.exe",
    "\ufeffada",
    "a\u0300" * 50,
    "\u2028",
    "\U0001f9d1\u200d\U0001f4bb",
    "\u0130\u0131\u017f\u212a",
    "\u0661\u0662\u0663",
    "²",
    "*3\r\n$6\r\nCONFIG\r\n",
    "__proto__",
    "constructor",
    "NaN",
    "Infinity",
    "-0",
    "1e400",
    "9" * 400,
    "0x7fffffff",
    "null",
    "true",
    "[]",
    "{}",
    "x" * 5000,
    " ",
    "",
)

# One of each kind, where all of them would take too long.
SHARP = (
    "' OR '1'='1",
    "'; DROP TABLE users; --",
    "{{7*7}}",
    "%s%s%s%n",
    "{0.__class__}",
    MARKUP,
    "../../etc/passwd",
    "\r\nSet-Cookie: planted=1",
    "a\x00b",
    "\u202eada",
    "x" * 5000,
)

# The same in JSON, where they need not be texts.
VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    2**63,
    2**64,
    1e308,
    0.1,
    [],
    [[]],
    [None],
    {},
    {"$gt": ""},
    {"__class__": "x"},
    ["x"] * 1100,
)

"""Damage to the bytes of an answer that is done when it is sent; see ``wild``."""

from __future__ import annotations

import re

BROKEN_PART, LONE_SURROGATE, BYTE_ORDER_MARK = "brokenPart", "loneSurrogate", "byteOrderMark"
OF_BYTES = frozenset({BROKEN_PART, LONE_SURROGATE, BYTE_ORDER_MARK})

MARK = b"\xef\xbb\xbf"
# An array that is opened and never closed, as Graph sends it when a shared calendar fails.
BROKEN = b'{"value":["error":{"code":"ErrorAccessDenied","message":"Access is denied."}}'
TITLES = re.compile(rb'("(?:subject|summary|name|displayName|bodyPreview)":\s*")')


def damaged(content: bytes, damage: frozenset[str]) -> bytes:
    """The bytes of an answer with the damage to them."""
    if LONE_SURROGATE in damage:
        content = TITLES.sub(rb"\1\\ud83d", content)
    return MARK + content if BYTE_ORDER_MARK in damage else content

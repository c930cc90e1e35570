"""Checks the operator's logo and colour, which the pages for customers show."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from store.config.setting import SettingsError

_TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".webp": "image/webp"}
# The logo is a part of each page.
_MAX_BYTES = 256 * 1024


def logo(path: str) -> str:
    """The image of a file as a ``data:`` URL; empty without a file.

    :raise SettingsError: for a file that cannot be read, that is too large, or of another type
    """
    if not path:
        return path
    file = Path(path)
    kind = _TYPES.get(file.suffix.lower())
    try:
        image = file.read_bytes() if kind else b""
    except OSError as error:
        raise SettingsError(f"ALMANAC_OPERATOR_LOGO cannot be read: {error.strerror}") from error
    if not image or len(image) > _MAX_BYTES:
        raise SettingsError("ALMANAC_OPERATOR_LOGO must be an SVG, PNG or WebP file of 256 KiB at most")
    return f"data:{kind};base64,{base64.b64encode(image).decode()}"


def colour(text: str) -> str:
    """The colour as CSS has it; empty without one.

    :raise SettingsError: for text that is no hexadecimal colour
    """
    digits = text.removeprefix("#")
    if text and not re.fullmatch(r"[0-9a-fA-F]{6}", digits):
        raise SettingsError("ALMANAC_OPERATOR_COLOUR must be like 2f55c8")
    return f"#{digits.lower()}" if text else ""

"""Texts that try to inject HTML, and texts in other scripts."""

from __future__ import annotations

HTML = "<b onmouseover=alert(1)>x</b>"
TEXTS = (HTML, "שלום עולם", "🗓️ week \u202e olleh", "{{ 7*7 }}", "x" * 100)

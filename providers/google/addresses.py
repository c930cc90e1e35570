"""Spellings of one Google account's address."""

from __future__ import annotations

# https://support.google.com/mail/answer/7436150 and https://support.google.com/mail/answer/10313
_GMAIL = frozenset({"gmail.com", "googlemail.com"})


def is_same_address(one: str, other: str) -> bool:
    """Whether two addresses are one account's.

    Letter case does not matter, nor do dots before the ``@`` of Gmail's own addresses.
    """
    return _canonical(one) == _canonical(other)


def _canonical(address: str) -> str:
    name, _, domain = address.strip().lower().rpartition("@")
    return f"{name.replace('.', '')}@gmail.com" if domain in _GMAIL else f"{name}@{domain}"

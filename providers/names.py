"""The providers' names."""

from __future__ import annotations

from enum import StrEnum


class ProviderName(StrEnum):
    """The providers, by their word in URLs and answers."""

    GOOGLE = "google"
    MICROSOFT = "microsoft"

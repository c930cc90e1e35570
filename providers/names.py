"""The providers' names."""

from __future__ import annotations

from enum import StrEnum


class ProviderName(StrEnum):
    """The providers, as spelled in URLs and answers."""

    GOOGLE = "google"
    MICROSOFT = "microsoft"

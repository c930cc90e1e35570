"""Tells the operator what to check when a provider refuses this installation's OAuth registration."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from providers.errors import Misconfigured
from providers.names import ProviderName

log = logging.getLogger(__name__)


@contextmanager
def minding_the_registration(provider: ProviderName) -> Iterator[None]:
    """Log what to check when the provider refuses the client id and secret."""
    try:
        yield
    except Misconfigured:
        log.error(
            "%s refuses the registration of this installation: check its client id and secret in the "
            "dashboard, or ALMANAC_%s_CLIENT_ID and ALMANAC_%s_CLIENT_SECRET where they are set, and whether "
            "the secret has expired. Connections stay as they are.",
            *(provider.title(), provider.upper(), provider.upper()),
        )
        raise

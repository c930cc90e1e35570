"""Whether a part on this host answers over HTTP: for ``almanac healthy`` and ``almanac up``."""

from __future__ import annotations

from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener


def fault(url: str, *, seconds: float) -> str | None:
    """Why a URL of this host does not answer with success; None if it does."""
    # Ignore the environment's proxies: the request stays on this host.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(url, timeout=seconds):
            return None
    except (URLError, OSError) as error:
        return str(error)

"""How many examples the properties of the engine try."""

import os

from hypothesis import HealthCheck, settings

# Oracles are slow on purpose, and the first example of a zone fills caches.
settings.register_profile(
    "engine",
    max_examples=int(os.environ.get("ALMANAC_EXAMPLES", "200")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("engine")

"""CalDAV's scopes. The protocol has none: a password allows what its account may do.

The server decides on each calendar.
"""

from __future__ import annotations

from providers.scopes import Level, one_scope

SCOPE = "caldav"
SCOPES = one_scope(SCOPE, Level.WRITE)

"""``python -P -m workers.celery_command``: Celery's command line, which imports our packages and no others.

Celery puts the current folder on the path while it loads its app. A folder or a file there with the name of
one of our packages would be imported instead, so these are imported first.
"""

from __future__ import annotations

from celery.__main__ import main

import providers
import scheduling
import store

# Named, so that they are not taken for unused imports.
PACKAGES = (providers, scheduling, store)

if __name__ == "__main__":
    main()

"""Where the built site is, and which file answers a path."""

from __future__ import annotations

from pathlib import Path

# In an installed package the site is beside this file; a checkout has it in its folder for builds.
_HERE = Path(__file__).parent
FOLDER = _HERE / "site" if (_HERE / "site").is_dir() else _HERE.parents[1] / "build/site"

# Documents that had an address of their own before the site had parts.
MOVED = {
    **{name: f"guides/{name}/" for name in ("groups", "holds", "migrating", "organization-grants")},
    **{
        name: f"reference/{name}/"
        for name in ("api", "clients", "errors", "explain", "scheduling", "settings", "time", "webhooks")
    },
    **{name: f"operate/{name}/" for name in ("dashboard", "push", "security")},
    "mcp": "guides/assistants/",
    "observability": "operate/observe/",
    "operations": "operate/deploy/",
    "quickstart": "start/quickstart/",
}


def is_built() -> bool:
    """Whether there is a site; a checkout has none before `make docs`."""
    return (FOLDER / "index.html").is_file()


def file_of(path: str) -> str | None:
    """The file of the site, relative to its folder, that answers a path below `/docs/`."""
    name = f"{path}index.html" if path == "" or path.endswith("/") else path
    # A page has one address, the one of its folder.
    if name == path and path.endswith("index.html"):
        return None
    return name if (FOLDER / name).is_file() else None


def is_page(path: str) -> bool:
    """Whether a page has this address, but for the slash at its end."""
    return (FOLDER / path / "index.html").is_file()

"""Writes what each provider has into `docs/start/providers.md`, from the definitions: `make settings`.

The tables below that one are written by hand, because they are about how providers behave.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.docs_site.tables import with_table
from providers import registry
from providers.definition import Definition, Provider
from providers.events import ShowAs

DOCUMENT = Path(__file__).parents[2] / "docs/start/providers.md"

_FORMS = {"basic": "user name and password", "feed": "an address"}


def document(text: str) -> str:
    """The text of `docs/start/providers.md` with the table below its first heading replaced.

    :raise ValueError: if the heading has no table
    """
    return with_table(text, "At a glance", _table())


def _table() -> str:
    known = [registry.definition(name) for name in registry.names()]
    # The parts of a provider do not depend on the values of its settings.
    bound = [each.bind({setting.name: setting.default for setting in each.settings}) for each in known]
    rows = [
        (title, [cell(*both) for both in zip(known, bound, strict=True)]) for title, cell in _ROWS.items()
    ]
    titles = [f"{each.title} (`{each.name}`)" for each in known]
    lines = [("", titles), *rows]
    head, *body = (f"| {' | '.join([title, *cells])} |\n" for title, cells in lines)
    return f"{head}|{'---|' * (len(known) + 1)}\n{''.join(body)}"


def _connected(known: Definition, _: Provider) -> str:
    if known.form is not None:
        return _FORMS[known.form.type]
    return "consent"


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _writes(known: Definition) -> bool:
    return not known.scopes.unchangeable


def _words(known: Definition, _: Provider) -> str:
    if not _writes(known):
        return ""
    stored = known.event_fields.show_as
    kept = ", ".join(f"`{each}`" for each in ShowAs if stored.get(each) is each)
    others = ", ".join(f"`{each}` as `{word}`" for each, word in stored.items() if each is not word)
    return f"{kept}; {others}" if others else kept


_ROWS: dict[str, Callable[[Definition, Provider], str]] = {
    "an account is connected by": _connected,
    "an organization's grant": lambda known, _: _yes(known.grant),
    "events are written": lambda known, _: _yes(_writes(known)),
    "changes of a calendar": lambda _, bound: _yes(bound.changes),
    "push": lambda _, bound: _yes(bound.channels),
    "`showAs` is stored": _words,
    "`visibility`": lambda known, _: ", ".join(f"`{each}`" for each in known.event_fields.visibility),
    "reminders of an event": lambda known, _: (
        f"up to {known.event_fields.reminders}" if _writes(known) else ""
    ),
}


def main() -> None:
    """Write the file."""
    DOCUMENT.write_text(document(DOCUMENT.read_text()))


if __name__ == "__main__":
    main()

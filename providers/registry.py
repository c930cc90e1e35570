"""The providers of this service: one line for each."""

from __future__ import annotations

from providers.definition import Definition
from providers.google.definition import DEFINITION as GOOGLE
from providers.microsoft.definition import DEFINITION as MICROSOFT
from providers.scopes import Scopes

_DEFINITIONS: dict[str, Definition] = {each.name: each for each in (GOOGLE, MICROSOFT)}


def register(definition: Definition) -> None:
    """Add a provider, before the application or a worker is made."""
    _DEFINITIONS[definition.name] = definition


def names() -> tuple[str, ...]:
    """The names of the providers, as spelled in URLs and answers."""
    return tuple(_DEFINITIONS)


def definition(name: str) -> Definition:
    """The definition of the provider of this name.

    :raise KeyError: if there is none
    """
    return _DEFINITIONS[name]


def title(name: str) -> str:
    """The name of a provider for people."""
    return _DEFINITIONS[name].title


def service(name: str) -> str:
    """The name of a provider's calendars for people."""
    return _DEFINITIONS[name].service


def titles(word: str) -> str:
    """The names of all providers for people, such as "Google and Microsoft"."""
    *others, last = (each.title for each in _DEFINITIONS.values())
    return f"{', '.join(others)} {word} {last}" if others else last


def scopes(name: str) -> Scopes:
    """The scopes of a provider."""
    return _DEFINITIONS[name].scopes

"""The providers of this service: one line for each.

An installed package adds one by an entry point of the group ``almanac.providers`` that names its definition.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import entry_points

from providers.caldav.definition import DEFINITION as CALDAV
from providers.definition import ConsentGuide, Definition, FormGuide, GrantGuide, Provider
from providers.errors import ProviderNotConfigured
from providers.google.definition import DEFINITION as GOOGLE
from providers.ics.definition import DEFINITION as ICS
from providers.microsoft.definition import DEFINITION as MICROSOFT
from providers.scopes import Operation, Scopes

_INSTALLED: tuple[Definition, ...] = tuple(each.load() for each in entry_points(group="almanac.providers"))
_DEFINITIONS: dict[str, Definition] = {
    each.name: each for each in (GOOGLE, MICROSOFT, CALDAV, ICS, *_INSTALLED)
}


def names() -> tuple[str, ...]:
    """The names of the providers, as spelled in URLs and answers."""
    return tuple(_DEFINITIONS)


def with_consent() -> tuple[str, ...]:
    """The names of those whose accounts are connected by consent."""
    return tuple(name for name, each in _DEFINITIONS.items() if each.consent is not None)


def with_grant() -> tuple[str, ...]:
    """The names of the providers with grants of organizations."""
    return tuple(name for name, each in _DEFINITIONS.items() if each.grant is not None)


def with_form() -> tuple[str, ...]:
    """The names of those whose accounts are connected by a form."""
    return tuple(name for name, each in _DEFINITIONS.items() if each.form is not None)


def is_known(name: str) -> bool:
    """Whether there is a provider of this name."""
    return name in _DEFINITIONS


def definition(name: str) -> Definition:
    """The definition of the provider of this name.

    A stored connection may have a name that this version does not know: the package of the provider was
    removed, or a later version has it. Its definition allows nothing.
    """
    return _DEFINITIONS.get(name) or _unknown(name)


@lru_cache(maxsize=64)
def _unknown(name: str) -> Definition:
    return Definition(name, name, name, Scopes({}, dict.fromkeys(Operation, ())), _not_here)


def _not_here(_: object) -> Provider:
    raise ProviderNotConfigured("This version of Almanac does not have the provider")


def title(name: str) -> str:
    """The name of a provider for people."""
    return definition(name).title


def service(name: str) -> str:
    """The name of a provider's calendars for people."""
    return definition(name).service


def consent(name: str) -> ConsentGuide:
    """How this installation is registered with a provider.

    :raise KeyError: if its accounts are not connected by consent
    """
    if (guide := definition(name).consent) is None:
        raise KeyError(name)
    return guide


def grant(name: str) -> GrantGuide:
    """How an organization grants its calendars at a provider.

    :raise KeyError: if it knows no grants of organizations
    """
    if (guide := definition(name).grant) is None:
        raise KeyError(name)
    return guide


def form(name: str) -> FormGuide:
    """The form with which a person connects an account at a provider.

    :raise KeyError: if its accounts are not connected by a form
    """
    if (guide := definition(name).form) is None:
        raise KeyError(name)
    return guide


def impersonates(name: str) -> bool:
    """Whether a grant of an organization impersonates one account at a time at this provider."""
    guide = definition(name).grant
    return guide is not None and guide.impersonates


def form_types() -> tuple[str, ...]:
    """The types of the connections that forms make."""
    return tuple(dict.fromkeys(each.form.type for each in _DEFINITIONS.values() if each.form is not None))


def connection_type(name: str) -> str:
    """The type, in answers, of a connection that a person has made."""
    found = definition(name)
    return "oauth2" if found.form is None or found.consent is not None else found.form.type


def titles(word: str) -> str:
    """The names of all providers for people, such as "Google and Microsoft"."""
    *others, last = (each.title for each in _DEFINITIONS.values())
    return f"{', '.join(others)} {word} {last}" if others else last


def scopes(name: str) -> Scopes:
    """The scopes of a provider."""
    return definition(name).scopes

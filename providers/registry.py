"""The providers of this service: one line for each.

An installed package adds one by an entry point of the group ``almanac.providers`` that names its definition.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.metadata import entry_points

from providers.caldav.definition import DEFINITION as CALDAV
from providers.definition import ConsentGuide, Definition, FormGuide, GrantGuide, Provider
from providers.errors import ProviderNotConfigured
from providers.google.definition import DEFINITION as GOOGLE
from providers.ics.definition import DEFINITION as ICS
from providers.microsoft.definition import DEFINITION as MICROSOFT
from providers.scopes import Operation, Scopes

_GROUP = "almanac.providers"
# A column of the database has 16 characters, and "_" separates the name from that of a setting.
_NAME = re.compile(r"[a-z][a-z0-9]{0,15}")


class InvalidPackage(Exception):
    """The provider that an installed package brings cannot be used."""


def _definitions() -> dict[str, Definition]:
    """All definitions by name.

    :raise InvalidPackage: naming the package
    """
    found = {each.name: each for each in (GOOGLE, MICROSOFT, CALDAV, ICS)}
    for point in entry_points(group=_GROUP):
        package = f"{point.dist.name if point.dist else point.value} ({_GROUP}: {point.name})"
        try:
            made = point.load()
        except Exception as error:
            raise InvalidPackage(f"The provider of {package} cannot be loaded: {error}") from error
        if not isinstance(made, Definition):
            raise InvalidPackage(f"{package} names no providers.definition.Definition")
        if not _NAME.fullmatch(made.name):
            raise InvalidPackage(f"{package}: {made.name!r} must be at most 16 of a to z and 0 to 9")
        if made.name in found:
            raise InvalidPackage(f"{package} brings a provider {made.name}, and there is one of this name")
        found[made.name] = made
    return found


_DEFINITIONS = _definitions()


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

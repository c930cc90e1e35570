"""The settings of web and worker processes, those of the providers included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Any

from providers import registry
from providers.definition import CallQuota, Definition, OwnSetting
from store.cache.cache_tags import has_global_ids
from store.config import declaration, service_urls, settings
from store.config.setting import PREFIX, Setting, SettingsError, declared
from store.config.settings import Settings
from store.coordination.provider_limits import CallLimit

NAMES = registry.names()


class _Gathered(declaration.ProviderSettings):
    def limits(self) -> tuple[Mapping[str, CallLimit], Mapping[str, CallLimit]]:
        """The limits that the definitions state."""
        quotas = {name: registry.definition(name).quotas(self.of(name)) for name in NAMES}
        projects = {name: _limit(each.installation) for name, each in quotas.items() if each.installation}
        accounts = {name: _limit(each.account) for name, each in quotas.items() if each.account}
        return projects, accounts


def _limit(quota: CallQuota) -> CallLimit:
    return CallLimit(quota.calls, quota.seconds)


def _setting(definition: Definition, own: OwnSetting) -> Setting:
    name = f"{PREFIX}{definition.name.upper()}_{own.name.upper()}"
    return Setting(
        name,
        own.default,
        own.help,
        minimum=own.minimum,
        maximum=own.maximum,
        secret=own.secret,
        default_text=own.default_text,
        lines=own.lines,
        convert=_checked(name, own),
    )


def _checked(name: str, own: OwnSetting) -> Callable[[Any], Any] | None:
    check = own.check
    if check is None:
        return service_urls.without_slash if own.is_url else None

    def convert(value: str) -> str:
        try:
            return check(service_urls.without_slash(value) if own.is_url else value)
        except ValueError as error:
            raise SettingsError(f"{name} {error}") from None

    return convert


def _gathered() -> type[declaration.ProviderSettings]:
    """A group with a field for each setting of each provider, named ``<provider>_<setting>``."""
    made: list[tuple[str, Any, Any]] = []
    for definition in map(registry.definition, NAMES):
        if definition.global_ids is not has_global_ids(definition.name):
            raise ValueError(f"{definition.name}: global_ids and store.cache.cache_tags.GLOBAL_IDS differ")
        for own in definition.settings:
            setting = _setting(definition, own)
            as_field = field(repr=not setting.secret, metadata={Setting: setting})
            made.append((f"{definition.name}_{own.name}", type(own.default), as_field))
    return make_dataclass("ProviderSettings", made, bases=(_Gathered,), frozen=True)


ProviderSettings = _gathered()

# Title and settings of each group, in the order of the reference.
GROUPS = tuple(
    (group.title, declared(ProviderSettings if group is declaration.ProviderSettings else group))
    for group in declaration.GROUPS
)

# Without the variables that only a library reads.
SETTINGS = tuple(each for _, group in GROUPS for each in group if each.name.startswith(PREFIX))


def read_settings(data_dir: Path | None = None) -> Settings:
    """Read the environment; see :func:`store.config.settings.read_settings`."""
    return settings.read_settings(ProviderSettings, data_dir)

"""Declarations of settings, and parsing of their values.

A declaration has the name, type, default, range, secrecy and help text of one setting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, TypeVar

from environs import EnvError, FileAwareEnv, validate

T = TypeVar("T")

PREFIX = "ALMANAC_"
# The variable with this suffix names a file that holds the value.
FILE_SUFFIX = "_FILE"


class SettingsError(Exception):
    """A setting is missing or malformed. The message names it and says how to correct it."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting(Generic[T]):
    """One environment variable. Parsing, documentation and `almanac doctor` are derived from it.

    ``kind`` is ``str``, ``int``, ``float``, ``bool``, ``list[str]`` or ``list[float]``. ``minimum`` and
    ``maximum`` are inclusive. ``help`` is Markdown; its first sentence is the comment in `.env.example`.
    """

    name: str
    kind: type[T]
    default: T
    _: KW_ONLY
    help: str
    minimum: float | None = None
    maximum: float | None = None
    # Any case is accepted.
    choices: tuple[str, ...] = ()
    # Never shown, and left out of ``repr``.
    secret: bool = False
    # Otherwise an empty variable is an empty value, not the default.
    empty_is_default: bool = False
    # Documented in place of ``default`` if the default is computed.
    default_text: str = ""
    # The value in `.env.example`, if the default is not a useful one.
    example: str = ""
    # False: docker-compose.yml sets it, so `.env` must not.
    in_dotenv: bool = True

    @property
    def file_variable(self) -> str:
        """The variable that names a file with the value."""
        return self.name + FILE_SUFFIX


class Values:
    """The values of declared settings, read from the environment or from files, by setting."""

    def __init__(self, settings: Iterable[Setting[Any]]) -> None:
        """Parse every setting.

        :raise SettingsError: naming every variable that is malformed
        """
        env = FileAwareEnv(eager=False, strip_whitespace=True)
        self._values = {setting.name: _parse(env, setting) for setting in settings}
        try:
            env.seal()
        except EnvError as error:
            raise SettingsError(str(error)) from error

    def __getitem__(self, setting: Setting[T]) -> T:
        value: T = self._values[setting.name]
        return value


def value_text(value: object) -> str:
    """A value as its variable holds it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(value_text(each) for each in value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _parse(env: FileAwareEnv, setting: Setting[Any]) -> Any:
    validators: list[Callable[[Any], Any]] = []
    if setting.minimum is not None or setting.maximum is not None:
        validators.append(validate.Range(min=setting.minimum, max=setting.maximum))
    name, default = setting.name, setting.default
    value: Any
    if setting.kind is str:
        value = env.str(name, default, validate=validators)
    elif setting.kind is bool:
        value = env.bool(name, default, validate=validators)
    elif setting.kind is int:
        value = env.int(name, default, validate=validators)
    elif setting.kind is float:
        value = env.float(name, default, validate=validators)
    else:
        # Equality, because each ``list[float]`` is another object.
        item = float if setting.kind == list[float] else str
        value = env.list(name, default, subcast=item, validate=validators)
    return default if setting.empty_is_default and value == "" else value

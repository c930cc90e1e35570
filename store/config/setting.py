"""Declarations of settings in dataclasses, and reading of their values from the environment or from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from environs import EnvError, FileAwareEnv, validate

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Group = TypeVar("Group", bound=DataclassInstance)

Parameters = ParamSpec("Parameters")

PREFIX = "ALMANAC_"
# The variable with this suffix names a file that holds the value, as containers receive secrets.
FILE_SUFFIX = "_FILE"


class SettingsError(Exception):
    """A setting is missing or malformed. The message names it and says how to correct it."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """One environment variable. Parsing, documentation and `almanac doctor` are derived from it.

    The type of ``default`` is the type of the variable: text, a number, true or false, or a tuple of texts
    or numbers. ``help`` is Markdown; its first sentence is the comment in `.env.example`. ``minimum`` and
    ``maximum`` are inclusive.
    """

    name: str
    default: Any
    help: str
    _: KW_ONLY
    minimum: float | None = None
    maximum: float | None = None
    # Any case is accepted.
    choices: tuple[str, ...] = ()
    # Never shown, and left out of ``repr``.
    secret: bool = False
    # The value may have several lines.
    lines: bool = False
    # Otherwise an empty variable is an empty value, not the default.
    empty_is_default: bool = False
    # Documented in place of ``default`` if the default is computed.
    default_text: str = ""
    # The value in `.env.example`, if the default is not a useful one.
    example: str = ""
    # False: docker-compose.yml sets it, so `.env` must not.
    in_dotenv: bool = True
    # Makes the field of the group from the value of the variable; raises ``SettingsError``.
    convert: Callable[[Any], Any] | None = None

    @property
    def file_variable(self) -> str:
        """The variable that names a file with the value."""
        return self.name + FILE_SUFFIX


def _in_a_field(make: Callable[Parameters, Setting]) -> Callable[Parameters, Any]:
    """``make``, with its setting in the metadata of a dataclass field."""

    def declare(*args: Parameters.args, **options: Parameters.kwargs) -> Any:
        setting = make(*args, **options)
        return field(repr=not setting.secret, metadata={Setting: setting})

    return declare


# A field of a group of settings; the parameters are those of ``Setting``.
declare = _in_a_field(Setting)


def declared(group: type[DataclassInstance]) -> list[Setting]:
    """The settings of a group, in order."""
    return [each.metadata[Setting] for each in fields(group) if Setting in each.metadata]


def read(group: type[Group], **others: object) -> Group:
    """Read the settings of a group. ``others`` are its fields that are no settings.

    :raise SettingsError: naming every variable that is malformed, or the first file that cannot be read
    """
    values = raw_values(declared(group))
    converted = {
        each.name: setting.convert(values[setting.name]) if setting.convert else values[setting.name]
        for each in fields(group)
        if (setting := each.metadata.get(Setting))
    }
    return group(**others, **converted)


def raw_values(settings: Collection[Setting]) -> dict[str, Any]:
    """The value of each variable by its name, before it is converted.

    :raise SettingsError: naming every variable that is malformed, or the first file that cannot be read
    """
    for setting in settings:
        _check_file(setting)
    env = FileAwareEnv(eager=False, strip_whitespace=True)
    values = {setting.name: _parse(env, setting) for setting in settings}
    try:
        env.seal()
    except EnvError as error:
        raise SettingsError(str(error)) from error
    for setting in settings:
        if setting.choices and values[setting.name] not in setting.choices:
            raise SettingsError(f"{setting.name} must be one of {', '.join(setting.choices)}")
    return values


def value_text(value: object) -> str:
    """A value as its variable holds it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value_text(each) for each in value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _parse(env: FileAwareEnv, setting: Setting) -> Any:
    validators: list[Callable[[Any], Any]] = []
    if setting.minimum is not None or setting.maximum is not None:
        validators.append(validate.Range(min=setting.minimum, max=setting.maximum))
    name, default = setting.name, setting.default
    value: Any
    if isinstance(default, tuple):
        item = float if isinstance(next(iter(default), ""), float) else str
        value = env.list(name, list(default), subcast=item, validate=validators)
        return None if value is None else tuple(value)
    if isinstance(default, str):
        value = env.str(name, default, validate=validators)
        value = value.lower() if value and setting.choices else value
    elif isinstance(default, bool):
        value = env.bool(name, default, validate=validators)
    elif isinstance(default, int):
        value = env.int(name, default, validate=validators)
    else:
        value = env.float(name, default, validate=validators)
    return default if setting.empty_is_default and value == "" else value


def _check_file(setting: Setting) -> None:
    """Check that the file that the environment names for a setting can be read and holds a value.

    Otherwise an empty file would count as "not set", and without a database URL the embedded database is
    used.
    """
    variable = setting.file_variable
    path = os.environ.get(variable)
    if not path:
        return
    if os.environ.get(setting.name):
        raise SettingsError(f"{setting.name} and {variable} are both set: remove one of them")
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise SettingsError(f"{variable}: {path} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{variable}: {path} is not text") from error
    if not text.strip():
        raise SettingsError(f"{variable}: {path} is empty")
    if "\n" in text.strip() and not setting.lines:
        raise SettingsError(f"{variable}: {path} must hold only the value, on one line")

"""The messages between processes: their fields, as recorded in ``messages.json`` for the last release.

`python -m tests.upgrade.messages` records them again, which is right after a release and wrong before.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from providers import base, events
from store.security import one_time_secrets
from workers import jobs
from workers.fanout import codec
from workers.process import create_worker
from workers.queues import Queue

FILE = Path(__file__).with_name("messages.json")

MODULES: tuple[ModuleType, ...] = (base, events, one_time_secrets, codec, jobs)

# The other classes of this module stay within a process.
OF_BASE = ("Calendar", "Failed", "Read")
# The result of an adapter, which stays within a process too.
LOCAL = "CreateResult"


def current(celery: Any) -> dict[str, Any]:
    """The tasks, the queues, and the fields of every message by its class; an array has them in order."""
    return {
        "tasks": sorted(name for name in celery.tasks if not name.startswith("celery.")),
        "queues": sorted(Queue),
        "messages": {name: fields for module in MODULES for name, fields in _messages(module)},
    }


def faults(recorded: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """A sentence for each change that a process of the other version would not understand."""
    for kind in ("tasks", "queues"):
        for name in set(recorded[kind]) - set(now[kind]):
            yield f"{name} is gone from the {kind}: an old process still sends to it"
    for name, before in recorded["messages"].items():
        after = now["messages"].get(name)
        if after is None:
            yield f"{name} is gone: an old process still sends it"
            continue
        names = [field["name"] for field in after["fields"]]
        old = [field["name"] for field in before["fields"]]
        for lost in set(old) - set(names):
            yield f"{name}.{lost} is gone: an old process still reads it"
        if before["array"] and names[: len(old)] != old:
            yield f"{name} is an array, and its fields are in another order"
        for field in after["fields"]:
            if field["name"] not in old and not field["default"]:
                yield f"{name}.{field['name']} is new and has no default: an old process does not send it"


def _messages(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, found in vars(module).items():
        if not isinstance(found, type) or found.__module__ != module.__name__:
            continue
        if name == LOCAL or (module is base and name not in OF_BASE):
            continue
        if issubclass(found, msgspec.Struct):
            struct = found.__struct_config__
            fields = [
                {"name": each.encode_name, "default": not each.required}
                for each in msgspec.structs.fields(found)
            ]
            yield f"{module.__name__}.{name}", {"array": struct.array_like, "fields": fields}
        elif dataclasses.is_dataclass(found):
            nothing = dataclasses.MISSING
            fields = [
                {"name": each.name, "default": (each.default, each.default_factory) != (nothing, nothing)}
                for each in dataclasses.fields(found)
            ]
            yield f"{module.__name__}.{name}", {"array": False, "fields": fields}


def main() -> None:
    """Record the messages of this version."""
    from workers.settings import read_settings

    with create_worker(read_settings()) as celery:
        celery.loader.import_default_modules()
        FILE.write_text(json.dumps(current(celery), indent=1) + "\n")


if __name__ == "__main__":
    main()

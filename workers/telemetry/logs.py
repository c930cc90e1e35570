"""Log set-up for every process: one line for each record on standard error, as text or as JSON."""

from __future__ import annotations

import logging
import re
import sys
from datetime import UTC, datetime
from functools import cache
from typing import Any

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.orjson import OrjsonFormatter

from store.config.settings import LogSettings
from workers.telemetry import request_ids

# Lowest level of a logger and those below it, whatever the settings say. Verbose lines of libraries contain
# e-mail addresses and arguments, and urllib3's warnings contain whole URLs. Celery's lines about tasks are
# replaced by those of ``workers.telemetry.tracing``.
MIN_LEVELS = dict.fromkeys(("app", "workers", "scheduling", "providers", "store"), logging.DEBUG) | {
    "_granian": logging.INFO,
    "celery": logging.INFO,
    "celery.worker.strategy": logging.WARNING,
    "celery.app.trace": logging.WARNING,
    "urllib3": logging.ERROR,
}

# Attributes of a record that are not logged as fields; Celery adds task arguments as "data".
RESERVED = frozenset({*RESERVED_ATTRS, "data", "message", "asctime", "taskName"})

# Exception texts of libraries can contain e-mail addresses.
ADDRESS = re.compile(r"[^\s@'\"<>=(]+@[^\s@'\"<>)]+\.[^\s@'\"<>)]+")


def configure(process: str, settings: LogSettings) -> None:
    """Log to standard error, with the name of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(process) if settings.log_format == "json" else TextFormatter(process))
    handler.addFilter(lambda record: record.levelno >= min_level(record.name))
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)


@cache
def min_level(logger: str) -> int:
    """The lowest level that is logged for a logger."""
    if logger in MIN_LEVELS:
        return MIN_LEVELS[logger]
    above, dot, _ = logger.rpartition(".")
    return min_level(above) if dot else logging.WARNING


class TextFormatter(logging.Formatter):
    """``time process LEVEL logger: message [request=… connection=…]``."""

    def __init__(self, process: str) -> None:
        super().__init__(f"%(asctime)s {process.replace('%', '%%')} %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """RFC 3339 in UTC, with milliseconds."""
        return _moment(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, followed by the extra fields."""
        line = super().formatMessage(record)
        more = " ".join(f"{name}={value}" for name, value in fields(record).items())
        return f"{line} [{more}]" if more else line

    def formatException(self, ei: Any) -> str:
        """The traceback, without e-mail addresses."""
        return ADDRESS.sub("…", super().formatException(ei))


class JsonFormatter(OrjsonFormatter):
    """An object: ``time``, ``level``, ``logger``, ``process``, ``message``, then the extra fields."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        """Fill in the fields."""
        log_data |= {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": self._process,
            "message": record.message,
            **fields(record),
        }
        if (traceback := message_dict.get("exc_info")) is not None:
            log_data["exception"] = traceback

    def formatException(self, ei: Any) -> str:
        """The traceback, without e-mail addresses."""
        return ADDRESS.sub("…", str(super().formatException(ei)))


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """The extra fields of a line: the id of the request, and what was passed as ``extra``."""
    request = request_ids.current.get()
    own = {name: value for name, value in record.__dict__.items() if name not in RESERVED}
    return own if request is None else {"request": request, **own}


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"

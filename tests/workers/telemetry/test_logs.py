"""Log records as text and as JSON, their levels, and tracebacks without e-mail addresses."""

from __future__ import annotations

import logging
import re
import sys

import orjson
import pytest

from store.config.settings import LogSettings
from workers.telemetry import request_ids
from workers.telemetry.logs import JsonFormatter, TextFormatter, configure


def record(message="a channel is lost", **extra):
    made = logging.getLogger("workers.upkeep.channel_maintenance").makeRecord(
        "workers.upkeep.channel_maintenance",
        logging.WARNING,
        "channels.py",
        1,
        message,
        (),
        None,
        extra=extra,
    )
    made.created = 1_795_340_000.0419
    return made


@pytest.fixture
def asked():
    """A request in progress."""
    token = request_ids.current.set("abc.1")
    yield "abc.1"
    request_ids.current.reset(token)


@pytest.fixture
def untouched():
    """Restore the logging set-up after the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def failure():
    try:
        raise KeyError("ada@example.com")
    except KeyError:
        return sys.exc_info()


def test_json_has_its_fields_and_those_of_the_line(asked):
    written = orjson.loads(JsonFormatter("worker1").format(record(connection="c-1")))

    assert written == {
        "time": "2026-11-22T09:33:20.041Z",
        "level": "warning",
        "logger": "workers.upkeep.channel_maintenance",
        "process": "worker1",
        "message": "a channel is lost",
        "request": asked,
        "connection": "c-1",
    }


def test_text_has_the_same_on_a_line(asked):
    assert TextFormatter("100% web").format(record(connection="c-1")) == (
        "2026-11-22T09:33:20.041Z 100% web WARNING workers.upkeep.channel_maintenance: a channel is lost"
        " [request=abc.1 connection=c-1]"
    )


def test_line_without_request_or_fields_has_no_id_or_bracket():
    assert (
        TextFormatter("beat")
        .format(record())
        .endswith("workers.upkeep.channel_maintenance: a channel is lost")
    )
    assert "request" not in orjson.loads(JsonFormatter("beat").format(record()))


@pytest.mark.parametrize("formatter", [TextFormatter("web"), JsonFormatter("web")])
def test_a_traceback_is_one_record_without_addresses(formatter):
    made = record()
    made.exc_info = failure()

    written = formatter.format(made)

    assert "KeyError" in written
    assert "ada@" not in written
    if isinstance(formatter, JsonFormatter):
        assert "Traceback" in orjson.loads(written)["exception"]
        assert "\n" not in written


def test_celery_task_arguments_are_not_a_log_field():
    assert "data" not in orjson.loads(JsonFormatter("web").format(record(data={"args": "planted"})))


@pytest.mark.usefixtures("untouched")
def test_libraries_have_higher_log_levels(capsys):
    configure("web", LogSettings("text", logging.DEBUG))

    for name in (
        "app.x",
        "store.x",
        "_granian",
        "celery.worker",
        "celery.app.trace",
        "urllib3",
        "kombu",
    ):
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
            logging.getLogger(name).log(level, "said")

    said = re.findall(r"(\w+) ([\w.]+): said", capsys.readouterr().err)
    counts = {name: sum(each == name for _, each in said) for _, name in said}
    assert counts == {
        "app.x": 4,
        "store.x": 4,
        "_granian": 3,
        "celery.worker": 3,
        "celery.app.trace": 2,
        "kombu": 2,
        "urllib3": 1,
    }


@pytest.mark.usefixtures("untouched")
def test_at_error_nothing_warns(capsys):
    configure("web", LogSettings("json", logging.ERROR))

    logging.getLogger("app.x").warning("said")
    logging.getLogger("kombu").warning("said")
    logging.getLogger("app.x").error("failed")

    assert orjson.loads(capsys.readouterr().err)["message"] == "failed"

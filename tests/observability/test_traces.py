"""A request is one trace, from the web tier through the fan-out to each call of a provider."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

import pytest
import requests

from store.config import settings as settings_module
from store.config.settings import TRACES, SettingsError
from tests.installation.builder import installed
from tests.installation.processes import web_server
from tests.observability.collector import collecting
from tests.waiting import until
from workers.settings import read_settings
from workers.telemetry import tracing

# Starts a whole installation, which is too slow for the default run.
pytestmark = pytest.mark.long

DAY = {"start": "2026-12-03", "end": "2026-12-04"}
SERVER, CLIENT, PRODUCER, CONSUMER = 2, 3, 4, 5


@pytest.fixture(scope="module")
def collector():
    with collecting() as made:
        yield made


@pytest.fixture(scope="module")
def traced(environment, tmp_path_factory, sandbox_process, collector):
    """An installation that sends its traces to the collector."""
    variables = {TRACES: collector.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
    folder = tmp_path_factory.mktemp("traced")
    with installed(
        environment, folder, web=2, workers=("worker1", "worker2"), beat=True, **variables
    ) as made:
        yield made


@pytest.fixture
def ada(traced, sandbox, unique):
    return traced.user(
        unique("ada"),
        sandbox.account("google", "ada.lovelace@example.com"),
        sandbox.account("microsoft", "charles@example.org"),
    )


@pytest.fixture
def trace(collector):
    """The spans of a call within a client's trace, once ``providers`` calls and all parents have arrived."""

    def make(call, *, providers):
        trace, client = secrets.token_hex(16), secrets.token_hex(8)
        answer = call({"traceparent": f"00-{trace}-{client}-01"})

        def whole():
            spans = collector.of(trace)
            calls = [span for span in spans if span.kind == CLIENT]
            # Each process exports its spans when they end, so a parent may arrive after its children.
            there = {client, *by_id(spans)}
            return len(calls) >= providers and all(span.parent in there for span in spans) and spans

        return client, answer, until(whole)

    return make


def by_id(spans):
    return {span.id: span for span in spans}


def ancestors(span, spans):
    """The names above a span, the nearest first, and the parent of the uppermost."""
    above, all_of_them = [], by_id(spans)
    while span.parent in all_of_them:
        span = all_of_them[span.parent]
        above.append(span.name)
    return above, span.parent


def test_a_request_is_one_trace_down_to_each_call_to_a_provider(traced, ada, trace):
    route = "GET /v1/users/{userId}/calendar/busy"

    client, answer, spans = trace(
        lambda headers: traced.get(f"/users/{ada}/calendar/busy", headers | {"X-Request-Id": "t-1"}, **DAY),
        providers=2,
    )

    assert answer.status_code == 200
    (server,) = (span for span in spans if span.kind == SERVER)
    assert (server.name, server.service, server.parent) == (route, "web", client)
    assert server.attributes == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/v1/users/{userId}/calendar/busy",
        "almanac.request": "t-1",
    }
    calls = [span for span in spans if span.kind == CLIENT]
    assert {span.attributes["almanac.provider"] for span in calls} == {"Google Calendar", "Microsoft 365"}
    for call in calls:
        assert call.service in ("worker1", "worker2")
        assert call.attributes["http.response.status_code"] == 200
        above, top = ancestors(call, spans)
        assert above[-1] == route
        assert above[0] in ("ReadBusy", "ListCalendars")
        assert "reads.drain" in above
        assert "fan-out" in above
        assert top == client
    # Each span but the first has its parent in the trace.
    assert all(span.parent in by_id(spans) for span in spans if span is not server)
    fan_outs = [span for span in spans if span.kind == PRODUCER]
    assert sum(span.attributes["almanac.jobs"] for span in fan_outs) >= 2
    assert not any(span.failed for span in spans)


def test_what_fails_is_marked_by_its_reason(traced, ada, trace, sandbox):
    sandbox.fault(provider="google", status=403, reason="forbidden")

    _, answer, spans = trace(
        lambda headers: traced.get(f"/users/{ada}/scheduling", headers, slotDuration="30", **DAY), providers=2
    )

    assert answer.status_code == 403
    failed = {span.name: span.attributes["error.type"] for span in spans if span.failed}
    assert failed["calendar.freebusy.query"] == "403"
    (server,) = (span for span in spans if span.kind == SERVER)
    assert not server.failed


def test_a_write_is_traced_and_a_shared_read_belongs_to_the_leader(traced, ada, trace):
    event = {"subject": "planted-subject", "start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}

    _, answer, spans = trace(
        lambda headers: traced.call(
            "POST", f"/users/{ada}/calendar/events/google/primary", json=event, headers=headers
        ),
        providers=1,
    )

    assert answer.status_code == 201
    assert {"writes.drain", "CreateEvent"} <= {span.name for span in spans}


def test_nothing_that_a_person_wrote_is_in_any_span(traced, ada, trace, collector):
    paths = [f"/users/{ada}/calendar/events/google/ada.lovelace@example.com/planted-event", f"/users/{ada}"]
    for path in paths:
        trace(lambda headers, path=path: traced.get(path, headers, q="planted-query"), providers=0)
    before = len(collector.spans)
    traced.get(f"/users/{ada}/calendar/busy", {"Cache-Control": "no-cache"}, **DAY)
    until(lambda: len(collector.spans) > before + 3)

    for planted in (
        "planted",
        "lovelace",
        "charles@",
        traced.key[12:],
        "2026-12-03",
        ada,
        "Bearer",
        "127.0.0.1",
    ):
        assert planted.encode() not in collector.raw, planted
    assert all(span.events == 0 for span in collector.spans)


def test_probes_are_not_traced_and_beat_tasks_have_own_traces(traced, collector):
    for path in ("/healthz", "/readyz", "/metrics"):
        traced.session.get(f"{traced.url}{path}", timeout=30)

    sweep = until(lambda: next((span for span in collector.spans if span.name == "webhooks.sweep"), None))
    assert (sweep.kind, sweep.parent) == (CONSUMER, "")
    assert not any("healthz" in str(span) or "/metrics" in str(span) for span in collector.spans)


def test_a_web_process_that_stops_sends_its_last_spans(environment, collector):
    trace = secrets.token_hex(16)
    # Spans are not sent by themselves for as long as the test runs.
    variables = {TRACES: collector.url, "OTEL_BSP_SCHEDULE_DELAY": "600000"}
    with web_server({**environment, **variables}) as port:
        headers = {"traceparent": f"00-{trace}-{secrets.token_hex(8)}-01"}
        answer = requests.get(f"http://127.0.0.1:{port}/v1/users", headers=headers, timeout=10)
        assert answer.status_code == 401

    assert [span.kind for span in collector.of(trace)] == [SERVER]


def test_without_tracing_opentelemetry_is_not_imported():
    program = (
        "import sys, app.wsgi, workers.main; from workers.telemetry import tracing; tracing.start('web'); "
    )
    program += "print(tracing.on(), [name for name in sys.modules if name.startswith(THEIRS)])"
    # The Redis client imports only OpenTelemetry's API package, if that is installed.
    program = program.replace("THEIRS", "('opentelemetry.sdk.trace', 'opentelemetry.exporter')")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("ALMANAC_", "OTEL_"))
    }

    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
    )

    assert ran.stdout.strip() == "False []"


def test_without_tracing_spans_are_one_shared_object():
    assert not tracing.on()
    assert tracing.span("a") is tracing.span("b", "client", {"c": 1})
    carrier: dict[str, str] = {}
    tracing.inject(carrier)
    assert carrier == {}


def test_tracing_without_exporter_package_is_a_settings_error(monkeypatch, tmp_path):
    monkeypatch.setenv(TRACES, "http://127.0.0.1:4318")
    read_settings(tmp_path)
    monkeypatch.setattr(settings_module, "find_spec", lambda _: None)

    with pytest.raises(SettingsError, match=r"install almanac\[otel\], or unset it"):
        read_settings(tmp_path)

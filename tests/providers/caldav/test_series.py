"""Objects of series that are split, and descriptions as HTML, at real servers."""

from __future__ import annotations

from providers.events import Changes, Scope
from tests.providers.caldav.conftest import soon
from tests.providers.caldav.scripted import event
from tests.providers.caldav.test_servers import ALARMS, BOB, UNKNOWN


def test_caldav_keeps_it_in_both_parts_of_a_series(place):
    mine = [each for each in UNKNOWN if not each.startswith("ORGANIZER")]
    series = (*mine, BOB, *ALARMS)
    place.write(event("one", "20261203T090000Z", "20261203T100000Z", "RRULE:FREQ=DAILY;COUNT=5", *series))
    later = place.adapter.update_event(
        place.account,
        place.id,
        "one_20261205T090000Z",
        Changes(subject="New"),
        scope=Scope.FOLLOWING,
        deadline=soon(),
    )
    texts = [text.replace("\r\n", "\n").replace("\n ", "").split("\n") for text in place.texts()]
    assert len(texts) == 2
    for known in texts:
        for each in (*mine, "ACTION:EMAIL", "X-KEPT:1", "TRIGGER:-PT1H", "TRIGGER;RELATED=END:PT5M"):
            assert each in known
        (bob,) = [each for each in known if each.endswith(":mailto:bob@example.com")]
        assert {"X-NUM-GUESTS=2", "PARTSTAT=ACCEPTED"} <= set(bob.partition(":")[0].split(";"))
    assert later.subject == "New"
    (rule,) = [
        line for text in texts if f"UID:{later.id}" in text for line in text if line.startswith("RRULE")
    ]
    assert rule == "RRULE:FREQ=DAILY;COUNT=3"


def test_caldav_has_the_html_of_outlook(place):
    html = "X-ALT-DESC;FMTTYPE=text/html:<html><body><b>A</b> plan\\, and <script>x</script></body></html>"
    place.write(event("one", "20261203T090000Z", "20261203T100000Z", "DESCRIPTION:A plan", html))
    found = place.adapter.event(place.account, place.id, "one", deadline=soon())
    assert (found.description, found.description_html) == ("A plan", "<b>A</b> plan, and")

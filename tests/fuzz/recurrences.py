"""Values that a client may send as a recurrence, most of them wrong."""

from __future__ import annotations

from hypothesis import strategies as st

PARTS = st.tuples(
    st.sampled_from(
        [
            "FREQ",
            "COUNT",
            "UNTIL",
            "INTERVAL",
            "BYDAY",
            "BYMONTH",
            "BYMONTHDAY",
            "BYSETPOS",
            "BYHOUR",
            "WKST",
            "BYMINUTE",
            "BYSECOND",
            "BYWEEKNO",
            "BYYEARDAY",
            "RSCALE",
            "X",
        ]
    ),
    st.sampled_from(
        ["DAILY", "SECONDLY", "YEARLY", "MONTHLY", "WEEKLY", "MO", "1MO,-1FR", "-1", "0", "9999999999"]
    )
    | st.sampled_from(["20270101T000000Z", "99991231", "1,2,3", "", ",", "é", "53", "366", "60", "1"])
    | st.text(max_size=8),
).map("=".join)
LINES = st.builds(
    lambda name, parts: f"{name}:{';'.join(parts)}",
    st.sampled_from(["RRULE", "RRULE", "RRULE", "EXDATE", "RDATE", "EXDATE;TZID=Europe/Berlin", "X"]),
    st.lists(PARTS, max_size=5),
)
TEXTS = st.lists(LINES | st.text(max_size=20) | st.none() | st.integers(0, 9), max_size=4) | st.text(
    max_size=9
)

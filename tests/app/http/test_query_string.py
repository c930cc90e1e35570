"""The fast query parser gives the same result as werkzeug."""

from __future__ import annotations

import flask
from hypothesis import example, given
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder

from app.http.parsing import parse

# What matters to a query, and characters of two and four bytes.
SIGNS = st.text(st.sampled_from("ab=&+;%%%0123CcAaEe89 é😀[]"), max_size=30)


@given(SIGNS)
@example("a=1&a=2&b&=c&&d=")
@example("name=%41%E2%82%AC%FF%4&%C3%A9=%C3x+%2B")
@example("name=é%A9%C3é")
def test_the_query_is_what_werkzeug_makes_of_it(query):
    environ = EnvironBuilder().get_environ() | {"QUERY_STRING": query.encode().decode("latin1")}
    ours, theirs = parse(query.encode()), flask.Request(environ).args
    assert list(ours.items(multi=True)) == list(theirs.items(multi=True))
    assert type(ours) is type(theirs)

"""Descriptions, and the blocks that Teams keeps below them."""

from __future__ import annotations

import pytest

from providers.microsoft import body

RULE = "_" * 80
JOIN = "https://teams.microsoft.com/l/meetup-join/19%3ameeting_abc%40thread.v2/0?context=%7b%7d&anon=true"
# The shape of an invitation as text; the shorter line inside divides off the dial-in.
BLOCK = f"""{RULE}
Microsoft Teams Need help?<https://aka.ms/JoinTeamsMeeting?omkt=en-US>
Join<{JOIN}>
Meeting ID: 212 345 678 901
{"_" * 32}
Need help? | System reference<{JOIN}>
{RULE}
"""
HTML_BLOCK = (
    '<div><br>\r\n<br>\r\n<div class="me-email-text" style="max-width:600px">\r\n'
    f'<div style="white-space:nowrap">{RULE}</div>\r\n'
    f'<div><a href="{JOIN.replace("&", "&amp;")}">Join</a></div>\r\n'
    f"<div>{'_' * 32}</div>\r\n"
    f'<div style="white-space:nowrap">{RULE}</div>\r\n</div>\r\n</div>'
)


def page(content: str) -> str:
    return f"<html>\r\n<head>\r\n<meta name='x'>\r\n</head>\r\n<body>\r\n{content}\r\n</body>\r\n</html>\r\n"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ""),
        ("Agenda", "Agenda"),
        (f"Agenda\n\n\n{BLOCK}", "Agenda"),
        (BLOCK, ""),
        (f"Agenda\n{BLOCK}\nSee you", "Agenda\nSee you"),
        (f"Agenda\n{BLOCK[: -len(RULE) - 2]}", "Agenda"),
        (f"Top\n{RULE}\nOurs\n{BLOCK}", f"Top\n{RULE}\nOurs"),
        (f"Top\n{RULE}\nNo invitation\n{RULE}\nEnd", f"Top\n{RULE}\nNo invitation\n{RULE}\nEnd"),
        (f"Join us at {JOIN}", f"Join us at {JOIN}"),
        ("a\xa0 b", "a  b"),
    ],
)
def test_the_block_is_cut_out_of_a_text_and_nothing_else(text, left):
    assert body.without_block(text, JOIN) == left


@pytest.mark.parametrize(
    "link",
    [
        "https://gov.teams.example/join",
        "https://eur01.safelinks.example/?url=https%3A%2F%2Fteams.microsoft.com%2F",
    ],
)
def test_a_block_is_known_by_the_link_of_the_event_or_by_the_host(link):
    text = f"Agenda\n{RULE}\nJoin<{link}>\n{RULE}\n"
    assert body.without_block(text, "https://gov.teams.example/join") == "Agenda"


@pytest.mark.parametrize(
    "old",
    [
        HTML_BLOCK,
        f"Old text {HTML_BLOCK}",
        f"<div>Old<br>\r\n{HTML_BLOCK}</div>",
        f"<p>Old</p>\r\n{HTML_BLOCK}\r\n<p>and below</p>",
        f"<div>Old {RULE}</div>{HTML_BLOCK}",
    ],
)
def test_a_new_description_is_put_above_the_block_that_is_there(old):
    html = body.above_block("New & <b>", page(old), JOIN)
    assert html.count("me-email-text") == 1
    assert HTML_BLOCK.rstrip("</div>\r\n") in html
    assert html.index("New &amp; &lt;b&gt;") < html.index(RULE)
    assert "Old" not in html
    assert "below" not in html
    assert html.count("<div") == html.count("</div>") or "<div>Old" in old


def test_where_no_block_is_found_one_is_made_of_the_link():
    html = body.above_block("New", page("Old"), JOIN)
    assert "Old" not in html
    assert html.index("New") < html.index(RULE) < html.index(JOIN.replace("&", "&amp;"))
    assert RULE not in body.above_block("New", page("Old"), None)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("", ""),
        ("a\nb\n", "a<br>\r\nb<br>\r\n"),
        ("a & <b>", "a &amp; &lt;b&gt;"),
        ("  a  b ", "&nbsp; a&nbsp; b&nbsp;"),
        ('say "x"', 'say "x"'),
    ],
)
def test_a_text_keeps_its_lines_and_spaces_as_html(text, html):
    assert body.as_html(text) == html

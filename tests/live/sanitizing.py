"""Takes everything personal out of recorded answers: fields and types stay, and equal values stay equal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson

# Fields whose values are words of the provider, not of a person.
VOCABULARY = {
    *("kind", "accessRole", "role", "responseStatus", "response", "showAs", "importance", "sensitivity"),
    *("reason", "token_type", "transparency", "visibility", "eventType", "method", "changeType"),
    "contentType",
}
# A word of a vocabulary, such as `calendar#event`, `notResponded` and `Bearer`.
A_WORD = re.compile(r"[A-Za-z]+(#[A-Za-z]+)?")
# A name of a field, such as `@odata.context` and `primary`; other keys are ids.
A_NAME = re.compile(r"[@$]?[A-Za-z_]{1,40}([.@][A-Za-z_.]{1,40})?")
# Not the field `calendar@odata.navigationLink`.
EMAIL = re.compile(r"[^@\s]+@(?!odata\.)[^@\s]+\.[^@\s]+")
URL = re.compile(r"[a-z]+://.*", re.DOTALL)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d)?)?")


class Leak(AssertionError):
    """A sanitized answer still holds a secret."""


class Sanitizer:
    """Replaces the values of one provider's answers. Booleans and words of vocabularies stay."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = [each for each in secrets if each]
        self._replaced: dict[str, str] = {}

    def clean(self, value: Any, key: str = "") -> Any:
        """The value without anything personal; ``key`` is the field that holds it."""
        match value:
            case dict():
                return {self._key(name): self.clean(each, name) for name, each in value.items()}
            case list():
                return [self.clean(each, key) for each in value]
            case str():
                return self._text(value, key)
            case bool() | None:
                return value
            case float():
                return 0.5
        return 0

    def check(self, recorded: bytes) -> None:
        """:raise Leak: when the text holds a secret, a replaced value or an address of a person"""
        text = recorded.decode()
        if any(each in text for each in self._secrets):
            raise Leak("a recorded answer holds a credential")
        strings = set(_strings(orjson.loads(recorded)))
        # Short values are words that also stand elsewhere.
        if any(len(each) > 8 and each in strings for each in self._replaced):
            raise Leak("a recorded answer holds a value that is personal elsewhere")
        if any(not each.endswith("@example.com") for each in EMAIL.findall(text.replace('"', " "))):
            raise Leak("a recorded answer holds an e-mail address")

    def _key(self, name: str) -> str:
        return name if A_NAME.fullmatch(name) and not EMAIL.fullmatch(name) else self._replace(name)

    def _text(self, text: str, key: str) -> str:
        if not text or (key in VOCABULARY and A_WORD.fullmatch(text)):
            return text
        return self._replace(text)

    def _replace(self, text: str) -> str:
        if MOMENT.fullmatch(text):
            # Its format stays.
            return re.sub(r"\d", "0", text)
        if text not in self._replaced:
            number = len(self._replaced) + 1
            if EMAIL.fullmatch(text):
                made = f"person-{number}@example.com"
            elif URL.fullmatch(text):
                made = f"https://example.com/{number}"
            else:
                made = f"text-{number}"
            self._replaced[text] = made
        return self._replaced[text]


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, str):
        yield value

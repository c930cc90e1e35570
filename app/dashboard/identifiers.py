"""Identifiers in forms: the API's rules, with error texts for people instead of patterns."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import ValidationError

from app.schemas.fields import SLUG, USER_ID, Identifier


class _IdentifierField(Identifier):
    def __init__(self, pattern: re.Pattern[str], rule: str, **options: Any) -> None:
        super().__init__(pattern, **options)
        self._rule = rule

    def parse(self, text: str) -> str:
        """The identifier, without surrounding spaces, which often come with copied text."""
        try:
            return super().parse(text.strip())
        except ValidationError as error:
            raise ValidationError(self._rule) from error


class Slug(_IdentifierField):
    """An organization's slug."""

    RULE = "must have 3 to 128 lower-case letters, digits, - and _, and begin with a letter or digit"

    def __init__(self, **options: Any) -> None:
        super().__init__(SLUG, self.RULE, **options)


class UserId(_IdentifierField):
    """A user's identifier."""

    RULE = "must have 3 to 128 letters, digits, dots, - and _, and begin with a letter or digit"

    def __init__(self, **options: Any) -> None:
        super().__init__(USER_ID, self.RULE, **options)

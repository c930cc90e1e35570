"""The OpenAPI document as it is served."""

from __future__ import annotations

from flask import Response

from app import envelope, vocabulary


class Api(envelope.Api):
    """Its document calls the closed sets of words by their names."""

    def _openapi_json(self) -> Response:
        return envelope.whole(vocabulary.named(self.spec.to_dict()))

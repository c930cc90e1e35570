"""The OpenAPI document as it is served."""

from __future__ import annotations

from flask import Response, make_response

from app.http import envelope, security_headers
from app.openapi import enums


class Api(envelope.Api):
    """Its document calls the closed sets of words by their names."""

    def _openapi_json(self) -> Response:
        return envelope.json_response(enums.named(self.spec.to_dict()))

    def _openapi_swagger_ui(self) -> Response:
        # People enter their keys there.
        return security_headers.own_scripts_only(make_response(super()._openapi_swagger_ui()))

"""Marshmallow schemas of requests and answers, from which the OpenAPI document is made."""

"""Parses answers with the Python client generated from an OpenAPI document, as that client does in a call."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import httpx
from generated import AuthenticatedClient

client = AuthenticatedClient(base_url="", token="", raise_on_unexpected_status=True)
parsed = []
for answer in json.loads(Path(sys.argv[1]).read_text()):
    module = importlib.import_module(f"generated.api.{answer['module']}")
    response = httpx.Response(answer["status"], json=answer["body"])
    value = module._parse_response(client=client, response=response)
    parsed.append(type(value).__name__)
sys.stdout.write(json.dumps(parsed))

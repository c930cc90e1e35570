"""A linter finds nothing in the OpenAPI document; ``redocly.yaml`` says which rules are off, and why."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.generators.conftest import HERE

pytestmark = pytest.mark.generators

# It sends no usage data, and looks for no newer version.
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "CI": "true"}


def test_the_linter_has_no_finding(app, tmp_path: Path):
    document = tmp_path / "openapi.json"
    # Not as on this machine: a rule refuses documents whose server is `localhost`.
    answer = app.test_client().get("/v1/openapi.json", base_url="https://almanac.internal")
    document.write_bytes(answer.data)
    ended = subprocess.run(
        [
            HERE / "node_modules/.bin/redocly",
            *(
                "lint",
                document,
                "--config",
                HERE / "redocly.yaml",
                "--format",
                "json",
                "--max-problems",
                "1000",
            ),
        ],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), **QUIET},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    report = json.loads(ended.stdout[ended.stdout.index("{") :])

    findings = [
        f"{each['severity']} {each['ruleId']}: {each['message']} {each['location'][0].get('pointer', '')}"
        for each in report["problems"]
    ]
    assert findings == []
    assert ended.returncode == 0, ended.stderr

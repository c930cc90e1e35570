"""The types of the TypeScript client, from the OpenAPI document: ``make client-types`` writes them."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from app.web import create_app
from tests.conftest import settings_of

PACKAGE = Path(__file__).parents[2] / "clients/typescript"
TYPES = PACKAGE / "src/openapi.ts"


def generate(document: bytes, target: Path) -> None:
    """Write the types of a document to a file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "openapi.json"
        file.write_bytes(document)
        generator = PACKAGE / "node_modules/.bin/openapi-typescript"
        # Otherwise a field with a default would be required in requests.
        options = ["--default-non-nullable=false", "--output", target]
        subprocess.run([generator, file, *options], capture_output=True, text=True, check=True)


def document() -> bytes:
    """The OpenAPI document of this checkout."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(settings_of({"ALMANAC_DATA_DIR": folder}))
        return app.test_client().get("/v1/openapi.json").data


if __name__ == "__main__":
    generate(document(), TYPES)

"""The TypeScript client for the booking page: ``make client-types`` compiles it into the example.

The compiled files are committed, because the demo runs on machines without Node.js.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from tests.almanac_typescript.types import PACKAGE

TARGET = PACKAGE.parents[1] / "examples/booking/almanac-client"


def modules() -> dict[str, str]:
    """The modules that a page with the client loads, by name, compiled from the sources."""
    with tempfile.TemporaryDirectory() as folder:
        compiler = PACKAGE / "node_modules/.bin/tsc"
        subprocess.run([compiler, "-p", PACKAGE, "--declaration", "false", "--outDir", folder], check=True)
        found: dict[str, str] = {}
        names = ["index.js"]
        while names:
            name = names.pop()
            found[name] = (Path(folder) / name).read_text()
            imported = re.findall(r'from "\./([^"]+)"', found[name])
            names += [each for each in imported if each not in found]
        return found


if __name__ == "__main__":
    TARGET.mkdir(exist_ok=True)
    for file in TARGET.iterdir():
        file.unlink()
    for name, text in modules().items():
        (TARGET / name).write_text(text)

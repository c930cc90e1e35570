"""Builds the documentation site into the wheel, as the package data that `/docs` serves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class DocumentationSite(BuildHookInterface):  # type: ignore[type-arg]
    """The hook of the wheel; an installation for development has the site of `make docs` instead."""

    PLUGIN_NAME = "documentation-site"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the site, and add its files to the wheel."""
        if version == "editable":
            return
        root = Path(self.root)
        subprocess.run([sys.executable, str(root / "docs/site/build.py")], check=True)
        build_data["force_include"][str(root / "build/site")] = "app/docs_site/site"

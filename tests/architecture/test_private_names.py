"""A name that starts with an underscore is private: a module's to its folder, any other to its module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Each folder that holds packages, with its packages.
PACKAGES = {
    ROOT: ("app", "workers", "scheduling", "providers", "store", "tests"),
    ROOT / "clients/python": ("almanac_client", "almanac_mcp"),
}
OURS = {package for packages in PACKAGES.values() for package in packages}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def breaches(code: str, folder: str) -> Iterator[str]:
    """The private names of other modules that a module in ``folder`` imports or takes from a module."""
    tree = ast.parse(code)
    modules: set[str] = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            imported = [alias.name for alias in each.names if alias.name.split(".")[0] in OURS]
        elif isinstance(each, ast.ImportFrom) and (each.module or "").split(".")[0] in OURS:
            imported = [f"{each.module}.{alias.name}" for alias in each.names]
            modules.update(alias.asname or alias.name for alias in each.names)
        else:
            continue
        for name in imported:
            *path, last = name.split(".")
            home = ".".join(path)
            in_folder = home == folder or home.startswith(f"{folder}._")
            is_module = (ROOT / home.replace(".", "/") / f"{last}.py").exists()
            if any(map(private, (*path, last))) and not (in_folder and (is_module or not private(last))):
                yield name
    if folder.split(".")[0] == "tests":
        # A test of a module may reach into it.
        return
    for each in ast.walk(tree):
        match each:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in modules and private(name):
                yield f"{owner}.{name}"


@pytest.mark.slow
def test_no_module_uses_private_names_of_another():
    found: dict[str, list[str]] = {}
    for root, packages in PACKAGES.items():
        for file in (each for package in packages for each in (root / package).rglob("*.py")):
            name = str(file.relative_to(root))
            folder = ".".join(file.relative_to(root).parent.parts)
            if used := list(breaches(file.read_text(), folder)):
                found[name] = used

    assert found == {}

"""The layout of the packages: no circle of imports, no crowded folder, no script in the wrong place."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "workers", "scheduling", "providers", "store")
MAX_MODULES = 26


def modules() -> dict[str, Path]:
    """The file of each module by its dotted name; a package stands for its ``__init__.py``."""
    found = {}
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(file: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the project that a module imports, at once or later, but not for type checkers."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(file.read_text())]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.If) and "TYPE_CHECKING" in ast.unparse(each.test):
            waiting.extend(each.orelse)
            continue
        waiting.extend(ast.iter_child_nodes(each))
        if isinstance(each, ast.ImportFrom) and each.module:
            for alias in each.names:
                name = f"{each.module}.{alias.name}"
                found.add(name if name in known else each.module)
        elif isinstance(each, ast.Import):
            found.update(alias.name for alias in each.names)
    return found & set(known)


def test_no_modules_import_each_other_in_a_circle():
    known = modules()
    order = TopologicalSorter({name: imports(file, known) for name, file in known.items()})

    # It raises ``CycleError``, which names a circle.
    order.prepare()


def test_imports_in_functions_count(tmp_path):
    file = tmp_path / "module.py"
    file.write_text("if TYPE_CHECKING:\n    import a\nelse:\n    import b\ndef f():\n    from c import d\n")

    assert imports(file, dict.fromkeys(("a", "b", "c.d"), file)) == {"b", "c.d"}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folder_has_more_modules_than_a_reader_can_survey(package):
    folders = [ROOT / package, *(each for each in (ROOT / package).rglob("*") if each.is_dir())]
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder in folders
        if (count := len(list(folder.glob("*.py")))) > MAX_MODULES
    }
    assert crowded == {}

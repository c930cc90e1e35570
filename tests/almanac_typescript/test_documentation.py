"""The TypeScript examples in the documentation compile under the strictest rules, and run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.almanac_client.test_verification import BODY, SECRET, signed
from tests.almanac_typescript.conftest import run
from tests.almanac_typescript.types import PACKAGE

pytestmark = pytest.mark.typescript

ROOT = PACKAGE.parents[1]
IN_CLIENTS, IN_README = "docs/reference/clients.md", "clients/typescript/README.md"
RECEIVES = """\
const server = receiver(process.argv[2] ?? "").listen(0, "127.0.0.1", async () => {
  const { port } = server.address() as { port: number };
  const [body = "", headers = ""] = process.argv.slice(3);
  for (const sent of [JSON.parse(headers), {}]) {
    console.log((await fetch(`http://127.0.0.1:${port}`, { method: "POST", body, headers: sent })).status);
  }
  server.close();
});
"""


def blocks(file: str) -> list[str]:
    return re.findall(r"```ts[^\n]*\n(.*?)```", (ROOT / file).read_text(), re.DOTALL)


@dataclass(frozen=True)
class Project:
    """A program's folder, which finds the package as a user's does."""

    folder: Path

    def run(self, program: str, *words: str, **environment: str) -> str:
        """The output of a program."""
        (self.folder / "program.ts").write_text(program)
        run(PACKAGE / "node_modules/.bin/tsc", "-p", "tsconfig.json", cwd=self.folder)
        return run("node", "program.js", *words, cwd=self.folder, environment=environment)


@pytest.fixture
def project(package: Path, tmp_path: Path) -> Project:
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "almanac-client").symlink_to(package)
    (modules / "@types").symlink_to(package / "node_modules/@types")
    (tmp_path / "package.json").write_text(json.dumps({"type": "module"}))
    options = {"extends": str(package / "tsconfig.json")}
    own = {"types": ["node"], "declaration": False, "rootDir": ".", "outDir": "."}
    (tmp_path / "tsconfig.json").write_text(
        json.dumps(options | {"compilerOptions": own, "include": [], "files": ["program.ts"]})
    )
    return Project(tmp_path)


def test_the_example_of_slots_runs(project, base_url, api, sandbox, new_user):
    (example,) = blocks(IN_CLIENTS)
    user = new_user(sandbox.account("google", "ada@example.com"))

    said = project.run(example.replace('"ada"', f'"{user}"'), ALMANAC_URL=base_url, ALMANAC_API_KEY=api.key)

    # Midnight in Berlin.
    assert said.splitlines()[0] == "2026-11-22T23:00:00.000Z"
    assert len(said.splitlines()) == 24


def test_the_example_of_users_runs(project, base_url, new_organization, new_api, unique):
    example, _ = blocks(IN_README)
    user, slug = unique("grace"), new_organization()
    own = example.replace('id: "grace"', f'id: "{user}", organizationSlugs: ["{slug}"]')

    # This key sees the users of its organization only.
    key = new_api(organization=slug).key
    said = project.run(own, ALMANAC_URL=base_url, ALMANAC_API_KEY=key)

    assert said.startswith(f"{user} 20")


def test_the_example_of_webhooks_runs(project):
    _, example = blocks(IN_README)

    said = project.run(example + RECEIVES, SECRET, BODY, json.dumps(signed()))

    assert said.splitlines() == ["calendar.changed ada", "204", "400"]

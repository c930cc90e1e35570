"""docker-compose.yml against its specification, the Procfile and the settings."""

from __future__ import annotations

import copy
import importlib.resources
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from app.cli import secrets
from app.cli.main import main
from tests.packaging.files import ROOT, compose, dockerfile, of, procfile

OURS = ("migrate", "web", "worker", "beat", "flower")
SERVICES = compose()["services"]


def test_it_is_what_the_compose_specification_allows():
    # The specification's own schema, which check-jsonschema brings along.
    vendored = importlib.resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    schema = json.loads(vendored.read_text())

    jsonschema.validate(compose(), schema)
    misspelt = copy.deepcopy(compose())
    misspelt["services"]["web"]["helthcheck"] = misspelt["services"]["web"].pop("healthcheck")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(misspelt, schema)


def test_docker_itself_reads_it(tmp_path: Path):
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not on this machine")
    shutil.copy(ROOT / "docker-compose.yml", tmp_path)
    secrets.write(tmp_path / "secrets")

    read = subprocess.run(
        [docker, "compose", "config", "--quiet"], cwd=tmp_path, capture_output=True, text=True
    )

    assert read.returncode == 0, read.stderr


def test_its_parts_are_those_of_the_procfile():
    # In a container, clients of a part connect from outside.
    started = {name: without_host(SERVICES[name]["command"]) for name in OURS}
    ours = {
        "migrate" if name == "release" else name: without_host(words) for name, words in procfile().items()
    }

    assert started == ours


def without_host(words: list[str]) -> list[str]:
    if "--host" not in words:
        return words
    at = words.index("--host")
    return words[:at] + words[at + 2 :]


@pytest.mark.parametrize("name", OURS)
def test_every_command_takes_the_options_that_it_is_given(name):
    parse(SERVICES[name]["command"])
    parse(procfile()["release" if name == "migrate" else name])


@pytest.mark.parametrize("name", ["web", "worker", "beat", "flower"])
def test_health_check_uses_the_port_of_its_part(name):
    check, *words = SERVICES[name]["healthcheck"]["test"]
    assert (check, words[0]) == ("CMD", "almanac")

    asked = parse(words[1:])

    assert asked["part"] == name
    if "--port" in SERVICES[name]["command"]:
        port = parse(SERVICES[name]["command"])["port"]
        assert asked["port"] == port
        assert [published.rsplit(":", 1)[1] for published in SERVICES[name]["ports"]] == [str(port)]


def parse(words: list[str]) -> dict[str, Any]:
    """The parsed command line; raises the error that a person would see."""
    command: click.Command = main
    with click.Context(main) as context:
        while isinstance(command, click.Group):
            command, words = command.commands[words[0]], words[1:]
        return command.make_context(None, list(words), parent=context).params


@pytest.mark.parametrize("file", ["docker-compose.yml", ".env.example", "Dockerfile"])
def test_every_setting_in_it_is_documented(file):
    documented = set(re.findall(r"`(ALMANAC_\w+)`", (ROOT / "docs/reference/settings.md").read_text()))
    named = set(re.findall(r"\bALMANAC_[A-Z_]+\b", (ROOT / file).read_text()))

    assert named
    assert named <= documented


def test_compose_reads_every_variable_of_the_env_example():
    # Settings are documented on their own page.
    named = set(re.findall(r"\$\{(\w+)", (ROOT / "docker-compose.yml").read_text()))
    asked = {name for name in named if not name.startswith("ALMANAC_")}
    offered = set(re.findall(r"^# (\w+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))

    assert asked
    assert {name for name in asked if not name.startswith("ALMANAC_")} == {
        name for name in offered if not name.startswith("ALMANAC_")
    }


def test_every_secret_is_a_file_that_almanac_makes(tmp_path: Path):
    made = set(secrets.write(tmp_path / "secrets"))

    files = {name: Path(secret["file"]) for name, secret in compose()["secrets"].items()}
    assert {name: file.name for name, file in files.items()} == {name: name for name in made}
    used: set[str] = set()
    for service in SERVICES.values():
        taken = set(service.get("secrets", []))
        assert taken <= made
        wanted = {value for name, value in service.get("environment", {}).items() if name.endswith("_FILE")}
        assert wanted == {f"/run/secrets/{name}" for name in taken}
        used |= taken
    assert used == made


def test_flower_has_no_secret_but_its_password():
    """Its settings are those of its own reader; .env may hold the secrets of the providers' registrations."""
    flower = SERVICES["flower"]

    assert flower["secrets"] == ["flower_password"]
    assert flower["env_file"] == []
    assert {name.removesuffix("_FILE") for name in flower["environment"]} == {
        "ALMANAC_REDIS_URL",
        "ALMANAC_BROKER_URL",
        "ALMANAC_FLOWER_USER",
        "ALMANAC_FLOWER_PASSWORD",
        "ALMANAC_LOG_FORMAT",
        "ALMANAC_LOG_LEVEL",
    }


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_may_do_as_little_as_it_can(name):
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "network_mode", "pid"} & set(service)
    assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
    # Almanac's services run as the image's unprivileged user.
    assert name in OURS or service["user"] not in ("root", "0")


def test_redis_and_the_database_are_reached_by_these_services_alone():
    assert compose()["networks"]["data"]["internal"] is True
    for name in ("redis", "postgres"):
        assert SERVICES[name]["networks"] == ["data"]
        assert "ports" not in SERVICES[name]
    # Providers are outside.
    assert "outside" in SERVICES["worker"]["networks"]


def test_ports_are_published_on_localhost_by_default():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]

    assert len(published) == 2
    assert all(re.fullmatch(r"\$\{PUBLISH_\w+:-127\.0\.0\.1:\d+\}:\d+", port) for port in published)


def test_a_part_may_write_where_the_image_has_its_data():
    final = dockerfile()[-1]
    (data,) = re.findall(r"ALMANAC_DATA_DIR=(\S+)", " ".join(of(final, "ENV")))
    user = of(final, "USER")[0].split(":")[0]

    for name in OURS:
        assert f"{data}:uid={user},gid={user},mode=0700" in SERVICES[name]["tmpfs"]

"""The settings in `almanac doctor`: changed values without secrets, and unknown variables."""

from __future__ import annotations

import os

import pytest

from app.cli.doctor import CheckState, environment


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
        monkeypatch.delenv(name)


def test_an_empty_environment_is_ok():
    assert environment.settings(os.environ) == (
        CheckState.OK,
        "Each can be read; not at their default: none",
        "",
    )


def test_changed_settings_are_shown_without_their_secrets(monkeypatch, tmp_path):
    file = tmp_path / "flower"
    file.write_text("planted-password\n")
    monkeypatch.setenv("ALMANAC_FLOWER_PASSWORD_FILE", str(file))
    monkeypatch.setenv("ALMANAC_SECRET_KEY", "planted-key")
    monkeypatch.setenv("ALMANAC_REDIS_URL", "redis://:planted@cache/0")
    monkeypatch.setenv("ALMANAC_FANOUT_DEADLINE", "7.5")
    monkeypatch.setenv("ALMANAC_WEBHOOKS_RETRY_SECONDS", "5,60")

    state, sentence, _ = environment.settings(os.environ)

    assert state is CheckState.OK
    assert sentence.endswith(
        "not at their default: ALMANAC_REDIS_URL (secret), ALMANAC_SECRET_KEY (secret), "
        "ALMANAC_WEBHOOKS_RETRY_SECONDS=5,60, ALMANAC_FANOUT_DEADLINE=7.5, ALMANAC_FLOWER_PASSWORD (secret)"
    )


def test_a_setting_that_is_set_to_its_default_is_not_shown(monkeypatch):
    monkeypatch.setenv("ALMANAC_FANOUT_DEADLINE", "10")

    assert "FANOUT_DEADLINE" not in environment.settings(os.environ)[1]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("ALMANAC_FANOUT_DEADLNE", "Rename ALMANAC_FANOUT_DEADLNE to ALMANAC_FANOUT_DEADLINE"),
        ("ALMANAC_COLOUR", "Remove ALMANAC_COLOUR, or correct its name"),
    ],
)
def test_an_unknown_variable_is_a_warning_with_its_name_alone(monkeypatch, name, advice):
    monkeypatch.setenv(name, "planted")

    state, sentence, found = environment.settings(os.environ)

    assert state is CheckState.WARNING
    assert sentence.startswith(f"{name} is not a setting. Each can be read")
    assert found == advice
    assert "planted" not in sentence


def test_variables_of_clients_are_not_unknown(monkeypatch):
    monkeypatch.setenv("ALMANAC_API_KEY", "alm_planted")
    monkeypatch.setenv("ALMANAC_URL", "https://almanac.example.com")

    assert environment.settings(os.environ)[0] is CheckState.OK

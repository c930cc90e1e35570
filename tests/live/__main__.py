"""``make test-live``: the adapters against real accounts of Google and Microsoft.

Exit status: 0 when all steps have passed, 1 when one has not, 2 when no credentials are given.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click
import orjson

from providers.errors import ProviderError
from tests.live import credentials
from tests.live.credentials import LiveAccount
from tests.live.recording import Recorder
from tests.live.sanitizing import Sanitizer
from tests.live.suite import Suite
from workers.settings import read_settings

RECORDED = Path(__file__).parent / "recorded"

DOCUMENT = "docs/engineering/live-tests.md"


@click.command()
@click.option("--to", default=RECORDED, type=click.Path(path_type=Path), help="Where answers are recorded.")
@click.option("--patience", default=credentials.SECONDS, help="Seconds for one call.")
def main(to: Path, patience: float) -> None:
    """Run the suite for every account of the environment, and record sanitized answers."""
    lacking = credentials.missing(os.environ)
    for what, names in lacking.items():
        click.echo(f"{what}: not tested, set {', '.join(names)}")
    try:
        live = credentials.accounts(os.environ, read_settings().providers, seconds=patience)
    except ProviderError as error:
        raise click.ClickException(f"{error.message}: is the refresh token still valid?") from error
    if not live:
        click.echo(f"No account is given. {DOCUMENT} says how to make one.")
        sys.exit(2)
    passed = [tested(each, os.environ, to, patience) for each in live]
    if not all(passed):
        sys.exit(1)


def tested(live: LiveAccount, environment: Mapping[str, str], to: Path, patience: float) -> bool:
    """Whether all steps have passed for an account; then its answers are recorded."""
    recorder = Recorder(bases(live))
    outcomes = Suite(live, recorder, patience=patience).run()
    for each in outcomes:
        click.echo(f"{live.provider}: {each.step}: {each.fault or 'passed'}")
    if any(each.fault for each in outcomes):
        return False
    record(live, recorder, credentials.secrets_of(environment), to)
    return True


def record(live: LiveAccount, recorder: Recorder, secrets: list[str], to: Path) -> Path:
    """Write the sanitized answers of an account, and return the file."""
    sanitizer = Sanitizer(secrets)
    answers = [{"name": each.name, "body": sanitizer.clean(each.body)} for each in recorder.exchanges]
    content = orjson.dumps(answers, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    sanitizer.check(content)
    to.mkdir(parents=True, exist_ok=True)
    file = to / f"{live.provider}.json"
    file.write_bytes(content)
    return file


def bases(live: LiveAccount) -> dict[str, str]:
    """The addresses of the provider, by their names in recorded paths."""
    at = live.endpoints
    if isinstance(at, credentials.GoogleEndpoints):
        return {"api": at.api, "token": at.token}
    return {"graph": at.graph, "login": at.login}


if __name__ == "__main__":
    main()

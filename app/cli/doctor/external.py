"""Checks of connections to the outside: the providers, the public URL and the proxies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import requests

from app.accounts import oauth_clients
from app.cli.doctor.diagnosis import SECONDS, CheckResult, CheckState, Examination
from app.dashboard.sign_in import openid
from app.observability.metrics import CIRCUIT_KEYS
from providers import registry
from providers.oauth import registration_probe
from providers.oauth.registration_probe import ProbeVerdict
from store.security.crypto import Undecipherable
from store.security.redirect_allowlist import is_this_machine
from store.sql.queries import organization_grants
from workers.jobs import FindSignInPage

# At most this many ended grants are named.
MAX_NAMED = 5


def registration(name: str) -> Callable[[Examination], CheckResult]:
    """The check that the OAuth client registered with a provider is valid."""
    return partial(_provider, name=name)


def grants(examination: Examination) -> CheckResult:
    """Providers accept the grants of organizations, according to the last call by each."""
    with examination.services.stores.database.reading() as session:
        counts = organization_grants.counts(session).values()
        ended = organization_grants.dead(session, limit=MAX_NAMED)
    alive, dead = sum(each.alive for each in counts), sum(each.dead for each in counts)
    if not dead:
        return (
            CheckState.OK,
            f"{alive} grants of organizations, none has ended" if alive else "There are none",
            "",
        )
    named = "; ".join(
        f"{each.organization} at {registry.service(each.provider)}: {each.ended_because}" for each in ended
    )
    more = f"; and {dead - len(ended)} more" if dead > len(ended) else ""
    verb = "has" if dead == 1 else "have"
    return (
        CheckState.WARNING,
        f"{dead} of {alive + dead} grants of organizations {verb} ended, and members cannot be read. "
        f"{named}{more}",
        "Let the administrator of the organization act at the provider, then store the grant again",
    )


def accounts(examination: Examination) -> CheckResult:
    """The last read of each account has succeeded, and no circuit breaker is open."""
    stores = examination.services.stores
    failing = stores.last_reads.failing_counts()
    states = stores.provider_limits.states(CIRCUIT_KEYS)
    found = []
    if failing:
        reasons = (f"{registry.title(name)} {why} {count}" for (name, why), count in sorted(failing.items()))
        found.append(
            "Accounts whose last read failed, so that their people cannot be booked: "
            f"{sum(failing.values())} ({', '.join(reasons)})"
        )
    found += [
        f"{registry.title(circuit.provider)} fails, and its {circuit.access} are refused for some seconds"
        for circuit, each in states.items()
        if each.open
    ]
    if number := sum(each.accounts for each in states.values()):
        found.append(f"Accounts whose calls are refused for some seconds: {number}")
    if not found:
        return CheckState.OK, "No last read of an account has failed, and no circuit breaker is open", ""
    advice = "The overview of the dashboard names the people; docs/operate/runbook.md has each reason"
    return CheckState.WARNING, ". ".join(found), advice


def identity_provider(examination: Examination) -> CheckResult:
    """The identity provider of the dashboard answers a worker now, as the issuer of the settings."""
    settings = examination.settings
    if not settings.oidc_issuer:
        return CheckState.OK, "People sign in to the dashboard with a password", ""
    with examination.app.app_context():
        found = openid.ask_worker(FindSignInPage(fresh=True))
    if found.refused is not None:
        _, sentence, advice = openid.REFUSALS[found.refused]
        return CheckState.WRONG, sentence, advice
    passwords = "a password or " if settings.password_sign_in else ""
    issuer = settings.oidc_issuer
    return (
        CheckState.OK,
        f"{issuer} has answered a worker just now: people sign in with {passwords}an account there",
        "",
    )


def public_url(examination: Examination) -> CheckResult:
    """The public URL leads to an installation of Almanac; nothing says whether to this one."""
    url = examination.settings.public_url
    if not url:
        return (
            CheckState.WARNING,
            "ALMANAC_PUBLIC_URL is not set: accounts can be connected only on this machine, and push is off",
            "Set it to the https address of your proxy",
        )
    address = urlsplit(url)
    if address.scheme != "https" and not is_this_machine(address.hostname or ""):
        return (
            CheckState.WRONG,
            f"{url} is not https: keys and calendars would be sent unencrypted, and push is off",
            "Put a proxy with a certificate before the service, and set ALMANAC_PUBLIC_URL to it",
        )
    if fault := _unreachable(f"{url}/healthz"):
        return (
            CheckState.WRONG,
            f"{url} {fault}",
            "Check ALMANAC_PUBLIC_URL, its DNS entry and the proxy behind it",
        )
    return CheckState.OK, f"An Almanac answers at {url}", ""


def proxies(examination: Examination) -> CheckResult:
    """Proxies in front are declared, so that each client is known by its own address."""
    number = examination.settings.trusted_proxies
    if number:
        return CheckState.OK, f"Addresses of clients are taken from {number} declared in front", ""
    if examination.settings.public_url.startswith("https:"):
        return (
            CheckState.WARNING,
            "ALMANAC_PUBLIC_URL is https, so a proxy is in front, and ALMANAC_TRUSTED_PROXIES is 0: all "
            "clients count as one address, and one that guesses passwords makes the others wait",
            "Set ALMANAC_TRUSTED_PROXIES to the number of proxies in front of the service",
        )
    return CheckState.OK, "No proxy is declared: the address of a client is that of its connection", ""


def _provider(examination: Examination, name: str) -> CheckResult:
    try:
        with examination.app.app_context():
            finding = oauth_clients.check(name, site=examination.settings.public_url or None)
    except Undecipherable:
        return CheckState.UNKNOWN, "Not checked, because of: encryption keys", ""
    if finding is None:
        variable = f"ALMANAC_{name.upper()}_CLIENT_ID"
        return (
            CheckState.WARNING,
            "Neither this environment nor the dashboard has a registration: accounts are not connected by "
            "browser, and access ends with its token",
            f"Enter one in the dashboard, or set {variable} and {variable.replace('_ID', '_SECRET')}",
        )
    # Some providers never confirm the secret of a valid registration: no advice would help.
    if finding.verdict is ProbeVerdict.RIGHT or finding.usual:
        return CheckState.OK, finding.sentence, ""
    if finding == registration_probe.unreachable(registry.title(name)):
        return CheckState.WARNING, finding.sentence, "Run almanac doctor again when the provider answers"
    state = CheckState.WRONG if finding.verdict is ProbeVerdict.WRONG else CheckState.WARNING
    return state, finding.sentence, finding.advice


def _unreachable(url: str) -> str | None:
    try:
        answer = requests.get(url, timeout=SECONDS, allow_redirects=False)
        known = answer.ok and answer.json() == {"status": "ok"}
    except requests.exceptions.SSLError:
        return "has no certificate that is trusted here"
    except (requests.Timeout, requests.ConnectionError) as error:
        return f"cannot be reached from here ({type(error).__name__})"
    except ValueError:
        return "leads to something else"
    return None if known else f"leads to something else, which answers {answer.status_code}"

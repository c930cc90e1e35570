"""The page on which a user chooses an account and scopes, for both OAuth servers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import parse_qs

from providers.sandbox import seeds
from providers.sandbox.accounts import Account, Provider
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.world import World

TITLES: dict[Provider, str] = {"google": "Google", "microsoft": "Microsoft"}
# A longer list would not help users; the field below takes any address.
MAX_LISTED = 50

STYLE = """
:root { color-scheme: light dark; --ink: #1c2230; --quiet: #525a6b; --paper: #eef1f6; --card: #fff;
  --line: #c3c9d6; --accent: #1a5fd0; --on-accent: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaf0; --quiet: #a7afc0; --paper: #14171e;
  --card: #1f242e; --line: #4a5263; --accent: #8ab4ff; --on-accent: #10131a; } }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main { box-sizing: border-box; width: min(36rem, 100%); padding: 2rem; background: var(--card);
  border-radius: .75rem; }
h1 { margin: 0 0 .25rem; font-size: 1.375rem; }
p { margin: 0 0 1rem; color: var(--quiet); }
fieldset { margin: 0 0 1rem; padding: .5rem 1rem 1rem; border: 1px solid var(--line); border-radius: .5rem; }
legend { padding: 0 .25rem; font-weight: 600; }
label { display: block; padding: .25rem 0; overflow-wrap: anywhere; }
input[type=email] { box-sizing: border-box; width: 100%; padding: .5rem; font: inherit; color: inherit;
  background: transparent; border: 1px solid var(--line); border-radius: .375rem; }
button { padding: .5rem 1.25rem; margin-right: .5rem; font: inherit; color: var(--accent);
  background: transparent; border: 1px solid var(--accent); border-radius: .375rem; cursor: pointer; }
button.main { color: var(--on-accent); background: var(--accent); }
.problem { color: inherit; font-weight: 600; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
"""


class Consent(NamedTuple):
    """The chosen account and scopes."""

    account: Account
    scopes: tuple[str, ...]


def decision(
    world: World, provider: Provider, request: Request, scopes: tuple[str, ...]
) -> Consent | Answer | None:
    """The user's consent, None when it was declined; an answer (the page) while the user has not decided.

    A program, which does not accept HTML, consents to everything as the user in ``login_hint``.
    """
    if request.method == "POST":
        return _decided(world, provider, request, scopes)
    if "text/html" in request.headers.get("accept", ""):
        return _page(world, provider, request, scopes)
    account = world.account(provider, request.one("login_hint"))
    return Consent(account, scopes) if account else None


def _decided(
    world: World, provider: Provider, request: Request, requested: tuple[str, ...]
) -> Consent | Answer | None:
    fields = parse_qs(request.body.decode("utf-8", "replace"))
    ticked = fields.get("scope", ())
    # Only requested scopes, in the requested order.
    scopes = tuple(scope for scope in requested if scope in ticked)
    if fields.get("decision") != ["allow"] or not scopes:
        return None
    newcomer = fields.get("newcomer", [""])[0].strip()
    email = newcomer or fields.get("account", [""])[0]
    if "@" not in email:
        problem = "Choose an account, or type the address of a new one."
        return _page(world, provider, request, requested, problem=problem)
    return Consent(world.account(provider, email) or _new_account(world, provider, email), scopes)


def _page(
    world: World, provider: Provider, request: Request, scopes: Sequence[str], *, problem: str = ""
) -> Answer:
    """The form posts to the page's own address, whose query holds the request."""
    title = TITLES[provider]
    application = escape(request.one("client_id"))
    content = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} sandbox: allow access?</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>Allow <em>{application}</em> to use your {title} account?</h1>
<p>This is the sandbox: its accounts are made up.</p>
{f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""}
<form method="post" action="{escape(request.target)}">
<fieldset><legend>Account</legend>
{_accounts(world, provider, request.one("login_hint"))}
</fieldset>
<fieldset><legend>It may</legend>
{_scopes(scopes)}
</fieldset>
<button class="main" name="decision" value="allow">Allow</button>
<button name="decision" value="deny">Deny</button>
</form>
</main>
</body>
</html>
"""
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Cache-Control": "no-store",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    }
    return Answer(200, body=content.encode(), headers=headers)


def _accounts(world: World, provider: Provider, hint: str) -> str:
    known = [account.email for account in world.accounts.values() if account.provider == provider]
    if "@" in hint:
        known = [hint, *(email for email in known if email.lower() != hint.lower())]
    radios = [_radio(email, chosen=number == 0) for number, email in enumerate(known[:MAX_LISTED])]
    return "\n".join(
        [
            *radios,
            '<label for="newcomer">Another address; its account is made if it is not there:</label>',
            '<input type="email" id="newcomer" name="newcomer" placeholder="you@example.com" '
            'autocomplete="off">',
        ]
    )


def _radio(email: str, *, chosen: bool) -> str:
    checked = " checked" if chosen else ""
    value = escape(email)
    return f'<label><input type="radio" name="account" value="{value}"{checked}> {value}</label>'


def _scopes(scopes: Sequence[str]) -> str:
    return "\n".join(
        f'<label><input type="checkbox" name="scope" value="{escape(scope)}" checked> {escape(scope)}</label>'
        for scope in scopes
    )


def _new_account(world: World, provider: Provider, email: str) -> Account:
    account = seeds.account(world, {"provider": provider, "email": email})
    world.add(account)
    return account

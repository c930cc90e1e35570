"""How secrets are compared and generated, read from the code: no measurement would show it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.sql.models import ApiKey, Base, DashboardSession, Invitation

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "workers", "scheduling", "providers", "store")
SECRET = re.compile(r"secret|token|password|digest|signature|verifier|csrf", re.IGNORECASE)

# The database finds them by a hash of the sent value: the lookup time reveals nothing of the stored one.
BY_HASH = {
    ("store/sql/queries/api_keys.py", "ApiKey.digest == hashed"),
    ("store/sql/queries/api_keys.py", "ApiKey.previous_digest == hashed"),
    ("store/sql/queries/api_keys.py", "ApiKey.previous_digest == digest(which)"),
    ("store/sql/queries/api_keys.py", "row.digest != hashed"),
    ("store/sql/queries/api_keys.py", "ApiKey.digest == digest(which)"),
    ("store/sql/queries/administrators.py", "Invitation.digest == digest(secret)"),
    ("store/sql/queries/dashboard_sessions.py", "DashboardSession.digest == digest(secret)"),
    ("store/sql/queries/idempotency.py", "IdempotencyKey.digest == claim.digest"),
    ("store/sql/queries/second_factors.py", "RecoveryCode.digest == _digest(code)"),
    ("store/sql/queries/user_invitations.py", "UserInvitation.digest == digest(secret)"),
    ("store/sql/queries/idempotency.py", "IdempotencyKey.claim == claim.token"),
}
# An attacker knows neither the time nor the operands of these comparisons.
OURS = {
    # Of the content of a feed.
    ("providers/ics/feeds.py", "known.digest == digest"),
    # Of events, and of the place of a calendar in a cursor, which is encrypted.
    ("providers/changes.py", "before.get(name) != digests.get(name)"),
    ("store/sql/queries/event_feeds.py", "EventFeed.calendar == digest(key.calendar)"),
    ("workers/upkeep/event_states.py", "(old and old.digest) != (new and new.digest)"),
    ("app/events/changes.py", "digest(page.sync_token) != known"),
    ("app/dashboard/sign_in/pages.py", "form.data['again'] != form.data['password']"),
    ("app/dashboard/forms.py", "name != csrf.FIELD"),
    # The kind of a field.
    ("app/dashboard/account_page.py", "each.kind == 'password'"),
    ("providers/oauth/token_errors.py", "word == 'invalid_token'"),
    ("app/accounts/organization_grants.py", "(client_id is None) != (secret is None)"),
    ("app/accounts/organization_grants.py", "field == 'clientSecret'"),
    ("store/sql/queries/holds.py", "Hold.claim == token"),
    # The hash that was read before; the password has changed if it differs.
    ("store/sql/queries/administrators.py", "Administrator.password_hash == verified_hash"),
    # The ciphertext that was read before; the row has changed if it differs.
    (
        "store/sql/queries/second_factors.py",
        "Administrator.sealed_totp_secret == administrator.sealed_totp_secret",
    ),
    ("workers/upkeep/identities.py", "stored.sealed_refresh_token == identity.sealed_refresh_token"),
    ("workers/execution/organization_tokens.py", "token == rejected"),
    ("workers/execution/accounts.py", "self._tokens.access_token == rejected.reveal"),
}
COMPARED = {
    "app/accounts/consent_cookie.py",
    "app/dashboard/csrf.py",
    "app/dashboard/sign_in/login_throttle.py",
    "app/dashboard/sign_in/openid.py",
    "app/observability/scrape.py",
    "store/sql/queries/channels.py",
    "store/sql/queries/second_factors.py",
}

UNSAFE = {"pickle", "marshal", "shelve", "yaml", "dill", "xml"}
# It builds elements and writes them; answers of servers are parsed by defusedxml, and without a DTD. Of the
# standard library's XML it has no name that parses.
OF_XML = "providers/caldav/xml.py"
NO_PARSERS = {
    *("ElementTree.Element", "SubElement", "TreeBuilder"),
    *("ElementTree.register_namespace", "ElementTree.tostring"),
}

# Random spread of retries; random demo data.
BY_CHANCE = {
    "app/cli/demo.py",
    "providers/http/send.py",
    "workers/webhooks/delivery.py",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """The code that runs in an installation; the sandbox has no secrets."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            if "sandbox" not in file.parts:
                yield str(file.relative_to(ROOT)), ast.parse(file.read_text())


@pytest.mark.slow
def test_no_secret_is_compared_letter_by_letter():
    compared = {
        (file, ast.unparse(node))
        for file, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops)
        and SECRET.search(ast.unparse(node))
    }

    assert compared == BY_HASH | OURS


@pytest.mark.slow
def test_what_is_compared_by_us_is_compared_in_the_same_time():
    calls = {
        file
        for file, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "hmac.compare_digest"
    }

    assert calls == COMPARED


@pytest.mark.slow
def test_no_secret_comes_from_a_predictable_source():
    by_chance = {
        file
        for file, tree in modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(each.name == "random" for each in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random"))
    }

    assert by_chance == BY_CHANCE


def test_no_table_has_a_secret_that_can_be_read():
    """Each is a hash or is sealed; a column that is only named like a secret is listed here."""
    named = {
        f"{table.name}.{column.name}"
        for table in Base.metadata.sorted_tables
        for column in table.columns
        if re.search(r"secret|token$|password|key$|answer|code", column.name)
        and not re.match(r"sealed_|.*_hash$|.*digest$", column.name)
    }

    assert named == set()
    assert all(table.digest.type.length == 64 for table in (ApiKey, DashboardSession, Invitation))


def test_no_module_uses_a_shell_or_unpickles_objects():
    unsafe = {
        (file, package)
        for file, tree in modules()
        for node in ast.walk(tree)
        for package in _packages(node)
        if package in UNSAFE
    }

    assert unsafe == {(OF_XML, "xml")}


def _packages(node: ast.AST) -> set[str]:
    """The packages that a statement imports from."""
    if isinstance(node, ast.Import):
        return {each.name.partition(".")[0] for each in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {(node.module or "").partition(".")[0]}
    return set()


def test_no_xml_is_parsed_by_the_standard_library():
    nodes = list(ast.walk(ast.parse((ROOT / OF_XML).read_text())))
    imported = {
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and "xml" in _packages(node)
        for alias in node.names
    }
    used = {
        ast.unparse(node)
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ElementTree"
    }

    assert (imported - {"ElementTree"}) | used == NO_PARSERS

"""Connects an account by a form: a worker opens the account, and the connection is stored."""

from __future__ import annotations

from collections.abc import Mapping

from app.accounts.consent_refusals import ConsentRefused
from app.accounts.disconnect import clean_up
from app.accounts.ownership import CONNECTION, own_user
from app.http.errors import Invalid, NotFound
from app.http.provider_failures import request_failed
from app.schemas.error_codes import Code
from app.services import services
from providers.base import Failed
from providers.errors import Reason
from scheduling.windows import zone_exists
from store.security.one_time_secrets import AccountByForm, EnteredForm
from store.sql.models import OAuthConnection
from store.sql.queries import audit, connections, user_invitations
from store.sql.queries.api_keys import Caller
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.connections import ReplacedConnection
from store.sql.queries.user_invitations import ConsentRefusal
from workers.jobs import OpenAccount

LOST = Failed(Reason.PROVIDER_ERROR, "The account was lost on the way from a worker; send the form again")


def connect(
    caller: Caller,
    custom_id: str,
    provider: str,
    values: Mapping[str, str],
    label: str | None = None,
    *,
    account: str = ReplacedConnection.ADD,
    invitation_id: str | None = None,
) -> tuple[OAuthConnection, bool]:
    """Store the connection of the account behind a form; also whether the same account was replaced.

    ``account`` is the id of the connection whose account is connected again, see ``ReplacedConnection``. An
    invitation by which the form was sent is used up. Do not call this within a transaction, because it waits
    for a worker.

    :raise ApiError: for a user that the caller may not change, an invitation that cannot be used any more,
        a connection that is gone, wrong credentials, a field that leads to no calendar, or a server that does
        not answer; nothing is stored then
    """
    database = services().stores.database
    with database.writing() as session:
        user_id = own_user(session, caller, custom_id, otherwise=CONNECTION).id
        rows = connections.with_provider(session, user_id, provider)
        known = {
            row.account_id: row.main_calendar_id
            for row in rows
            if row.account_id is not None and row.main_calendar_id is not None
        }
        reconnects = {row.public_id: row.account_id for row in rows}
    if account != ReplacedConnection.ADD and account not in reconnects:
        raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)
    opened = _open(EnteredForm(provider, dict(values), known, reconnects.get(account)))
    with database.writing() as session:
        user = own_user(session, caller, custom_id, otherwise=CONNECTION)
        if invitation_id is not None and not user_invitations.use(session, invitation_id):
            raise ConsentRefused(ConsentRefusal.INVITATION_GONE)
        row, replaced = connections.replace(
            session,
            services().stores.keyring,
            user_id=user.id,
            provider=provider,
            email=opened.email,
            scope=opened.scope,
            tokens=Tokens(opened.credentials, None, None),
            account_id=opened.account_id,
            account=account,
            label=label,
        )
        if opened.main_calendar_id is not None:
            connections.identify(
                session,
                row.id,
                main_calendar_id=opened.main_calendar_id,
                mailbox=opened.mailbox,
                time_zone=opened.time_zone if zone_exists(opened.time_zone or "") else None,
            )
        action = "replaceConnection" if replaced else "storeConnection"
        audit.record(session, actor=caller.visible, action=action, subject=f"{custom_id}/{provider}")
    clean_up(replaced)
    return row, bool(replaced)


def _open(entered: EnteredForm) -> AccountByForm:
    """Have a worker open the account."""
    stores = services().stores
    reply = services().ask(OpenAccount(stores.entered_forms.put(entered)))
    if reply.failed is not None:
        raise request_failed(reply.failed)
    if reply.form is None:
        raise RuntimeError("a form was not opened")
    if reply.form.refused is not None:
        raise Invalid(f"{reply.form.refused} {reply.form.message}", param=reply.form.refused)
    opened = stores.opened_accounts.take(reply.form.account_name)
    if opened is None:
        raise request_failed(LOST)
    return opened

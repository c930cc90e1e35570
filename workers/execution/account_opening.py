"""Opens the account that a person has described by filling in a form."""

from __future__ import annotations

import logging

from providers import registry
from providers.base import Failed
from providers.definition import OpenedAccount, required
from providers.errors import FieldRefused, ProviderError, Reason
from store.security.one_time_secrets import AccountByForm
from workers.jobs import FormCheck, OpenAccount, Reply
from workers.runtime import Runtime

log = logging.getLogger(__name__)

LOST = Failed(Reason.PROVIDER_ERROR, "The form was lost on the way to a worker; send it again")


def open_account_by_form(runtime: Runtime, job: OpenAccount, deadline: float) -> Reply:
    """Read the account once whose form is stored under ``job.secret_name``.

    The opened account is stored encrypted too, because it holds the credentials; the reply has its name. The
    web tier stores the connection in the transaction that checks who may change the user.
    """
    entered = runtime.stores.entered_forms.take(job.secret_name)
    if entered is None:
        return Reply(failed=LOST)
    try:
        form = required(runtime.provider(entered.provider).form, registry.title(entered.provider))
        opened = form.open(
            entered.values, entered.main_calendars, reconnects=entered.reconnects, deadline=deadline
        )
    except FieldRefused as error:
        return Reply(form=FormCheck(refused=error.field, message=error.message))
    except ProviderError as error:
        log.info("account of a form not opened: %s", error.reason, extra={"why": error.message})
        return Reply(failed=Failed.from_error(error))
    return Reply(form=FormCheck(runtime.stores.opened_accounts.put(_sealable(opened))))


def _sealable(opened: OpenedAccount) -> AccountByForm:
    main = opened.main
    return AccountByForm(
        account_id=opened.account_id,
        email=opened.email,
        credentials=opened.credentials.reveal,
        scope=opened.scope,
        main_calendar_id=None if main is None else main.id,
        mailbox=None if main is None else main.address.lower() or None,
        time_zone=None if main is None else main.time_zone or None,
    )

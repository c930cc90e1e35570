"""Why a consent ended without a connection: the code and the sentence of each reason."""

from __future__ import annotations

import logging
from collections.abc import Collection
from enum import StrEnum

from app.http.errors import ApiError
from app.schemas.error_codes import Code
from store.sql.queries.user_invitations import ConsentRefusal
from workers.execution.consent_gaps import Permission, join_names

log = logging.getLogger(__name__)


class ProviderRefusal(StrEnum):
    """The error codes that a provider sends instead of a code.

    https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1 and
    https://developers.google.com/identity/protocols/oauth2/web-server#authorization-errors
    """

    ACCESS_DENIED = "access_denied"
    ADMIN_POLICY_ENFORCED = "admin_policy_enforced"
    ORG_INTERNAL = "org_internal"
    CONSENT_REQUIRED = "consent_required"
    INTERACTION_REQUIRED = "interaction_required"
    LOGIN_REQUIRED = "login_required"
    SERVER_ERROR = "server_error"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"


Refusal = ConsentRefusal | ProviderRefusal

# ``{provider}`` is the name of the provider, ``{missing}`` the permissions that were not granted.
_SENTENCES: dict[Refusal, str] = {
    ConsentRefusal.USER_GONE: "User not found",
    ConsentRefusal.KEY_GONE: "The API key that made this link is no longer in force",
    ConsentRefusal.PERSON_GONE: "This link was withdrawn; ask the person who sent it for a new one",
    ConsentRefusal.INVITATION_GONE: "This invitation has expired, or was used or withdrawn",
    ConsentRefusal.USER_SHARED: "The user belongs to other organizations too",
    ConsentRefusal.STALE: "state is unknown, expired or already used",
    ConsentRefusal.OTHER_BROWSER: "This link was opened in another browser",
    ConsentRefusal.NO_CODE: "The provider sent no code",
    ConsentRefusal.CODE_REFUSED: "The code is no longer valid; start again",
    ConsentRefusal.OTHER_ACCOUNT: "Another account was chosen than the one that this link is for",
    ConsentRefusal.UNNAMED_ACCOUNT: "The provider does not confirm which account was chosen; start again",
    ConsentRefusal.CONNECTION_GONE: "The connection that this link is for was deleted",
    ConsentRefusal.NO_CALENDARS: "Access to calendars was not granted; start again and leave the calendar "
    "permissions selected",
    ConsentRefusal.INCOMPLETE: "Not everything was granted: {missing} is missing. The connection that works "
    "is kept; start again and leave every permission selected",
    ConsentRefusal.REVOKED_MEANWHILE: "Access to this account was just revoked; start again",
    ProviderRefusal.ACCESS_DENIED: "Access was not granted",
    ProviderRefusal.ADMIN_POLICY_ENFORCED: "The administrator of this account does not allow it",
    ProviderRefusal.ORG_INTERNAL: "Only accounts of the organization that runs this service can be connected",
    ProviderRefusal.CONSENT_REQUIRED: "{provider} needs a consent that was not given",
    ProviderRefusal.INTERACTION_REQUIRED: "{provider} needs another sign-in",
    ProviderRefusal.LOGIN_REQUIRED: "{provider} needs another sign-in",
    ProviderRefusal.SERVER_ERROR: "{provider} is not available just now",
    ProviderRefusal.TEMPORARILY_UNAVAILABLE: "{provider} is not available just now",
}
# All others have ``CONSENT_FAILED``.
_CODES: dict[Refusal, Code] = {
    ConsentRefusal.USER_GONE: Code.USER_NOT_FOUND,
    ConsentRefusal.USER_SHARED: Code.USER_IN_OTHER_ORGANIZATIONS,
    ConsentRefusal.OTHER_ACCOUNT: Code.ACCOUNT_MISMATCH,
    ConsentRefusal.CONNECTION_GONE: Code.CONNECTION_NOT_FOUND,
    ConsentRefusal.NO_CALENDARS: Code.CALENDAR_ACCESS_NOT_GRANTED,
    ConsentRefusal.INCOMPLETE: Code.CALENDAR_ACCESS_NOT_GRANTED,
    ProviderRefusal.SERVER_ERROR: Code.PROVIDER_ERROR,
    ProviderRefusal.TEMPORARILY_UNAVAILABLE: Code.PROVIDER_ERROR,
}
# The person can correct these by giving the consent again.
_REPEATABLE: frozenset[Refusal] = frozenset(
    {
        ConsentRefusal.CODE_REFUSED,
        ConsentRefusal.OTHER_ACCOUNT,
        ConsentRefusal.UNNAMED_ACCOUNT,
        ConsentRefusal.NO_CALENDARS,
        ConsentRefusal.INCOMPLETE,
        ConsentRefusal.REVOKED_MEANWHILE,
        ProviderRefusal.ACCESS_DENIED,
    }
)
# A provider's error codes that the registration or this service causes.
_REGISTRATION = frozenset(
    {"invalid_request", "invalid_scope", "unauthorized_client", "unsupported_response_type"}
)


class ConsentRefused(ApiError):
    """A consent that ended without a connection; nothing has changed."""

    def __init__(self, refusal: Refusal, *, title: str = "", missing: Collection[Permission] = ()) -> None:
        """``title`` is the name of the provider; ``missing`` are the permissions of ``INCOMPLETE``."""
        super().__init__(sentence(refusal, title, missing), _CODES.get(refusal, Code.CONSENT_FAILED))
        self.refusal = refusal
        self.missing = missing

    @property
    def repeatable(self) -> bool:
        """Whether the person can correct it by giving the consent again."""
        return self.refusal in _REPEATABLE


def sentence(refusal: Refusal, title: str, missing: Collection[Permission] = ()) -> str:
    """The reason in words, without a full stop; the parameters are those of ``ConsentRefused``."""
    return _SENTENCES[refusal].format(provider=title, missing=join_names(missing) if missing else "")


def of_word(word: str) -> Refusal | None:
    """The refusal with this word, if there is one."""
    return next((each for each in _SENTENCES if each == word), None)


def of_provider(title: str, word: str) -> ApiError:
    """The error for a provider's error code; it repeats none of the provider's text."""
    if word in _REGISTRATION:
        log.error(
            "%s rejected the consent request (%s): check the client id in the dashboard, or "
            "ALMANAC_%s_CLIENT_ID where it is set, and the redirect address and the scopes that are "
            "registered there",
            *(title, word, title.upper()),
        )
        return ApiError(f"{title} refuses the registration of this installation", Code.PROVIDER_ERROR)
    try:
        return ConsentRefused(ProviderRefusal(word), title=title)
    except ValueError:
        return ApiError(f"{title} refused", Code.CONSENT_FAILED)

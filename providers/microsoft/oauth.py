"""Microsoft's OAuth server, Entra: consent, the identity of the account, the check of a registration.

https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow
"""

from __future__ import annotations

import base64
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from joserfc import jwt
from joserfc.jwk import RSAKey

from providers.base import Token
from providers.errors import Misconfigured
from providers.http.calls import Json
from providers.microsoft import MANY_TENANTS, certificates
from providers.oauth import consent, identity, registration_probe
from providers.oauth.client import Client, CodeExchangeResult, OAuth
from providers.oauth.consent import ConsentRequest
from providers.oauth.registration_probe import Finding

# Entra may reject a made-up code as malformed before it checks the secret.
SECRET_UNSEEN = Finding(
    registration_probe.ProbeVerdict.UNKNOWN,
    "Microsoft does not say in advance whether the secret is right",
    registration_probe.SEE,
    usual=True,
)
# A certificate that ends earlier than this is named.
RENEW_CERTIFICATE = timedelta(days=30)
CERTIFICATE_EXPIRED = Finding(
    registration_probe.ProbeVerdict.WRONG,
    "The certificate of the registration with Microsoft has expired",
    "Make a new certificate, upload it under Certificates & secrets, and put it with its private key into "
    "the file of ALMANAC_MICROSOFT_CLIENT_CERTIFICATE_FILE.",
)
_NO_TENANT = Finding(
    registration_probe.ProbeVerdict.WRONG,
    "Microsoft knows no such tenant",
    "Copy the Directory (tenant) ID from the application's overview page, or enter common for accounts of "
    "every tenant.",
)

# Microsoft may change these codes. For an unknown code, ``error`` decides.
# https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes#aadsts-error-codes
FINDINGS: dict[object, Finding] = {
    "invalid_tenant": _NO_TENANT,
    7000215: Finding(
        registration_probe.ProbeVerdict.WRONG,
        "Microsoft does not accept the secret",
        "Copy the Value of the client secret, not its Secret ID. It is shown only once: if it is hidden by "
        "now, make a new one under Certificates & secrets.",
    ),
    7000222: Finding(
        registration_probe.ProbeVerdict.WRONG,
        "The secret has expired",
        "Make a new client secret under Certificates & secrets, and enter its Value.",
    ),
    700027: Finding(
        registration_probe.ProbeVerdict.WRONG,
        "Microsoft does not know the certificate",
        "Upload it under Certificates & secrets of the application.",
    ),
    700024: Finding(
        registration_probe.ProbeVerdict.WRONG,
        "Microsoft finds the time of this server wrong",
        "Correct the clock of the workers.",
    ),
    700016: Finding(
        registration_probe.ProbeVerdict.WRONG,
        "Microsoft knows no application with this id in this tenant",
        "Compare the Application (client) ID and the Directory (tenant) ID with the application's overview "
        "page.",
    ),
    50194: Finding(
        registration_probe.ProbeVerdict.WRONG,
        "The application accepts accounts of its own tenant only",
        "Enter its Directory (tenant) ID, or let it accept accounts of any organization under "
        "Authentication.",
    ),
    90002: _NO_TENANT,
    900023: _NO_TENANT,
    9002313: SECRET_UNSEEN,
    90023: SECRET_UNSEEN,
}


# https://learn.microsoft.com/en-us/entra/identity-platform/certificate-credentials
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHM = "PS256"
# Seconds that an assertion is valid.
ASSERTION_LIFE = 600
# Seconds for which it is valid before now: the clocks may differ.
EARLIER = 120


class Expired(Exception):
    """The certificate is no longer valid."""


@dataclass(frozen=True, slots=True)
class MicrosoftEndpoints:
    """Microsoft's addresses, without a trailing slash, and the tenant whose accounts may connect."""

    graph: str
    login: str
    tenant: str

    @property
    def auth(self) -> str:
        return f"{self.login}/{self.tenant}/oauth2/v2.0/authorize"

    @property
    def token(self) -> str:
        return f"{self.login}/{self.tenant}/oauth2/v2.0/token"


class MicrosoftOAuth(OAuth):
    """Entra: every refresh rotates the refresh token; applications cannot revoke grants."""

    findings = FINDINGS

    def __init__(self, endpoints: MicrosoftEndpoints, client: Client) -> None:
        super().__init__("microsoft", "Microsoft", endpoints.token, client)
        self._endpoints = endpoints

    def link(self, request: ConsentRequest) -> str:
        """The URL of Microsoft's consent page."""
        self._require_client()
        return link(self._endpoints.auth, self._client.id, request)

    def account(self, consented: CodeExchangeResult, *, deadline: float) -> identity.AccountIdentity:
        """The identity of the connected account, as far as the grant allows to read it."""
        token = consented.grant.access_token
        return account(self._endpoints, token, consented.claims, deadline=deadline)

    def check(self, redirect_uri: str, *, deadline: float) -> Finding:
        """As for every provider. When that does not verify the secret, request a token for the application.

        Such a token belongs to one tenant and allows only what an administrator has consented to. It is
        discarded at once. A certificate is also checked for its end.
        """
        secret = self._client.secret.reveal
        ends = certificates.load(secret).expires_at if certificates.is_certificate(secret) else None
        if ends is not None and ends <= datetime.now(UTC):
            return CERTIFICATE_EXPIRED
        finding = self._probed(redirect_uri, deadline)
        accepted = finding.verdict is registration_probe.ProbeVerdict.RIGHT
        if accepted and ends is not None and ends - RENEW_CERTIFICATE <= datetime.now(UTC):
            return Finding(
                registration_probe.ProbeVerdict.UNKNOWN,
                f"Microsoft accepts the certificate, which expires on {ends:%Y-%m-%d}",
                CERTIFICATE_EXPIRED.advice,
            )
        return finding

    def _probed(self, redirect_uri: str, deadline: float) -> Finding:
        finding = super().check(redirect_uri, deadline=deadline)
        if finding is not SECRET_UNSEEN or self._endpoints.tenant.lower() in MANY_TENANTS:
            return finding
        form = {"scope": "https://graph.microsoft.com/.default"}
        return self._refusal("client_credentials", form, deadline) or registration_probe.right(self.title)

    def _authentication(self) -> dict[str, str]:
        try:
            return authentication(self._client, self._endpoints.token)
        except Expired:
            raise Misconfigured(CERTIFICATE_EXPIRED.sentence) from None

    def revoke(self, token: Token, *, deadline: float) -> None:
        """Do nothing: Entra offers applications no way to revoke one grant."""


def link(auth_url: str, client_id: str, request: ConsentRequest) -> str:
    """The URL of Microsoft's consent page; a user with several accounts chooses one there."""
    return consent.link(
        auth_url,
        client_id,
        request,
        response_mode="query",
        prompt=None if request.login_hint else "select_account",
    )


def account(
    endpoints: MicrosoftEndpoints, access_token: Token, claimed: Json, *, deadline: float
) -> identity.AccountIdentity:
    """A Microsoft account from its claims, else from its profile, where ``mail`` may be null.

    An administrator of any tenant can write any address into ``email`` and ``mail``. Microsoft guarantees
    the sign-in name, whose domain belongs to the tenant, and ``email`` when ``xms_edov`` says so:
    https://learn.microsoft.com/en-us/entra/identity-platform/migrate-off-email-claim-authorization
    """
    known_id = identity.account_id(claimed, "oid")
    if (email := identity.address(claimed, "email", "preferred_username")) is not None:
        owned = claimed.get("xms_edov") in (True, 1, "1", "true")
        vouched = ("email", "preferred_username") if owned else ("preferred_username",)
        return identity.AccountIdentity(known_id, email, frozenset(identity.addresses(claimed, vouched)))
    profile = f"{endpoints.graph}/me?$select=id,mail,userPrincipalName"
    answer = identity.IdentityCaller("Microsoft", access_token, deadline).get(profile)
    email = identity.address(answer, "mail", "userPrincipalName")
    verified = frozenset(identity.addresses(answer, ("userPrincipalName",)))
    return identity.AccountIdentity(known_id or identity.account_id(answer, "id"), email, verified)


def authentication(client: Client, token_url: str) -> dict[str, str]:
    """The fields of a token request that prove the client: its secret, or an assertion by its certificate.

    :raise Expired: if the certificate is no longer valid
    """
    secret = client.secret.reveal
    if not certificates.is_certificate(secret):
        return {"client_id": client.id, "client_secret": secret}
    certificate = certificates.load(secret)
    if certificate.expired:
        raise Expired
    now = int(time.time())
    claims = {
        "aud": token_url,
        "iss": client.id,
        "sub": client.id,
        "jti": secrets.token_hex(16),
        "iat": now - EARLIER,
        "nbf": now - EARLIER,
        "exp": now + ASSERTION_LIFE,
    }
    digest = base64.urlsafe_b64encode(bytes.fromhex(certificate.thumbprints[0])).decode().rstrip("=")
    header = {"alg": ALGORITHM, "x5t#S256": digest}
    assertion = jwt.encode(header, claims, RSAKey.import_key(certificate.key), algorithms=[ALGORITHM])
    return {
        "client_id": client.id,
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": assertion,
    }

"""Checks client assertions, by which an application proves itself with a certificate.

https://learn.microsoft.com/entra/identity-platform/certificate-credentials
"""

from __future__ import annotations

import base64
import hashlib
import time

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from providers.sandbox.exchange import Request
from providers.sandbox.world import World

TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHMS = ["PS256"]
# https://learn.microsoft.com/entra/identity-platform/reference-error-codes
MALFORMED, WRONG_AUDIENCE, WRONG_TIME, NOT_REGISTERED = 50027, 700023, 700024, 700027


def refusal(world: World, request: Request) -> int | None:
    """The error for the assertion of a request; None if it is valid, or if there is none."""
    form = request.form
    assertion = form.get("client_assertion")
    if assertion is None:
        return None
    certificate = world.certificates.get(form.get("client_id", ""))
    if certificate is None or form.get("client_assertion_type") != TYPE:
        return NOT_REGISTERED
    known = x509.load_pem_x509_certificate(certificate.encode())
    public = known.public_key()
    assert isinstance(public, RSAPublicKey), "such certificates are registered"
    try:
        token = jwt.decode(assertion, RSAKey.import_key(public), algorithms=ALGORITHMS)
    except JoseError as error:
        return NOT_REGISTERED if error.error == "bad_signature" else MALFORMED
    digest = hashlib.sha256(known.public_bytes(Encoding.DER)).digest()
    if token.header.get("x5t#S256") != base64.urlsafe_b64encode(digest).decode().rstrip("="):
        return NOT_REGISTERED
    claims = token.claims
    if claims.get("aud") != f"{request.origin}{request.target.partition('?')[0]}":
        return WRONG_AUDIENCE
    if claims.get("iss") != form["client_id"] or claims.get("sub") != form["client_id"]:
        return NOT_REGISTERED
    if not claims.get("nbf", 0) <= time.time() < claims.get("exp", 0) or not claims.get("jti"):
        return WRONG_TIME
    return None

"""Second factors: the secrets of authenticator apps, encrypted, and recovery codes, hashed."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b32decode, b32encode
from collections.abc import Sequence

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from store.security.crypto import Keyring
from store.sql.database import UNCACHED
from store.sql.models import Administrator, RecoveryCode, now
from store.sql.queries import dashboard_sessions, issuers

# https://www.rfc-editor.org/rfc/rfc6238 with the only parameters that every authenticator app supports.
STEP_SECONDS = 30
DIGITS = 6
SECRET_BYTES = 20
# A code of the step before and of the step after is accepted too: clocks differ, and typing takes time.
WINDOW = 1

RECOVERY_CODES = 10
# 80 random bits, so that one SHA-256 is enough.
RECOVERY_BYTES = 10


def new_secret() -> str:
    """A random secret, in the Base32 that authenticator apps take."""
    return b32encode(secrets.token_bytes(SECRET_BYTES)).decode()


def address(secret: str, *, account: str, issuer: str) -> str:
    """The ``otpauth`` address that the QR code of a secret holds."""
    return _totp(secret).get_provisioning_uri(account, issuer)


def matching_step(secret: str, code: str) -> int | None:
    """The time step that a code belongs to, within the window; None for any other code."""
    found = None
    totp, current = _totp(secret), int(now().timestamp()) // STEP_SECONDS
    for step in range(current - WINDOW, current + WINDOW + 1):
        if hmac.compare_digest(totp.generate(step * STEP_SECONDS), code.encode()):
            found = step
    return found


def store(session: Session, keyring: Keyring, administrator_id: int, secret: str, step: int) -> None:
    """Store a secret whose code of ``step`` was accepted; that code does not sign in any more."""
    sealed = keyring.encrypt(secret, associated_data(administrator_id))
    _change(session, administrator_id, sealed_totp_secret=sealed, last_totp_step=step)


def remove(session: Session, administrator_id: int, *, keep_session: str | None = None) -> None:
    """Delete the second factor of a person and the recovery codes.

    All sessions but one end, and every link of the person is withdrawn.
    """
    _change(session, administrator_id, sealed_totp_secret=None, last_totp_step=None)
    session.execute(delete(RecoveryCode).where(RecoveryCode.administrator_id == administrator_id))
    dashboard_sessions.end_others(session, administrator_id, but=keep_session)
    issuers.withdraw_links(session, administrator_id)


def use_code(session: Session, keyring: Keyring, administrator: Administrator, code: str) -> bool:
    """Use a code of the authenticator app; whether it is right and newer than the last one accepted.

    Of concurrent calls with the same code, one returns True.

    :raise Undecipherable: when the encryption key of the secret is no longer on the ring
    """
    if administrator.sealed_totp_secret is None:
        return False
    secret = keyring.decrypt(administrator.sealed_totp_secret, associated_data(administrator.id))
    step = matching_step(secret, code)
    if step is None:
        return False
    newer = or_(Administrator.last_totp_step.is_(None), Administrator.last_totp_step < step)
    used = (
        update(Administrator)
        .where(
            Administrator.id == administrator.id,
            Administrator.sealed_totp_secret == administrator.sealed_totp_secret,
            newer,
        )
        .values(last_totp_step=step)
        .returning(Administrator.id)
        # Processes cache names and roles, which have not changed.
        .execution_options(**{UNCACHED: True, "synchronize_session": False})
    )
    return session.scalars(used).one_or_none() is not None


def new_recovery_codes(session: Session, administrator_id: int) -> Sequence[str]:
    """Replace the recovery codes of a person; returns the new ones, which are stored as hashes."""
    session.execute(delete(RecoveryCode).where(RecoveryCode.administrator_id == administrator_id))
    codes = [_new_recovery_code() for _ in range(RECOVERY_CODES)]
    session.add_all(RecoveryCode(administrator_id=administrator_id, digest=_digest(each)) for each in codes)
    return codes


def use_recovery_code(session: Session, administrator_id: int, code: str) -> bool:
    """Use up a recovery code; whether it was one. Of concurrent calls with one code, one returns True."""
    used = delete(RecoveryCode).where(
        RecoveryCode.administrator_id == administrator_id, RecoveryCode.digest == _digest(code)
    )
    return session.scalars(used.returning(RecoveryCode.digest)).one_or_none() is not None


def recovery_codes_left(session: Session, administrator_id: int) -> int:
    """The number of unused recovery codes of a person."""
    counted = select(func.count()).where(RecoveryCode.administrator_id == administrator_id)
    return session.scalars(counted).one()


def associated_data(administrator_id: int) -> str:
    """The associated data of an encrypted secret."""
    return f"administrators/{administrator_id}/totp_secret"


def _change(session: Session, administrator_id: int, **values: object) -> None:
    session.execute(update(Administrator).where(Administrator.id == administrator_id).values(**values))


def _totp(secret: str) -> TOTP:
    # SHA-1 as most apps support nothing else; as an HMAC it is sound.
    return TOTP(b32decode(secret), DIGITS, SHA1(), STEP_SECONDS)  # noqa: S303


def _new_recovery_code() -> str:
    """Four groups of four characters, such as ``k3va-4txm-o2pd-zq6h``."""
    text = b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, len(text), 4))


def _digest(code: str) -> str:
    # Written without dashes, with spaces or in capitals, it is the same code.
    return hashlib.sha256("".join(filter(str.isalnum, code)).lower().encode()).hexdigest()

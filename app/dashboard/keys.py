"""API keys: listing, creating and revoking."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from flask import request
from flask.typing import ResponseReturnValue
from marshmallow import ValidationError, fields
from sqlalchemy.orm import Session

from app.accounts import api_keys as accounts
from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.forms import Slug
from app.dashboard.pagination import ROWS, Chip, ListPage, Sort, same_list, searched
from app.dashboard.sign_in import sessions
from app.http.errors import NotFound
from app.http.hosts import browser_url
from app.http.routes import route_facts
from app.schemas.error_codes import Code
from app.schemas.fields import Text, Word
from app.schemas.timestamps import LAST_YEAR
from app.services import services
from store.sql.models import ApiKey, Role, now
from store.sql.queries import api_keys, organizations
from store.sql.queries.attention import KEY_NOTICE

LASTING_DAYS = {"30": "30 days", "90": "90 days", "365": "A year"}
# The lists, by the value of ``show``.
EXPIRING, ENDED = "expiring", "ended"
SHOWN = {None: "Active", EXPIRING: "Expire soon", ENDED: "Revoked and expired"}

SENT_BEFORE = (
    "This form was sent before, and no second key was made. The first was shown once: when it is lost, "
    "revoke it and create another here."
)


class _Future(fields.Date):
    """Today or a later day, in UTC."""

    default_error_messages = {"invalid": "must be a date, like 2027-01-31"}  # noqa: RUF012 - read by marshmallow

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> date:
        day = super()._deserialize(value, attr, data, **kwargs)
        if day < now().date():
            raise ValidationError("must not be in the past")
        if day.year > LAST_YEAR:
            raise ValidationError(f"must be before the year {LAST_YEAR + 1}")
        return day


class KeyForm(forms.Body):
    """A new key."""

    name = Text(shortest=1, longest=128, required=True)
    organization = Slug(load_default=None)
    rights = Word(("full", "read-only"), required=True)
    tokens = Word(("shown",), load_default=None)
    lasts = Word((*LASTING_DAYS, "until", "ever"), required=True)
    until = _Future(load_default=None)
    ticket = Text(shortest=1, longest=64, required=True)


@blp.get("/keys")
def keys() -> ResponseReturnValue:
    """The active keys, those of them that expire soon, or the ended ones; of one organization, or all."""
    chosen = request.args.get("show") if request.args.get("show") in SHOWN else None
    ended = chosen == ENDED
    slug = request.args.get("organization") or None
    sort = Sort.of_request("keys", api_keys.ORDERS, "-created")
    with services().stores.database.reading() as session:
        rows = api_keys.page(
            session,
            searched(),
            in_force=not ended,
            expires_before=now() + KEY_NOTICE if chosen == EXPIRING else None,
            organization_id=None if slug is None else _organization_id(session, slug),
            order=sort.name,
            descending=sort.descending,
            position=sort.position,
            limit=ROWS,
        )
        shown = [
            Chip(title, same_list("keys", show=show, after=None, before=None), show == chosen)
            for show, title in SHOWN.items()
        ]
        found = ListPage.of(rows, sort)
        return page(
            "keys.html",
            found=found,
            sort=sort,
            shown=shown,
            chosen=chosen,
            ended=ended,
            slug=slug,
            q=searched(),
            state=state,
            form=forms.blank(organization=slug or ""),
        )


@blp.route("/keys/new", methods=["GET", "POST"])
@route_facts(role=Role.ADMINISTRATOR)
def new_key() -> ResponseReturnValue:
    """Create a key and show it; it cannot be shown again."""
    if request.method != "POST":
        blank = forms.blank(rights="full", lasts="365", organization=request.args.get("organization", ""))
        return _form(blank)
    form = forms.read(KeyForm)
    _check_until(form)
    if "ticket" in form.errors:
        form.refuse("", "This form had no one-time token. Send it again.")
    if not form:
        return _form(form, 400)
    with forms.once(form, SENT_BEFORE) as unused:
        key = _create(form) if unused else None
    if key is None:
        return _form(form, 400 if unused else 409)
    return page("key_made.html", key=key, name=form.data["name"], base=browser_url())


@blp.post("/keys/<int(max=2147483647):key_id>/revoke")
@route_facts(role=Role.ADMINISTRATOR)
def revoke_key(key_id: int) -> ResponseReturnValue:
    """Revoke a key."""
    with services().stores.database.writing() as session:
        visible = accounts.revoke(session, key_id, actor=sessions.actor())
    if visible is None:
        return failed("That key was already revoked or expired.", "keys")
    return done(f"The key {visible}… is revoked. Requests with it are rejected.", "keys")


def state(key: ApiKey) -> tuple[str, str]:
    """The badge of a key: CSS class and word."""
    if key.revoked_at is not None:
        return "bad", "revoked"
    if key.expires_at is None:
        return "good", "active"
    if key.expires_at <= now():
        return "bad", "expired"
    if key.expires_at - now() <= KEY_NOTICE:
        return "warn", "expires soon"
    return "good", "active"


def _create(form: forms.Form) -> str | None:
    """Create a key and return it; None, with an error in the form, when its organization does not exist."""
    stores = services().stores
    slug = form.data["organization"]
    with stores.database.writing() as session:
        found = (
            organizations.ids(session, [slug], organization_id=None, keep=True) if slug is not None else {}
        )
        if slug is not None and slug not in found:
            form.refuse("organization", "with this slug does not exist")
            return None
        _, key = accounts.create(
            session,
            actor=sessions.actor(),
            prefix=stores.settings.api_key_prefix,
            name=form.data["name"],
            organization_id=found.get(slug),
            slug=slug,
            read_only=form.data["rights"] == "read-only",
            shows_tokens=form.data["tokens"] is not None,
            expires_at=_expiry(form),
        )
    return key


def _check_until(form: forms.Form) -> None:
    if form and form.data["lasts"] == "until" and form.data["until"] is None:
        form.refuse("until", "is required")


def _expiry(form: forms.Form) -> datetime | None:
    """When the key expires: at the end of the chosen day, in UTC; None for never."""
    lasts = form.data["lasts"]
    if lasts == "ever":
        return None
    if lasts == "until":
        return datetime.combine(form.data["until"] + timedelta(days=1), time(), UTC)
    return now() + timedelta(days=int(lasts))


def _form(form: forms.Form, status: int = 200) -> ResponseReturnValue:
    return page("new_key.html", status, form=form, ticket=forms.new_form_token(), lasting=LASTING_DAYS)


def _organization_id(session: Session, slug: str) -> int:
    found = organizations.ids(session, [slug], organization_id=None)
    if slug not in found:
        raise NotFound("Organization not found", Code.ORGANIZATION_NOT_FOUND)
    return found[slug]

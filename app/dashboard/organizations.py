"""Organizations: searching, creating, renaming and deleting."""

from __future__ import annotations

import re
import unicodedata

from flask import request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.accounts import organizations as accounts
from app.dashboard import connection_badge, forms, user_filter
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.forms import Slug
from app.dashboard.grants.cards import cards
from app.dashboard.overview import unread
from app.dashboard.pagination import ROWS, Chip, ListPage, Sort, same_list, searched
from app.http.authentication import caller
from app.http.errors import Conflict, NotFound
from app.http.routes import route_facts
from app.schemas.error_codes import Code
from app.schemas.fields import SLUG, Text
from app.schemas.records import QuotasBody
from app.services import services
from store.coordination import shares
from store.sql.models import Role
from store.sql.queries import api_keys, attention, users, webhooks
from store.sql.queries import organizations as stored
from store.sql.queries.organizations import Summary
from workers.queues import MAX_WEBHOOK_ENDPOINTS

# The value of ``show`` for organizations with an ended grant.
ENDED_GRANTS = "ended-grants"

TAKEN = "is taken by another organization"


class NewForm(forms.Body):
    """A new organization. A missing slug is derived from the name."""

    name = Text(shortest=1, longest=128, load_default=None)
    slug = Slug(required=True)


class ChangeForm(forms.Body):
    """The new name and slug of an organization."""

    name = Text(shortest=1, longest=128, load_default=None)
    slug = Slug(required=True)


@blp.get("/organizations")
def organizations() -> ResponseReturnValue:
    """The organizations that match the search; without one, all."""
    return _list(forms.blank())


@blp.post("/organizations")
@route_facts(role=Role.OPERATOR)
def create_organization() -> ResponseReturnValue:
    """Create an organization."""
    form = forms.read(NewForm, suggested=_suggested())
    if not form:
        return _list(form, 400)
    slug = form.data["slug"]
    try:
        with services().stores.database.writing() as session:
            accounts.create(session, caller(), slug, form.data["name"])
    except Conflict:
        form.refuse("slug", TAKEN)
        return _list(form, 409)
    return done(f"The organization {slug} is created. Add its members next.", "organization", slug=slug)


@blp.get("/organizations/<slug>")
def organization(slug: str) -> ResponseReturnValue:
    """One organization and its members."""
    return organization_page(slug)


@blp.post("/organizations/<slug>/rename")
@route_facts(role=Role.OPERATOR)
def rename_organization(slug: str) -> ResponseReturnValue:
    """Change an organization's name or slug."""
    form = forms.read(ChangeForm)
    if not form:
        return organization_page(slug, change=form, status=400)
    new_slug = form.data["slug"]
    try:
        with services().stores.database.writing() as session:
            accounts.change(session, caller(), slug, form.data)
    except Conflict:
        form.refuse("slug", TAKEN)
        return organization_page(slug, change=form, status=409)
    return done("The organization is changed.", "organization", slug=new_slug)


@blp.post("/organizations/<slug>/quotas")
@route_facts(role=Role.OPERATOR)
def change_quotas(slug: str) -> ResponseReturnValue:
    """Change what an organization may use. An empty field is the installation's value."""
    form = forms.read(QuotasBody)
    if not form:
        return organization_page(slug, quotas=form, status=400)
    quotas = {name.value: form.data.get(name) for name in shares.OWN}
    with services().stores.database.writing() as session:
        row = accounts.find(session, caller(), slug, to_change=True)
        accounts.change_quotas(session, caller(), row, quotas)
    return done("The quotas are changed. They take effect with the next request.", "organization", slug=slug)


@blp.post("/organizations/<slug>/delete")
@route_facts(role=Role.ADMINISTRATOR)
def delete_organization(slug: str) -> ResponseReturnValue:
    """Delete an organization with its keys and webhooks, after its slug was typed."""
    if not forms.typed(slug):
        with services().stores.database.reading() as session:
            get_organization(session, slug)
        return failed(f"Nothing was deleted: type {slug} to confirm it.", "organization", slug=slug)
    accounts.delete(caller(), slug)
    return done(f"The organization {slug} is deleted. Its users are still there.", "organizations")


def organization_page(
    slug: str,
    *,
    change: forms.Form | None = None,
    quotas: forms.Form | None = None,
    adding: forms.Form | None = None,
    status: int = 200,
) -> ResponseReturnValue:
    """The page of an organization; ``change``, ``quotas`` and ``adding`` are its forms, with their errors."""
    with services().stores.database.reading() as session:
        found = get_organization(session, slug)
        sort = Sort.of_request("organization", users.ORDERS, "id", slug=slug)
        members = users.search(
            session,
            searched(),
            organization_id=found.id,
            condition=user_filter.condition(session),
            order=sort.order,
            descending=sort.descending,
            position=sort.position,
            limit=ROWS,
        )
        filters = user_filter.chips(
            session, "organization", list(users.found_by(searched(), found.id)), slug=slug
        )
        grants = cards(session, found.id)
        unbookable = attention.unbookable_members(session, unread.failing(), [found.id])
        return page(
            "organization.html",
            status,
            organization=found,
            change=forms.blank(name=found.name or "", slug=found.slug) if change is None else change,
            quotas=forms.blank(**_texts(stored.quotas(session, found.id))) if quotas is None else quotas,
            usual_quotas=_usual_quotas(),
            adding=forms.blank() if adding is None else adding,
            members=ListPage.of(members, sort),
            sort=sort,
            filters=filters,
            shown=user_filter.chosen(),
            grants=grants,
            grant_ids=[each.grant.id for each in grants if each.grant is not None],
            delegated=sum(each.members for each in grants),
            unbookable=unbookable.get(found.id, 0),
            keys=api_keys.count(session, found.id),
            webhooks=webhooks.count(session, found.id),
            q=searched(),
            health=connection_badge,
            unread=unread.last_reads([one.id for each in members.rows for one in each.connections]),
        )


def _texts(quotas: shares.OwnQuotas) -> dict[str, str]:
    return {name: str(value) for name, value in quotas.items()}


def _usual_quotas() -> dict[str, str]:
    """The quotas of an organization without own ones, in words."""
    settings = services().settings
    percent = settings.organization_share
    return {
        "requestsPerMinute": "no limit but that of each key",
        "waitingReads": str(shares.share_of(settings.waiting_reads, percent)),
        "waitingWrites": str(shares.share_of(settings.waiting_writes, percent)),
        "heldUsers": str(settings.max_held_users),
        "webhookTurns": str(shares.share_of(MAX_WEBHOOK_ENDPOINTS, percent)),
    }


def get_organization(session: Session, slug: str) -> Summary:
    """An organization with its counts.

    :raise NotFound: when there is none of that slug
    """
    # An address can hold text that the database rejects.
    found = stored.summary(session, slug) if SLUG.fullmatch(slug) else None
    if found is None:
        raise NotFound("Organization not found", Code.ORGANIZATION_NOT_FOUND)
    return found


def suggestion(name: str) -> str:
    """A slug derived from a name; empty if the name has no characters that a slug may have."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:128]


def _suggested() -> dict[str, str]:
    """The derived slug, if the form has none."""
    slug = suggestion(request.form.get("name", ""))
    return {"slug": slug} if slug and not request.form.get("slug", "").strip() else {}


def _list(form: forms.Form, status: int = 200) -> ResponseReturnValue:
    sort = Sort.of_request("organizations", stored.ORDERS, "slug")
    narrow = request.args.get("show") == ENDED_GRANTS
    with services().stores.database.reading() as session:
        rows = stored.search(
            session,
            searched(),
            ended_grants=narrow,
            order=sort.name,
            descending=sort.descending,
            position=sort.position,
            limit=ROWS,
        )
        unbookable = attention.unbookable_members(session, unread.failing(), [each.id for each in rows.rows])
    found = ListPage.of(rows, sort)
    shown = [
        Chip(title, same_list("organizations", show=show, after=None, before=None), narrow is bool(show))
        for title, show in (("All", None), ("Ended grants", ENDED_GRANTS))
    ]
    return page(
        "organizations.html",
        status,
        form=form,
        found=found,
        sort=sort,
        shown=shown,
        narrow=narrow,
        unbookable=unbookable,
        q=searched(),
    )

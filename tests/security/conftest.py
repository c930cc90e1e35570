"""Two tenants on one installation, and keys of every kind."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from providers.sandbox.client import Sandbox
from store.stores import Stores
from tests.conftest import Api
from tests.security import tenants
from tests.security.tenants import Tenant


@pytest.fixture(autouse=True)
def without_other_endpoints(no_webhook_endpoints: None) -> None:
    """Endpoints of one test receive nothing of another, and no delivery is in progress during its checks."""


@pytest.fixture
def new_tenant(api: Api, sandbox: Sandbox, stores: Stores, worker: None) -> Callable[..., Tenant]:
    """Make an organization with everything in it: ``new_tenant("microsoft")``."""

    def make(provider: str = "google") -> Tenant:
        return tenants.settle(api, sandbox, stores, f"planted{secrets.token_hex(4)}", provider)

    return make

"""Which jobs of an element are read together, by the grant that the web tier has named."""

from __future__ import annotations

from store.sql.queries.connection_rows import SealedConnection
from workers.fanout.work import TakenJob, divide
from workers.jobs import GrantRef, ReadBusy

NOTHING = SealedConnection(
    id="c",
    provider="google",
    email=None,
    scope=[],
    sealed_access_token=None,
    sealed_refresh_token=None,
    expires_at=None,
    alive=True,
    account_id=None,
    main_calendar_id=None,
    mailbox=None,
    time_zone=None,
    obtained=False,
    grant=None,
)


def taken(number: int, grant: str | None, email: str | None = "m@example.com") -> TakenJob:
    """A job that names the grant ``g``, and the connection as the database has it."""
    job = ReadBusy(f"c{number}", ("primary",), 0, 7, GrantRef("g", "google"))
    return TakenJob(
        number, job, f"f:{number}", row=NOTHING._replace(id=job.connection, grant=grant, email=email)
    )


def test_a_grant_reads_only_connections_of_its_own():
    """The row decides: the grant of another tenant must not read a mailbox."""
    element = [
        taken(0, "g"),
        taken(1, "another"),
        taken(2, None),
        taken(3, "g", email=None),
        taken(4, "g"),
    ]

    together, *alone = divide(element)

    assert together == [element[0], element[4]]
    assert alone == [[each] for each in element[1:4]]

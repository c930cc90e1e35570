"""Which jobs are read together: by web tier and worker, without a provider."""

from __future__ import annotations

import time
from typing import Any

import pytest

from store.coordination.single_flight import SharedRead, Wanted
from store.sql.queries.connection_rows import SealedConnection
from workers.fanout import chunks
from workers.fanout.codec import DecodeError, Packed, addresses, elements, pack_job, pack_jobs, unpack_jobs
from workers.fanout.work import FanoutRequest, TakenJob, divide, without_probes
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


def ref(provider: str, name: str = "g") -> GrantRef:
    return GrantRef(name, provider)


def job(
    n: int, grant: GrantRef | None, start: int = 0, end: int = 7, calendars: Any = ("primary",)
) -> Packed:
    return Packed(n, ReadBusy(f"c{n}", calendars, start, end, grant))


def sizes(jobs: list[Packed]) -> list[int]:
    return [len(unpack_jobs(each)) for each in elements(jobs)]


def test_a_bundle_has_as_many_calendars_as_one_request_reads():
    assert sizes([job(n, ref("google")) for n in range(120)]) == [50, 50, 20]
    assert sizes([job(n, ref("microsoft")) for n in range(45)]) == [20, 20, 5]
    three = ("primary", "x", "y")
    assert sizes([job(n, ref("google"), calendars=three) for n in range(20)]) == [16, 4]
    many = tuple(map(str, range(21)))
    of_many = [job(0, ref("microsoft")), job(1, ref("microsoft"), calendars=many), job(2, ref("microsoft"))]
    assert sizes(of_many) == [1, 1, 1]


def test_only_known_calendars_of_one_grant_and_range_are_bundled():
    apart = [
        job(0, None),
        job(1, None),
        job(2, ref("google")),
        job(3, ref("google", "another")),
        job(4, ref("google"), start=1),
        job(5, ref("google"), end=8),
        job(6, ref("google"), calendars=None),
    ]
    assert sizes(apart) == [1] * 7
    assert sizes([*apart, job(7, ref("google"), calendars=("primary", "x"))]) == [1, 1, 2, 1, 1, 1, 1]


def test_a_bundle_is_encoded_whole_and_a_single_job_as_ever():
    jobs = [job(n, ref("google")) for n in range(3)]
    assert unpack_jobs(pack_jobs(jobs)) == tuple(jobs)
    assert elements(jobs[:1]) == [pack_job(0, jobs[0].job)]
    assert [each.number for each in addresses(pack_jobs(jobs))] == [0, 1, 2]


@pytest.mark.parametrize("data", [b"", b"\x90", b"\x91\x90", pack_jobs([job(0, None)])[:-1], b"\xc0"])
def test_what_is_no_bundle_is_refused(data):
    with pytest.raises(DecodeError):
        unpack_jobs(data)
    assert addresses(data) == ()


def test_a_probe_of_one_mailbox_leaves_its_bundle_and_one_of_all_does_not():
    one, two, probe = (TakenJob(n, job(n, ref("microsoft")).job, f"f:{n}") for n in range(3))
    probe.permit.probes = True
    assert without_probes([one, probe, two]) == [[one, two], [probe]]
    assert without_probes([probe]) == [[probe]]
    assert without_probes([]) == []


def test_a_member_that_waits_for_another_read_gives_up_the_permit_of_its_bundle(runtime):
    """It is then read by itself, with the limits of its own account."""
    work = [taken(number, "g") for number in range(2)]
    for each in work:
        each.read = SharedRead(each.job.connection, f"read-{each.number}")
    flights = runtime.stores.single_flight
    terms = flights.terms(0, 0, None)
    flights.take([Wanted(work[1].read, "other:0")], terms)
    (together,) = divide(work)
    assert together[1].permit.request.account == "g"

    admitted = chunks.admit(runtime, FanoutRequest("f", time.monotonic() + 5, terms), [together])

    assert [each for _, each in admitted.following] == [work[1]]
    assert work[1].permit.request.account == work[1].row.id

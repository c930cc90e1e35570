// The client against a running service, whose providers are the sandbox. Python starts both.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import { Almanac, AlmanacError, Incomplete, complete } from "../src/index.js";
import { verifyWebhook } from "../src/webhooks.js";

const DAY = { start: "2026-12-03", end: "2026-12-04" };
const MORNING = { ...DAY, earliestTimeEachDay: "09:00", latestTimeEachDay: "12:00", slotDuration: 60 };

const sandboxUrl = process.env["SANDBOX_URL"] ?? assert.fail("SANDBOX_URL");
const readOnlyKey = process.env["READ_ONLY_KEY"] ?? assert.fail("READ_ONLY_KEY");
// The address and the key of this one are in the environment.
const almanac = new Almanac();
let count = 0;

/** An identifier that no other test uses. */
function unique(name: string): string {
  count += 1;
  return `ts-${name}-${process.pid}-${count}`;
}

async function sandbox<A>(method: string, path: string, body?: unknown): Promise<A> {
  const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const response = await fetch(`${sandboxUrl}/sandbox${path}`, { method, ...init });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as A;
}

interface Account {
  accessToken: string;
  refreshToken: string;
  expiresAt: string;
  email: string;
  scope: string;
}

/** A user with accounts that are busy for an hour each, from nine on. */
async function connected(...providers: ("google" | "microsoft")[]): Promise<string> {
  const { data } = await almanac.post("/v1/users", { body: { id: unique("ada") } });
  for (const [index, provider] of providers.entries()) {
    const event = { start: `2026-12-03T${hour(9 + index)}:00Z`, end: `2026-12-03T${hour(10 + index)}:00Z` };
    const email = `${unique("ada")}@example.com`;
    const account = await sandbox<Account>("POST", "/accounts", { provider, email, events: [event] });
    const { accessToken, refreshToken, expiresAt, scope } = account;
    await almanac.post("/v1/users/{userId}/oauth/{provider}", {
      path: { userId: data.id, provider },
      body: { accessToken, refreshToken, expiresAt, email, scope: scope.split(" ") },
    });
  }
  return data.id;
}

function hour(number: number): string {
  return `${String(number).padStart(2, "0")}:00`;
}

async function failure(call: Promise<unknown>): Promise<AlmanacError> {
  const error: unknown = await call.then(() => undefined, (reason: unknown) => reason);
  assert.ok(error instanceof AlmanacError, String(error));
  return error;
}

/** Run while the sandbox fails. */
async function failing(fault: Record<string, unknown>, run: () => Promise<void>): Promise<void> {
  await sandbox("POST", "/faults", fault);
  try {
    await run();
  } finally {
    await sandbox("DELETE", "/faults");
  }
}

test("users and organizations are created, listed, renamed and deleted", async () => {
  const slug = unique("team");
  await almanac.post("/v1/organizations", { body: { slug, name: "Team" } });
  const ids = [unique("walker"), unique("walker"), unique("walker")];
  for (const id of ids) await almanac.post("/v1/users", { body: { id, organizationSlugs: [slug] } });

  const found: string[] = [];
  const init = { path: { orgSlug: slug }, query: { limit: 2 } };
  for await (const member of almanac.rows("/v1/organizations/{orgSlug}/members", init)) found.push(member.id);
  assert.deepEqual(found, [...ids].sort());

  const [first = ""] = ids;
  const renamed = unique("renamed");
  const { data } = await almanac.put("/v1/users/{userId}", { path: { userId: first }, body: { userId: renamed } });
  assert.equal(data.id, renamed);
  await almanac.delete("/v1/users/{userId}", { path: { userId: renamed } });
  const gone = await failure(almanac.get("/v1/users/{userId}", { path: { userId: renamed } }));
  assert.equal(gone.status, 404);
  assert.equal(gone.message, "User not found");
  const removed = await almanac.delete("/v1/organizations/{orgSlug}", { path: { orgSlug: slug } });
  assert.equal(removed.data.slug, slug);
});

test("a user is free where no account is busy", async () => {
  const userId = await connected("google", "microsoft");
  const answer = await almanac.get("/v1/users/{userId}/scheduling", { path: { userId }, query: MORNING });

  assert.deepEqual(complete(answer).availableSlots, [
    { start: "2026-12-03T11:00:00.000Z", end: "2026-12-03T12:00:00.000Z" },
  ]);
});

test("an unreadable calendar cannot be overlooked", async () => {
  const userId = await connected("google", "microsoft");
  await failing({ provider: "google", status: 503 }, async () => {
    const query = { ...MORNING, onFailure: "partial" } as const;
    const answer = await almanac.get("/v1/users/{userId}/scheduling", { path: { userId }, query });
    assert.throws(() => complete(answer), Incomplete);
    const error = await failure(almanac.get("/v1/users/{userId}/scheduling", { path: { userId }, query: MORNING }));
    assert.equal(error.status, 502);
    assert.equal(error.reason, "providerError");
    assert.deepEqual(error.failedCalendars.map((each) => each.provider), ["google"]);
  });
});

test("of several users, one without an answer is named", async () => {
  const userId = await connected("google");
  const users = [{ id: userId }, { id: "nobody-at-all" }];
  const answer = await almanac.post("/v1/users/scheduling", { query: DAY, body: { users } });

  assert.deepEqual(answer.data.map((each) => each.status), ["ok", "error"]);
  assert.throws(() => complete(answer), /nobody-at-all \(User not found\)/);
});

test("a connection is shown, and its account can be connected by a link", async () => {
  const userId = await connected("google");
  const { data } = await almanac.get("/v1/users/{userId}/oauth", { path: { userId } });
  assert.deepEqual(data.map((each) => [each.provider, each.alive, each.accessToken]), [["google", true, null]]);

  const path = { userId, provider: "microsoft" } as const;
  const link = await almanac.post("/v1/users/{userId}/oauth/{provider}/authorize", { path, body: { scope: "read" } });
  assert.ok(new URL(link.data.link).searchParams.has("state"));
  await almanac.delete("/v1/users/{userId}/oauth/{provider}", { path: { userId, provider: "google" } });
  assert.equal((await failure(almanac.get("/v1/users/{userId}/calendar/busy", { path: { userId }, query: DAY }))).status, 404);
});

test("an event is created, changed, listed and deleted", async () => {
  const userId = await connected("google");
  const at = { userId, provider: "google", calendarId: "primary" } as const;
  const times = { start: "2026-12-04T09:00:00", end: "2026-12-04T10:00:00" };
  const { data: made } = await almanac.post("/v1/users/{userId}/calendar/events/{provider}/{calendarId}", {
    path: at,
    header: { "X-Timezone": "Europe/Berlin" },
    body: { subject: "Review", ...times },
  });
  assert.equal(made.start, "2026-12-04T08:00:00.000Z");

  const path = { ...at, eventId: made.id };
  const route = "/v1/users/{userId}/calendar/events/{provider}/{calendarId}/{eventId}";
  const changed = await almanac.put(route, { path, body: { location: "Room 4" } });
  assert.equal(changed.data.location, "Room 4");
  const subjects: string[] = [];
  const list = { path: { userId }, query: { start: "2026-12-04", end: "2026-12-05" } };
  for await (const event of almanac.rows("/v1/users/{userId}/calendar/events", list)) subjects.push(event.subject);
  assert.deepEqual(subjects, ["Review"]);
  const stale = { path, header: { "If-Match": made.etag ?? "" }, body: { location: "Too late" } };
  const refused = await failure(almanac.put(route, stale));
  assert.deepEqual([refused.status, refused.code], [412, "eventChanged"]);
  await almanac.delete(route, { path });
  assert.equal((await failure(almanac.get(route, { path }))).status, 404);
});

test("a webhook is registered, received and verified", async () => {
  const userId = await connected("google");
  const received: { headers: Record<string, string | string[] | undefined>; body: string }[] = [];
  const receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      received.push({ headers: request.headers, body });
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  after(() => receiver.close());
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  const { data: endpoint } = await almanac.post("/v1/webhooks", { body: { url, events: ["calendar.changed"] } });

  await almanac.post("/v1/users/{userId}/calendar/events/{provider}/{calendarId}", {
    path: { userId, provider: "google", calendarId: "primary" },
    body: { start: "2026-12-04T09:00:00Z", end: "2026-12-04T10:00:00Z" },
  });
  for (let waited = 0; received.length === 0 && waited < 200; waited += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }

  const [first] = received;
  assert.ok(first, "no webhook came");
  const event = verifyWebhook(first.body, first.headers, endpoint.secret);
  assert.deepEqual([event.type, event.data.userId], ["calendar.changed", userId]);
  const path = { webhookId: endpoint.id };
  const { data: paused } = await almanac.patch("/v1/webhooks/{webhookId}", { path, body: { paused: true } });
  assert.equal(paused.paused, true);
  assert.equal((await failure(almanac.post("/v1/webhooks/{webhookId}/test", { path }))).code, "webhookPaused");
  await almanac.delete("/v1/webhooks/{webhookId}", { path });
});

test("errors have the status that says what to do", async () => {
  const userId = await connected("google");
  const path = { userId };
  const invalid = await failure(
    almanac.get("/v1/users/{userId}/calendar/busy", { path, query: { start: "2026-12-04", end: "2026-12-03" } }),
  );
  assert.equal(invalid.status, 400);
  assert.deepEqual([invalid.code, invalid.param], ["validationFailed", "start"]);
  assert.ok(invalid.requestId);
  const taken = await failure(almanac.post("/v1/users", { body: { id: userId } }));
  assert.deepEqual([taken.status, taken.code], [409, "userExists"]);
  const stranger = await failure(new Almanac({ apiKey: "alm_unknown" }).get("/v1/users/{userId}", { path }));
  assert.deepEqual([stranger.status, stranger.code], [401, "apiKeyInvalid"]);
  const reader = await failure(new Almanac({ apiKey: readOnlyKey }).post("/v1/users", { body: { id: "somebody" } }));
  assert.deepEqual([reader.status, reader.code], [403, "keyReadOnly"]);
  await failing({ provider: "google", status: 429, retryAfter: 60 }, async () => {
    const throttled = await failure(almanac.get("/v1/users/{userId}/scheduling", { path, query: MORNING }));
    assert.equal(throttled.status, 429);
    assert.equal(throttled.reason, "rateLimited");
    assert.ok(throttled.retryAfter);
  });
});

test("the same idempotency key creates once", async () => {
  const userId = await connected("google");
  const create = () =>
    almanac.post("/v1/users/{userId}/calendar/events/{provider}/{calendarId}", {
      path: { userId, provider: "google", calendarId: "primary" },
      header: { "Idempotency-Key": `once-${userId}` },
      body: { start: "2026-12-05T09:00:00Z", end: "2026-12-05T10:00:00Z" },
    });

  assert.equal((await create()).data.id, (await create()).data.id);
});

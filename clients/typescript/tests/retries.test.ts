// The client when requests fail, against a server with scripted answers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Almanac, AlmanacError, Incomplete, NoAnswer, Unreadable, VERSION, complete } from "../src/index.js";
import { RESET, SILENT, type Scripted, Server } from "./scripted.js";

const KEY = "alm_very_secret";
const ADA = { status: 200, body: { data: { id: "ada", createdAt: "2026-11-20T09:00:00.000Z" } } };
const DOWN = { status: 503, body: { data: null, error: "Not available" }, headers: { "Retry-After": "0" } };
const THROTTLED = { status: 429, body: { data: null, error: "Too many" }, headers: { "Retry-After": "0" } };
const UNDER_WAY = { status: 409, body: { data: null, error: "Under way" }, headers: { "Retry-After": "0" } };
const GATEWAY = { status: 502, body: "<html>Bad gateway</html>" };
const DAY = { start: "2026-12-03", end: "2026-12-04" };
const ada = { path: { userId: "ada" } } as const;

const server = new Server();
before(() => server.start());
after(() => server.stop());

function client(options = {}): Almanac {
  return new Almanac({ baseUrl: server.url, apiKey: KEY, ...options });
}

async function failure(call: Promise<unknown>): Promise<AlmanacError> {
  const error: unknown = await call.then(() => undefined, (reason: unknown) => reason);
  assert.ok(error instanceof AlmanacError, String(error));
  return error;
}

const REPEATED: Record<string, (almanac: Almanac) => Promise<unknown>> = {
  "a read": (almanac) => almanac.get("/v1/users/{userId}", ada),
  "a creation": (almanac) => almanac.post("/v1/users", { body: { id: "ada" } }),
  "a question with a body": (almanac) =>
    almanac.post("/v1/users/{userId}/scheduling", { ...ada, query: DAY, body: { schedules: [] } }),
};
const NOT_REPEATED: Record<string, (almanac: Almanac) => Promise<unknown>> = {
  "a change": (almanac) => almanac.put("/v1/users/{userId}", { ...ada, body: { userId: "ada2" } }),
  "a deletion": (almanac) => almanac.delete("/v1/users/{userId}", ada),
  "a link": (almanac) =>
    almanac.post("/v1/users/{userId}/oauth/{provider}/authorize", {
      path: { userId: "ada", provider: "google" },
      body: {},
    }),
};

for (const failed of [DOWN, THROTTLED, UNDER_WAY, RESET, GATEWAY] as Scripted[]) {
  for (const [what, call] of Object.entries(REPEATED)) {
    test(`${what} is repeated after ${failed.status}`, async () => {
      server.says(failed, failed, ADA);
      await call(client());
      assert.equal(server.seen.length, 3);
    });
  }
  for (const [what, call] of Object.entries(NOT_REPEATED)) {
    test(`${what} is not repeated after ${failed.status}`, async () => {
      server.says(failed, ADA);
      await failure(call(client()));
      assert.equal(server.seen.length, 1);
    });
  }
}

test("a creation is repeated with the key it had, and each has its own", async () => {
  server.says(DOWN, ADA);
  await client().post("/v1/users", { body: { id: "ada" } });
  await client().post("/v1/users", { body: { id: "grace" } });
  await client().post("/v1/users", { body: { id: "eve" }, header: { "Idempotency-Key": "mine" } });

  const [first, again, other, own] = server.seen.map((each) => each.headers["idempotency-key"]);
  assert.ok(first);
  assert.equal(first, again);
  assert.notEqual(first, other);
  assert.equal(own, "mine");
});

test("the last error is thrown", async () => {
  server.says(DOWN);
  const error = await failure(client().get("/v1/users/{userId}", ada));

  assert.equal(error.message, "Not available");
  assert.equal(error.status, 503);
  assert.equal(server.seen.length, 3);
});

test("retries can be turned off", async () => {
  server.says(DOWN);
  await failure(client({ retries: 0 }).get("/v1/users/{userId}", ada));
  assert.equal(server.seen.length, 1);
});

for (const header of ["3600", new Date(Date.now() + 3_600_000).toUTCString()]) {
  test(`a Retry-After of ${header} is not waited for`, async () => {
    server.says({ ...THROTTLED, headers: { "Retry-After": header } });
    const error = await failure(client().get("/v1/users/{userId}", ada));

    assert.equal(server.seen.length, 1);
    assert.ok(Math.abs((error.retryAfter ?? 0) - 3600) < 60);
  });
}

test("an error carries what the answer has", async () => {
  const failed = { calendarId: "primary", provider: "google", reason: "rateLimited", message: "Slow down" };
  const body = {
    data: null,
    error: "Google asks to slow down",
    code: "outcomeUnknown",
    param: "users.0.id",
    reason: "rateLimited",
    retryAfter: 60,
    failedCalendars: [failed],
    aFieldOfTomorrow: 1,
  };
  server.says({ status: 429, body, headers: { "X-Request-Id": "abc" } });
  const error = await failure(client().get("/v1/users/{userId}", ada));

  const { code, param, reason, retryAfter, requestId, status, failedCalendars } = error;
  assert.deepEqual(
    { code, param, reason, retryAfter, requestId, status },
    {
      code: "outcomeUnknown",
      param: "users.0.id",
      reason: "rateLimited",
      retryAfter: 60,
      requestId: "abc",
      status: 429,
    },
  );
  assert.deepEqual(failedCalendars, [failed]);
  assert.deepEqual(error.body, body);
  assert.ok(!JSON.stringify(error).includes(KEY));
});

test("an error of an older server has no code", async () => {
  server.says({ status: 404, body: { data: null, error: "User not found" } });
  const error = await failure(client().get("/v1/users/{userId}", ada));

  assert.equal(error.code, undefined);
  assert.equal(error.status, 404);
  assert.deepEqual(error.failedCalendars, []);
  assert.equal(server.seen.length, 1);
});

for (const body of ["<html>Welcome to the hotel</html>", '{"hello": 1}', "1", ""]) {
  test(`an answer of ${JSON.stringify(body)} is unreadable`, async () => {
    server.says({ status: 200, body });
    assert.ok((await failure(client({ retries: 0 }).get("/v1/users/{userId}", ada))) instanceof Unreadable);
  });
}

test("a redirect is not followed with the key", async () => {
  server.says({ status: 302, body: "", headers: { Location: `${server.url}/elsewhere` } });
  assert.ok((await failure(client({ retries: 0 }).get("/v1/users/{userId}", ada))) instanceof Unreadable);
  assert.equal(server.seen.length, 1);
});

test("a server that does not answer in time, or does not listen, gives no answer", async () => {
  server.says(SILENT);
  const late = await failure(client({ timeout: 0.05, retries: 0 }).get("/v1/users/{userId}", ada));
  assert.ok(late instanceof NoAnswer);
  assert.match(late.message, /GET \/v1\/users\/\{userId\} got no answer/);

  const nobody = new Almanac({ baseUrl: "http://127.0.0.1:9", apiKey: KEY, retries: 0 });
  assert.ok((await failure(nobody.get("/v1/users/{userId}", ada))) instanceof NoAnswer);
});

test("a signal ends a call, also between two attempts", async () => {
  server.says({ ...DOWN, headers: { "Retry-After": "5" } });
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error("enough")), 100);

  await assert.rejects(client().get("/v1/users/{userId}", { ...ada, signal: controller.signal }), /enough/);
  await assert.rejects(client().get("/v1/users/{userId}", { ...ada, signal: controller.signal }), /enough/);
  assert.equal(server.seen.length, 1);
});

test("an id is one segment of the path, and never leads to another path", async () => {
  server.says(ADA);
  const at = { userId: "ada", provider: "google", calendarId: "team/a b@example.com", eventId: "e?v#1" } as const;
  await client().get("/v1/users/{userId}/calendar/events/{provider}/{calendarId}/{eventId}", { path: at });

  assert.equal(
    server.seen[0]?.path,
    "/v1/users/ada/calendar/events/google/team%2Fa%20b%40example.com/e%3Fv%231",
  );
  for (const userId of ["", ".", ".."]) {
    await assert.rejects(client().delete("/v1/users/{userId}", { path: { userId } }), /an id is not/);
  }
  assert.equal(server.seen.length, 1);
});

test("arrays repeat their parameter, and the headers are those of the client", async () => {
  server.says({ status: 200, body: { data: [], failedCalendars: [] } });
  await client().get("/v1/users/{userId}/calendar/busy", {
    ...ada,
    query: { ...DAY, provider: ["google", "microsoft"], primaryOnly: true },
    header: { "X-Timezone": "Europe/Berlin" },
  });

  const { path, headers } = server.seen[0] ?? assert.fail();
  assert.ok(path.endsWith("?start=2026-12-03&end=2026-12-04&provider=google&provider=microsoft&primaryOnly=true"));
  assert.equal(headers.authorization, `Bearer ${KEY}`);
  assert.equal(headers["x-timezone"], "Europe/Berlin");
  assert.equal(headers["user-agent"], `almanac-typescript/${VERSION}`);
});

test("pages are requested one after the other", async () => {
  const page = (id: string, nextCursor: string | null) => ({
    status: 200,
    body: { data: [{ id, createdAt: "2026-11-20T09:00:00.000Z" }], nextCursor },
  });
  server.says(page("ada", "a b"), page("grace", null));

  const ids: string[] = [];
  for await (const user of client().rows("/v1/users", { query: { limit: 1 } })) ids.push(user.id);

  assert.deepEqual(ids, ["ada", "grace"]);
  assert.deepEqual(
    server.seen.map((each) => each.path),
    ["/v1/users?limit=1", "/v1/users?limit=1&cursor=a+b"],
  );
});

test("rows of calendars that could not all be read are an error", async () => {
  const failed = { calendarId: "primary", provider: "google", reason: "providerError", message: "Down" };
  server.says({ status: 200, body: { data: [], failedCalendars: [failed], nextCursor: null } });

  await assert.rejects(async () => {
    for await (const _ of client().rows("/v1/users/{userId}/calendar", ada)) assert.fail();
  }, Incomplete);
});

test("an answer is complete when everything could be read", () => {
  const failed = { calendarId: "primary", provider: "google", reason: "providerError", message: "Down" } as const;
  const member = { customId: "hana", reason: "providerError", message: "Down", failedCalendars: [failed] };
  const entry = { userId: "nobody", status: "error", error: "User not found", failedCalendars: [] };

  assert.deepEqual(complete({ data: [1], failedCalendars: [], failedUsers: [] }), [1]);
  assert.throws(() => complete({ data: [], failedCalendars: [failed] }), /primary at google \(Down\)/);
  assert.throws(() => complete({ data: [], failedUsers: [member] }), /hana \(Down\)/);
  assert.throws(() => complete({ data: [entry] }), /nobody \(User not found\)/);
});

test("what a client lacks is named at once", () => {
  delete process.env["ALMANAC_URL"];
  delete process.env["ALMANAC_API_KEY"];
  assert.throws(() => new Almanac({ apiKey: KEY }), /baseUrl is missing: pass it, or set ALMANAC_URL/);
  assert.throws(() => new Almanac({ baseUrl: server.url }), /apiKey is missing: pass it, or set ALMANAC_API_KEY/);
  assert.throws(() => new Almanac({ baseUrl: "almanac.example.com", apiKey: KEY }), /https:/);
});

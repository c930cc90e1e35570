// The check of received webhooks.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import { NotVerified, verifyWebhook } from "../src/webhooks.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const EVENT = {
  type: "calendar.changed",
  timestamp: "2026-11-20T09:00:00.000Z",
  data: { userId: "ada", provider: "google", calendarId: "primary" },
};
const BODY = JSON.stringify(EVENT);

function signed(body = BODY, { secret = SECRET, age = 0 } = {}): Record<string, string> {
  const time = String(Math.floor(Date.now() / 1000) - age);
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`msg_1.${time}.${body}`).digest("base64");
  return { "Webhook-Id": "msg_1", "Webhook-Timestamp": time, "Webhook-Signature": `v1,${signature}` };
}

test("a signed webhook is an event", () => {
  assert.deepEqual(verifyWebhook(BODY, signed(), SECRET), EVENT);
  assert.deepEqual(verifyWebhook(new TextEncoder().encode(BODY), new Headers(signed()), SECRET), EVENT);
});

const OTHERS: Record<string, [string, Record<string, string>]> = {
  changed: [BODY.replace("ada", "eve"), signed()],
  "of another secret": [BODY, signed(BODY, { secret: `whsec_${"A".repeat(32)}` })],
  old: [BODY, signed(BODY, { age: 360 })],
  early: [BODY, signed(BODY, { age: -360 })],
  unsigned: [BODY, {}],
  "without a signature": [BODY, { ...signed(), "Webhook-Signature": "v1" }],
  "no event": ["no JSON", signed("no JSON")],
};

for (const [what, [body, headers]] of Object.entries(OTHERS)) {
  test(`a webhook that is ${what} is not verified`, () => {
    assert.throws(() => verifyWebhook(body, headers, SECRET), NotVerified);
  });
}

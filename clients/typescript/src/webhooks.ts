// Verification of received webhooks, by the Standard Webhooks scheme.
import { Webhook, WebhookVerificationError } from "standardwebhooks";

import type { Schemas } from "./types.js";

export type WebhookEvent = Schemas["WebhookEvent"];

/** A webhook does not come from Almanac, or is too old: do not act on it. */
export class NotVerified extends Error {
  override readonly name = "NotVerified";
}

/**
 * The event of a received webhook, after its signature was checked. `payload` is the body exactly as it was
 * received, and `secret` the one that the creation of the endpoint answered.
 */
export function verifyWebhook(
  payload: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
): WebhookEvent {
  const webhook = new Webhook(secret);
  const text = typeof payload === "string" ? payload : new TextDecoder().decode(payload);
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const single = entries.flatMap(([name, value]) => (typeof value === "string" ? [[name, value] as const] : []));
  try {
    return webhook.verify(text, Object.fromEntries(single)) as WebhookEvent;
  } catch (error) {
    if (!(error instanceof WebhookVerificationError || error instanceof SyntaxError)) throw error;
    throw new NotVerified(`the webhook was not verified: ${error.message}`, { cause: error });
  }
}

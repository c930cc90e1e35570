// Which requests are sent again, and after how long.
import type { AlmanacError } from "./errors.js";
import type { KeyedPaths, Method, PathsWith } from "./types.js";

const FIRST_PAUSE = 0.25;

// The compiler refuses this table when it lacks a creation that takes an idempotency key, or has another path.
const CREATIONS: Record<KeyedPaths, true> = {
  "/v1/users": true,
  "/v1/organizations": true,
  "/v1/organizations/{orgSlug}/members": true,
  "/v1/organizations/{orgSlug}/grants/{provider}/members": true,
  "/v1/users/{userId}/connections": true,
  "/v1/users/{userId}/oauth/{provider}": true,
  "/v1/users/{userId}/calendar/events/{provider}/{calendarId}": true,
  "/v1/users/{userId}/calendar/events/meta": true,
  "/v1/holds": true,
  "/v1/webhooks": true,
  "/v1/webhooks/{webhookId}/secret": true,
  "/v1/keys": true,
  "/v1/keys/{keyId}/rotate": true,
};

// Requests that have a body and only read.
const READS_BY_POST: readonly PathsWith<"post">[] = [
  "/v1/scheduling",
  "/v1/scheduling/explain",
  "/v1/organizations/{orgSlug}/scheduling",
  "/v1/users/calendar/busy",
  "/v1/users/scheduling",
  "/v1/users/scheduling/explain",
  "/v1/users/{userId}/scheduling",
  "/v1/users/{userId}/scheduling/explain",
];

/** Whether the client gives a request an idempotency key of its own. */
export function isCreation(method: Method, path: string): boolean {
  return method === "post" && path in CREATIONS;
}

/** Whether a request has the same effect when it is sent twice. */
export function isRepeatable(method: Method, path: string): boolean {
  const reads = method === "get" || (READS_BY_POST as readonly string[]).includes(path);
  return reads || isCreation(method, path);
}

/** Seconds until the next attempt; undefined when there is none. `attempt` counts from 0. */
export function pauseBefore(
  error: AlmanacError,
  attempt: number,
  { retries, longestPause }: { retries: number; longestPause: number },
): number | undefined {
  if (attempt >= retries || !error.temporary) return undefined;
  if (error.retryAfter !== undefined) return error.retryAfter <= longestPause ? error.retryAfter : undefined;
  // Random, so that clients that failed together do not retry together.
  return FIRST_PAUSE * 2 ** attempt * (1 + Math.random());
}

/** Wait for a number of seconds, unless the signal ends the call. */
export function sleep(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

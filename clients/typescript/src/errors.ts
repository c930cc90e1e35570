// Errors of calls. Programs decide by `code`, or by `status` where an older server sends no code.
import type { Schemas } from "./types.js";

export type FailedCalendar = Schemas["FailedCalendar"];
export type FailedUser = Schemas["FailedUser"];
export type FailureReason = Schemas["FailureReason"];
export type ErrorCode = Schemas["ErrorCode"];

interface ErrorBody {
  error?: string;
  code?: ErrorCode;
  param?: string;
  reason?: FailureReason;
  retryAfter?: number;
  failedCalendars?: FailedCalendar[];
}

/** A failed call. `message` is a sentence that can be shown to users. */
export class AlmanacError extends Error {
  /** The HTTP status; undefined without an answer. */
  readonly status: number | undefined;
  /** The word that identifies the error among those of its status. */
  readonly code: ErrorCode | undefined;
  /** The invalid field of the request, as a path. */
  readonly param: string | undefined;
  /** Why the provider failed. */
  readonly reason: FailureReason | undefined;
  /** The calendars that could not be read. */
  readonly failedCalendars: readonly FailedCalendar[];
  /** Seconds after which the request may be repeated. */
  readonly retryAfter: number | undefined;
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined;
  /** The JSON of the answer. */
  readonly body: unknown;

  constructor(message: string, answer?: { response: Response; body?: unknown }, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    const fields = (isObject(answer?.body) ? answer.body : {}) as ErrorBody;
    this.status = answer?.response.status;
    this.code = fields.code;
    this.param = fields.param;
    this.reason = fields.reason;
    this.failedCalendars = fields.failedCalendars ?? [];
    this.retryAfter = secondsOf(answer?.response.headers.get("Retry-After")) ?? fields.retryAfter;
    this.requestId = answer?.response.headers.get("X-Request-Id") ?? undefined;
    this.body = answer?.body;
  }

  /** Whether the same request may succeed later. */
  get temporary(): boolean {
    const waits = this.status === 409 && this.retryAfter !== undefined;
    return this.status === undefined || this.status === 429 || this.status >= 500 || waits;
  }
}

/** No answer came, so a change may have been made or not. */
export class NoAnswer extends AlmanacError {}

/** The answer is not Almanac's, such as a proxy's page. */
export class Unreadable extends AlmanacError {
  override get temporary(): boolean {
    return true;
  }
}

/** A calendar could not be read, and the complete answer was requested. */
export class Incomplete extends AlmanacError {
  override readonly failedCalendars: readonly FailedCalendar[];
  readonly failedUsers: readonly FailedUser[];

  constructor(failedCalendars: readonly FailedCalendar[], failedUsers: readonly FailedUser[]) {
    const calendars = failedCalendars.map((each) => `${each.calendarId} at ${each.provider} (${each.message})`);
    const users = failedUsers.map((each) => `${each.customId} (${each.message})`);
    super(`Could not be read: ${[...users, ...calendars].join(", ")}`);
    this.failedCalendars = failedCalendars;
    this.failedUsers = failedUsers;
  }

  override get temporary(): boolean {
    return false;
  }
}

/** The error for an answer that is no success. */
export function errorOf(response: Response, body: unknown, call: string): AlmanacError {
  if (!isAlmanacs(body)) {
    return new Unreadable(`${call} was answered ${response.status} by something that is not Almanac`, { response });
  }
  const sentence = (body as ErrorBody).error ?? `${call} answered ${response.status}`;
  return new AlmanacError(sentence, { response, body });
}

/** Whether a body is an answer of Almanac's: an object with `data`, or the bare list of events. */
export function isAlmanacs(body: unknown): boolean {
  return Array.isArray(body) || (isObject(body) && "data" in body);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Seconds of `Retry-After`: Almanac writes whole seconds, a proxy may write an HTTP date. */
function secondsOf(header: string | null | undefined): number | undefined {
  if (header === null || header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const then = Date.parse(header);
  return Number.isNaN(then) ? undefined : Math.max((then - Date.now()) / 1000, 0);
}

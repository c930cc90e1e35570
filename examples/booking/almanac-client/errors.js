/** A failed call. `message` is a sentence that can be shown to users. */
export class AlmanacError extends Error {
    /** The HTTP status; undefined without an answer. */
    status;
    /** The word that identifies the error among those of its status. */
    code;
    /** The invalid field of the request, as a path. */
    param;
    /** Why the provider failed. */
    reason;
    /** The calendars that could not be read. */
    failedCalendars;
    /** Seconds after which the request may be repeated. */
    retryAfter;
    /** Identifies the request in the server's log. */
    requestId;
    /** The JSON of the answer. */
    body;
    constructor(message, answer, options) {
        super(message, options);
        this.name = new.target.name;
        const fields = (isObject(answer?.body) ? answer.body : {});
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
    get temporary() {
        const waits = this.status === 409 && this.retryAfter !== undefined;
        return this.status === undefined || this.status === 429 || this.status >= 500 || waits;
    }
}
/** No answer came, so a change may have been made or not. */
export class NoAnswer extends AlmanacError {
}
/** The answer is not Almanac's, such as a proxy's page. */
export class Unreadable extends AlmanacError {
    get temporary() {
        return true;
    }
}
/** A calendar could not be read, and the complete answer was requested. */
export class Incomplete extends AlmanacError {
    failedCalendars;
    failedUsers;
    constructor(failedCalendars, failedUsers) {
        const calendars = failedCalendars.map((each) => `${each.calendarId} at ${each.provider} (${each.message})`);
        const users = failedUsers.map((each) => `${each.customId} (${each.message})`);
        super(`Could not be read: ${[...users, ...calendars].join(", ")}`);
        this.failedCalendars = failedCalendars;
        this.failedUsers = failedUsers;
    }
    get temporary() {
        return false;
    }
}
/** The error for an answer that is no success. */
export function errorOf(response, body, call) {
    if (!isAlmanacs(body)) {
        return new Unreadable(`${call} was answered ${response.status} by something that is not Almanac`, { response });
    }
    const sentence = body.error ?? `${call} answered ${response.status}`;
    return new AlmanacError(sentence, { response, body });
}
/** Whether a body is an answer of Almanac's: an object with `data`, or the bare list of events. */
export function isAlmanacs(body) {
    return Array.isArray(body) || (isObject(body) && "data" in body);
}
function isObject(value) {
    return typeof value === "object" && value !== null;
}
/** Seconds of `Retry-After`: Almanac writes whole seconds, a proxy may write an HTTP date. */
function secondsOf(header) {
    if (header === null || header === undefined)
        return undefined;
    if (/^\d+$/.test(header))
        return Number(header);
    const then = Date.parse(header);
    return Number.isNaN(then) ? undefined : Math.max((then - Date.now()) / 1000, 0);
}

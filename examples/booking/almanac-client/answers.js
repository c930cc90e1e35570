// Answers from calendars, some of which may have been unreadable.
import { Incomplete } from "./errors.js";
/**
 * The data of an answer when every calendar could be read; otherwise it throws `Incomplete`, so that an
 * unreadable calendar is never mistaken for a free one.
 */
export function complete(answer) {
    const { data, failedCalendars = [], failedUsers = [] } = answer;
    const failed = [...failedUsers, ...(Array.isArray(data) ? data.filter(isUnanswered).map(failedUser) : [])];
    if (failedCalendars.length > 0 || failed.length > 0)
        throw new Incomplete(failedCalendars, failed);
    return answer.data;
}
/** Whether a row is an entry of multi-user scheduling without slots. */
function isUnanswered(row) {
    return typeof row === "object" && row !== null && "userId" in row && "status" in row && row.status === "error";
}
function failedUser(entry) {
    const { userId, error, reason = "notFound", failedCalendars } = entry;
    return { customId: userId, message: error, reason, failedCalendars };
}

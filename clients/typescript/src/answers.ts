// Answers from calendars, some of which may have been unreadable.
import { type FailedCalendar, type FailedUser, Incomplete } from "./errors.js";

interface MayBePartial {
  data: unknown;
  failedCalendars?: FailedCalendar[];
  failedUsers?: FailedUser[];
}

interface UnansweredEntry {
  userId: string;
  error: string;
  reason?: FailedUser["reason"];
  failedCalendars: FailedCalendar[];
}

/**
 * The data of an answer when every calendar could be read; otherwise it throws `Incomplete`, so that an
 * unreadable calendar is never mistaken for a free one.
 */
export function complete<A extends { data: unknown }>(answer: A): A["data"] {
  const { data, failedCalendars = [], failedUsers = [] } = answer as MayBePartial;
  const failed = [...failedUsers, ...(Array.isArray(data) ? data.filter(isUnanswered).map(failedUser) : [])];
  if (failedCalendars.length > 0 || failed.length > 0) throw new Incomplete(failedCalendars, failed);
  return answer.data;
}

/** Whether a row is an entry of multi-user scheduling without slots. */
function isUnanswered(row: unknown): row is UnansweredEntry {
  return typeof row === "object" && row !== null && "userId" in row && "status" in row && row.status === "error";
}

function failedUser(entry: UnansweredEntry): FailedUser {
  const { userId, error, reason = "notFound", failedCalendars } = entry;
  return { customId: userId, message: error, reason, failedCalendars } as FailedUser;
}

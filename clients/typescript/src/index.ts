// A typed client of Almanac: calendar availability over Google Calendar and Microsoft 365.
export { complete } from "./answers.js";
export { Almanac, type Options } from "./client.js";
export {
  AlmanacError,
  type ErrorCode,
  type FailedCalendar,
  type FailedUser,
  type FailureReason,
  Incomplete,
  NoAnswer,
  Unreadable,
} from "./errors.js";
export type { Answer, Init, Page, Row, Schemas, components, operations, paths } from "./types.js";
export { VERSION } from "./version.js";

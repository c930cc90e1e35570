// A typed client of Almanac: calendar availability over Google Calendar and Microsoft 365.
export { complete } from "./answers.js";
export { Almanac } from "./client.js";
export { AlmanacError, Incomplete, NoAnswer, Unreadable, } from "./errors.js";
export { VERSION } from "./version.js";

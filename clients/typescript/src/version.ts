/** The version of this package; a test compares it with package.json. */
export const VERSION = "0.3.0-dev0";

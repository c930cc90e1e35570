// A caller of Almanac in TypeScript, by the types generated from its OpenAPI document.
import createClient from "openapi-fetch";

import type { components, paths } from "./almanac.js";

declare const process: { argv: string[] };

type Slot = components["schemas"]["Slot"];
type Provider = components["schemas"]["Provider"];

const [baseUrl = "", key = "", userId = ""] = process.argv.slice(2);
const provider: Provider[] = ["google", "microsoft"];
const almanac = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

const { data, error } = await almanac.GET("/v1/users/{userId}/scheduling", {
  params: {
    path: { userId },
    query: {
      start: "2026-12-03T09:00",
      end: "2026-12-03T12:00",
      slotDuration: 60,
      provider,
      align: "clock",
      onFailure: "partial",
    },
    header: { "X-Timezone": "UTC" },
  },
});
if (error !== undefined) throw new Error(error.error);
const slots: Slot[] = data.data.availableSlots;

const refused = await almanac.GET("/v1/users/{userId}", { params: { path: { userId: "nobody-at-all" } } });

console.log(
  JSON.stringify({
    starts: slots.map((slot) => slot.start),
    unread: (data.failedCalendars ?? []).map((calendar) => calendar.reason),
    refused: refused.error?.error,
  }),
);

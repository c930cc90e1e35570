"use strict";
// Shows the OpenAPI document by Swagger UI, in the colours that were chosen on the other pages.
const place = document.getElementById("reference");
const system = matchMedia("(prefers-color-scheme: dark)");

SwaggerUIBundle({
  url: place.dataset.document,
  domNode: place,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  filter: true,
  persistAuthorization: true,
  // Nothing is sent to other hosts.
  validatorUrl: null,
});

function repaint() {
  const chosen = document.documentElement.dataset.theme || (system.matches ? "dark" : "light");
  document.documentElement.classList.toggle("dark-mode", chosen === "dark");
}

repaint();
new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
system.addEventListener("change", repaint);

// What Swagger UI leaves without a name: by selector, the attributes to set.
const NAMES = {
  ".information-container": { role: "region", "aria-label": "About the API" },
  ".scheme-container": { role: "region", "aria-label": "Server and API key" },
  ".filter-container": { role: "search", "aria-label": "Operations" },
  // The title is the heading of level one.
  ".opblock-tag": { role: "heading", "aria-level": "2" },
  ".opblock h4": { role: "heading", "aria-level": "3" },
  ".opblock h5": { role: "heading", "aria-level": "4" },
  "section.models h4": { role: "heading", "aria-level": "2" },
  "section.models": { "aria-label": "Schemas" },
  "#servers": { "aria-label": "Server" },
  ".operation-filter-input": { "aria-label": "Filter by tag" },
};

/** Name what has no name, and leave the button around an operation's address as the only control there. */
function complete() {
  for (const [selector, attributes] of Object.entries(NAMES)) {
    for (const each of place.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) {
        if (!each.hasAttribute(name)) each.setAttribute(name, value);
      }
    }
  }
  for (const each of place.querySelectorAll("button a[href]")) each.removeAttribute("href");
  for (const each of place.querySelectorAll(":is(select, input, textarea):not([aria-label], [id])")) {
    const row = each.closest("tr, .wrapper, .body-param, .opblock-section");
    each.setAttribute("aria-label", row?.dataset.paramName || row?.querySelector("h4, label")?.innerText || "Value");
  }
}

new MutationObserver(complete).observe(place, { childList: true, subtree: true });

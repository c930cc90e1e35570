"use strict";
// Shows the OpenAPI document by Scalar, in the colours that were chosen on the other pages.
const place = document.getElementById("reference");
const system = matchMedia("(prefers-color-scheme: dark)");

function colours() {
  return document.documentElement.dataset.theme || (system.matches ? "dark" : "light");
}

Scalar.createApiReference(place, {
  url: place.dataset.document,
  // Requests go to the host of this page, as its policy demands.
  servers: [{ url: location.origin + place.dataset.base, description: "This installation." }],
  forceDarkModeState: colours(),
  hideDarkModeToggle: true,
  persistAuth: true,
  // Nothing is loaded from, or sent to, other hosts.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: "never",
});

/** Scalar reads its colours from these classes, and has no call to change them. */
function repaint() {
  for (const each of ["dark", "light"]) document.body.classList.toggle(`${each}-mode`, each === colours());
}

new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
// When the colours of the system change, Scalar sets the classes of the first ones again.
new MutationObserver(repaint).observe(document.body, { attributeFilter: ["class"] });
system.addEventListener("change", repaint);

"use strict";
// The slug follows the name until the user types one. The service derives slugs by the same rule.
const slug = document.getElementById("f-slug");
const name = document.getElementById("f-name");
let follows = slug.value === "";
slug.addEventListener("input", () => { follows = slug.value === ""; });
name.addEventListener("input", () => {
  if (!follows) return;
  const plain = name.value.normalize("NFKD").replace(/[^\x00-\x7f]/g, "").toLowerCase();
  slug.value = plain.replace(/[^a-z0-9]+/g, "-").slice(0, 128).replace(/^-+|-+$/g, "");
});

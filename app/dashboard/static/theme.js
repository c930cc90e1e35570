"use strict";
// Runs before the first paint: apply the chosen colours; without a choice, the system's apply.
const chosenTheme = localStorage.getItem("theme");
if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;

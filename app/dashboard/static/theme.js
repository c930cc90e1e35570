"use strict";
// Before anything is drawn: the colours that were chosen, or those of the system.
const chosenTheme = localStorage.getItem("theme");
if (chosenTheme) document.documentElement.dataset.theme = chosenTheme;

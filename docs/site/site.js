// Wide tables are reached by the keyboard, so that readers without a mouse can scroll them.
const reach = () => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap")) wide.tabIndex = 0;
};

reach();
// The generator's own script wraps tables later.
new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });

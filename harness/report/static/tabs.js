// ---- below the matrix, a tab each: written in Python (tabs.html.j2), put in when it is opened ----
const TABS = ["errors", "changes", "operators", "targets", "legend", "data"];
/** @type {(name: string) => Promise<void>} */
const openTab = async (name) => {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    /** @type {HTMLElement} */ (tab).tabIndex = chosen ? 0 : -1;
  }
  const place = byId("tab");
  // Strangers' text was escaped when it was written, and what is parsed so runs no script.
  const { body } = new DOMParser().parseFromString((await unpacked("tabs-data"))[name], "text/html");
  place.replaceChildren(...body.childNodes);
  place.setAttribute("aria-labelledby", `tab-${name}`);
  for (const line of place.querySelectorAll("pre[tabindex]"))
    line.after(...nodes(copying("Copy", () => line.textContent)));
};
on("tab", "input", ({ target }) => {
  for (const line of byId("tab").querySelectorAll("tbody tr"))
    line.hidden = !line.cells[0].textContent.toLowerCase().includes(target.value.toLowerCase());
});
on("tabs", "click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) openTab(tab.id.slice(4));
});
on("tabs", "keydown", (event) => {
  const all = /** @type {HTMLElement[]} */ ([...byId("tabs").querySelectorAll("[role=tab]")]);
  const by = Number(event.key === "ArrowRight") - Number(event.key === "ArrowLeft");
  if (!by) return;
  const next =
    all[(all.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + by + all.length) % all.length];
  openTab(next.id.slice(4));
  next.focus();
});

"use strict";
(() => {
  /** @type {(id: string) => any} */
  const byId = (id) => document.getElementById(id);
  const rows = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#grid-of-operators tbody"))];
  const [text, state] = ["f-op", "f-state"].map(byId);
  const filter = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    /** @type {(said: string | null | undefined) => boolean} */
    const has = (said) => words.every((/** @type {string} */ word) => (said || "").includes(word));
    // What is no operator is looked for in messages, causes and models.
    const known = rows.some((row) => has(row.dataset.op));
    let shown = 0;
    for (const row of rows) {
      const states = row.dataset.state || "";
      row.hidden = !(
        has(known ? row.dataset.op : row.textContent?.toLowerCase()) &&
        (!state.value || states.split(" ").includes(state.value))
      );
      shown += row.hidden ? 0 : 1;
    }
    byId("f-rows").textContent = `${shown} of ${rows.length} rows`;
  };
  // What the address names is shown, and opened.
  const open = () => {
    const found = byId(decodeURIComponent(location.hash.slice(1)));
    const details = found?.closest("details") || (rows.includes(found) && found.querySelector("details"));
    if (details) details.open = true;
    if (!found?.hidden) return;
    text.value = state.value = "";
    filter();
    found.scrollIntoView();
  };
  byId("filters").hidden = false;
  for (const control of [text, state]) control.addEventListener("input", filter);
  byId("filters").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  addEventListener("hashchange", open);
  filter();
  open();
})();

// ---- columns by product: what a head tells on demand, the pickers, and which columns are shown --------------------
/** @type {(target: Target) => string} */
const named = (target) => cut(target.name, 120) + (target.run ? "" : " (not run)");
/** @type {<T>(made: (target: Target) => T, offered: Target[]) => [family: string, made: T[]][]} */
const byFamily = (made, offered) => [...new Set(offered.map((target) => target.family))].map((family) => [family, offered.filter((target) => target.family === family).map(made)]);
const about = byId("about");
// Tells what a column needs and where that was read, beside its head.
/** @type {(target: Target, head: Element) => void} */
const tellOf = (target, head) => {
  about.replaceChildren(make("h3", {}, cut(target.name, 200)),
    make("dl", {}, target.facts.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, cut(text, 600))])),
    target.sources.length ? make("p", {}, "Read in: ", target.sources.map(({ url, title }, at) => [at ? "; " : "", link(url, cut(title, 120))])) : null,
    make("p", {}, make("a", { href: `#target-${target.id}` }, "In the table of targets")));
  about.showPopover();
  const place = head.getBoundingClientRect();
  about.style.setProperty("left", `${Math.max(8, Math.min(place.left, document.documentElement.clientWidth - about.offsetWidth - 8))}px`);
  about.style.setProperty("top", `${Math.max(8, Math.min(place.bottom + 4, innerHeight - about.offsetHeight - 8))}px`);
  about.focus();
};
grid.tHead.addEventListener("click", (/** @type {MouseEvent} */ event) => {
  const head = /** @type {Element} */ (event.target).closest(".targets th");
  if (!head || event.ctrlKey || event.metaKey || event.shiftKey || !about.showPopover) return;
  event.preventDefault();
  event.stopPropagation();
  tellOf(targets[heads.indexOf(head)], head);
});
about.addEventListener("click", (/** @type {MouseEvent} */ event) => { if (/** @type {Element} */ (event.target).closest("a[href^='#']")) about.hidePopover(); });
/** @type {(pick: HTMLSelectElement, offered: Target[], chosen: number) => void} */
const fillPicker = (pick, offered, chosen) => {
  pick.replaceChildren(...byFamily((target) => make("option", { value: target.id }, named(target)), offered).map(([family, options]) => make("optgroup", { label: cut(family, 60) }, options)));
  pick.value = targets[chosen].id;
};
const chooser = byId("columns");
/** @type {() => string[]} */
const chosen = () => [...chooser.querySelectorAll("input:checked")].map((box) => box.value);
chooser.append(make("div", { class: "chooser" }, byFamily((target) => make("label", { class: "tick" }, make("input", { type: "checkbox", value: target.id, checked: true }), " ", named(target)), targets)
  .map(([family, boxes]) => make("fieldset", {}, make("legend", {}, cut(family, 60)), boxes))));
chooser.addEventListener("change", () => go({ cols: chosen().length === targets.length ? "" : chosen().join(",") }));
/** @type {(cols: string) => void} */
const showChosen = (cols) => {
  const ids = cols.split(",");
  for (const box of chooser.querySelectorAll("input")) box.checked = !cols || ids.includes(box.value);
  chooser.querySelector("summary").textContent = cols ? `Columns: ${chosen().length} of ${targets.length}` : "Columns";
};

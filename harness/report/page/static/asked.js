// ---- what the filter box understands beside its language: products and error texts -------------------------------------
const CALLED = data.called.map((each) => ({ ...each, words: new RegExp(`(?<![\\w:-])(?:${each.pattern})(?![\\w-])`, "giu") }));
/** @type {(text: string) => boolean} */
const looksLikeLog = (text) => text.length > 160 || /\[TRT\]|\[[EWIV]\]|Error Code \d+: |Error\[\d+\]|\.cpp(?::|\()|ERROR: |WARNING: |\n/.test(text);
// Products are taken out of the text, the longest first, and name columns; what is in quotes is left as it is.
/** @type {(text: string) => { rest: string; products: Called[] }} */
const productsIn = (text) => {
  /** @type {Called[]} */
  const products = [];
  const rest = text.split(/("[^"]*"?)/).map((part) => (part[0] === '"' ? part : CALLED.reduce((left, each) => left.replace(each.words, () => {
    products.push(each);
    return " ";
  }), part))).join("");
  return { rest, products };
};
/** @type {Map<string, { title: string; texts: string }> | null} */
let catalogue = null;
// The catalogue's titles and texts by signature, read off the page once.
const errorTexts = () => {
  const told = (/** @type {Element} */ entry, /** @type {string} */ which) => [...entry.querySelectorAll(which)].map((one) => one.textContent).join("\n").toLowerCase();
  catalogue = catalogue || new Map([...document.querySelectorAll("#catalogue .error")].map((entry) => [entry.id.slice("error=".length), { title: told(entry, "summary b, summary code"), texts: told(entry, ".texts code") }]));
  return catalogue;
};
// What begins a word of the matrix is no error for being in the example of one: `titled` looks at what errors are called.
/** @type {(phrase: string, titled?: boolean) => string[]} */
const errorsLike = (phrase, titled = false) => {
  const asked = phrase.trim().replace(/^"|"$/g, "").replace(/\s+/g, " ").toLowerCase();
  return asked.length < 3 ? [] : [...errorTexts()].filter(([, { title, texts }]) => title.includes(asked) || !titled && texts.includes(asked)).map(([id]) => id);
};
// The words of a query that stand without a key.
/** @type {(text: string) => string} */
const plainWords = (text) => text.replace(/-?\b[a-z]+:(?:"[^"]*"?|\S*)/gi, " ").trim();
const MOST_NAMED = 4;
/** @type {(text: string) => Content[]} */
const hintOn = (text) => {
  if (looksLikeLog(text)) {
    const move = make("button", { type: "button" }, "Read it there");
    move.addEventListener("click", () => {
      go({ q: "" });
      byId("paste-text").value = text;
      byId("paste-text").dispatchEvent(new Event("input"));
      byId("paste-text").focus();
    });
    return ["This looks like a line of a log, for which there is the box under “Errors”. ", move];
  }
  const { rest, products } = productsIn(text);
  const told = products.map(({ said, columns }) => `${columns.length ? "" : "No column here is of "}${said}${columns.length ? `: ${columns.map((column) => targets[column].id).join(", ")}` : ""}. `);
  const words = plainWords(rest);
  const found = errorsLike(words, /^\w*$/.test(words) && rows.some((row) => haystack(row).includes(words.toLowerCase())));
  const names = found.slice(0, MOST_NAMED).flatMap((id, at) => [at ? ", " : "", make("a", { href: `#error=${id}` }, byId(`error=${id}`).querySelector("summary b").textContent)]);
  return [...told, found.length ? [`${found.length} error${found.length > 1 ? "s match" : " matches"}; see `, names, found.length > MOST_NAMED ? ` and ${found.length - MOST_NAMED} more under “Errors”` : "", "."] : null];
};
const showHint = () => {
  const said = /** @type {any[]} */ (hintOn(byId("f-text").value)).flat(Infinity).filter(Boolean);
  byId("f-hint").replaceChildren(...said);
  byId("f-hint").hidden = !said.length;
};
byId("f-text").addEventListener("input", showHint);
// The text is changed by links and buttons too, after they were clicked.
for (const event of ["hashchange", "popstate", "click"]) addEventListener(event, () => setTimeout(showHint, 0));
setTimeout(showHint, 0);

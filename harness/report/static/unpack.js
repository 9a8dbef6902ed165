// ---- results.json and the words for it, unpacked ----
/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);
/** @type {(error: unknown) => string} */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));
/** @type {(id: string) => Promise<any>} */
const unpacked = async (id) => {
  const text = (
    byId(id) ||
    (await new Promise((done) => {
      addEventListener("DOMContentLoaded", () => done(byId(id)));
    }))
  ).textContent;
  // Faster, where it is there.
  const bytes =
    /** @type {any} */ (Uint8Array).fromBase64?.(text) ||
    Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return JSON.parse(
    await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text(),
  );
};
/** @type {(error: unknown) => never} */
const refused = (error) => {
  byId("problem").textContent =
    `This browser cannot unpack the page's data (${messageOf(error)}): Chromium 80, Firefox 113 and Safari 16.4 ` +
    "can. summary.md beside this file has the result in short.";
  byId("problem").hidden = false;
  throw error;
};
/** @type {() => Promise<[Results, Words]>} */
const allData = async () =>
  /** @type {any} */ (await Promise.all([unpacked("results"), unpacked("words")]).catch(refused));

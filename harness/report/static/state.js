// ---- what the reader chose: in the address, so that a link opens the same ----
/** @type {(target: Target) => number[]} */
const versionOf = (target) => target.version.split(".").map(Number);
/** @type {(one: Target, other: Target) => number} */
const byVersion = (one, other) => {
  const [left, right] = [versionOf(one), versionOf(other)];
  const at = left.findIndex((part, index) => part !== right[index]);
  return at < 0 ? 0 : left[at] - (right[at] ?? 0);
};
// TensorRT 8 to the newest 10, both measured if any are, else the two newest measured versions of a series, else the
// ends.
/** @type {() => [string, string]} */
const usualStep = () => {
  for (const series of new Set(
    targets.filter(({ engine }) => engine === "tensorrt").map((target) => target.series),
  )) {
    const every = targets.filter((target) => target.series === series).sort(byVersion);
    const measured = every.filter(({ id }) => seen.has(id));
    const versions = measured.length > 1 ? measured : every;
    const [from, to] = [
      versions.find((target) => versionOf(target)[0] === 8),
      versions.filter((target) => versionOf(target)[0] === 10).at(-1),
    ];
    if (from && to) return [from.id, to.id];
  }
  const measured = targets
    .filter(ran)
    .filter((target, _, all) => all.filter(({ series }) => series === target.series).length > 1)
    .sort(byVersion);
  const series = measured.filter((target) => target.series === measured.at(-1)?.series);
  const [from, to] = series.length > 1 ? series.slice(-2) : [targets[0], targets[targets.length - 1]];
  return [from?.id || "", to?.id || ""];
};
const LAST = "trt-compat step";
/** @type {() => [string, string]} */
const lastStep = () => {
  try {
    const [from, to] = (localStorage.getItem(LAST) || "").split(" ");
    return targetOf.has(from) && targetOf.has(to) ? [from, to] : usualStep();
  } catch {
    return usualStep();
  }
};
/** @type {() => State} */
const readState = () => {
  const asked = new URLSearchParams(location.search);
  const [from, to] = lastStep();
  const named = (/** @type {string} */ key, /** @type {string} */ usual) => {
    const id = asked.get(key) || "";
    return targetOf.has(id) ? id : usual;
  };
  return {
    a: named("a", from),
    b: named("b", to),
    q: asked.get("q") || "",
    topic: asked.get("topic") || "",
    state: asked.get("state") || "",
    all: asked.get("all") === "1",
    latency: asked.get("latency") === "1",
  };
};
const state = readState();
// The step of the question, as long as it stands, else the one that was picked.
/** @type {() => [string, string]} */
const shownStep = () => filter.query.answer?.step || [state.a, state.b];
/** @type {() => Target} */
const before = () => /** @type {Target} */ (targetOf.get(shownStep()[0]));
/** @type {() => Target} */
const after = () => /** @type {Target} */ (targetOf.get(shownStep()[1]));
const MOST_IN_ADDRESS = 2000;
/** @type {(hash?: string) => void} */
const writeState = (hash = location.hash) => {
  const asked = new URLSearchParams(
    Object.entries({
      a: state.a,
      b: state.b,
      q: state.q.length > MOST_IN_ADDRESS ? "" : state.q,
      topic: state.topic,
      state: state.state,
      all: state.all ? "1" : "",
      latency: state.latency ? "1" : "",
    }).filter(([, value]) => value),
  );
  history.replaceState(null, "", `${location.pathname}?${asked}${hash}`);
  try {
    localStorage.setItem(LAST, `${state.a} ${state.b}`);
  } catch {
    // A browser may keep nothing for a file.
  }
};

// ---- from A to B: the same as harness/report/pairs.py and upgrade.py, from the same sides ----------------------
const GOOD = new Set(["ok", "built"]);
const grade = (cls) => (GOOD.has(cls) ? 2 : cls === "precision_lost" ? 1 : 0);
const FLOATS = new Set(["fp32", "tf32"]);
const samePrecision = (one, two) => one === two || (FLOATS.has(one) && FLOATS.has(two));

const sideOf = (row, column) => ({ ...lookOf(row, column), box: boxOf(row, column) });
const said = (side) => {
  if (side.known === null) return side.why;
  return `${side.sure === "measured" ? "" : "documented: "}${data.predicates[side.known]}${side.chip ? ` (${side.chip})` : ""}`;
};
const kept = (row, one, other) => row.wanted.filter(([, want], at) =>
  one.nodes[at] && other.nodes[at] && samePrecision(want, one.nodes[at])).length;
const stepKind = (row, old, now) => {
  if (old.known === null || now.known === null) {
    return old.known !== null && now.why !== "does not apply" ? "newly_unknown" : null;
  }
  const [was, is] = [grade(old.known), grade(now.known)];
  if (is === 0) {
    const other = old.known !== now.known || (old.signature && now.signature && old.signature !== now.signature);
    return was ? "broken" : other ? "otherwise" : null;
  }
  if (is !== was) return is === 1 ? "precision_lost" : was ? "precision_gained" : "fixed";
  const [before, after] = [kept(row, old, now), kept(row, now, old)];
  return after < before ? "precision_lost" : after > before ? "precision_gained" : null;
};
const hindrance = (old, now) => {
  if (old.box.stack !== now.box.stack) return "stack";
  return old.box.interval && now.box.interval ? null : "noise";
};
// The interval of the ratio of the medians, after over before; null where they are not compared.
const ratio = (old, now) => (!old.box || !now.box || hindrance(old, now) ? null
  : [now.box.interval[0] / old.box.interval[1], now.box.interval[1] / old.box.interval[0]]);
const speed = (old, now) => {
  const found = ratio(old, now);
  if (!found || !grade(old.known) || !grade(now.known)) return null;
  const margin = 1 + data.runToRun[data.stacks[old.box.stack][0]];
  return found[0] > margin ? "slower" : found[1] < 1 / margin ? "faster" : null;
};
const pace = (old, now) => {
  const found = ratio(old, now);
  const slower = found[0] > 1;
  const [low, high] = (slower ? [found[0] - 1, found[1] - 1] : [1 - found[1], 1 - found[0]]).map((part) => Math.floor(part * 100 + 0.5));
  return `median ${ms(old.box.median)} → ${ms(now.box.median)}, ${low === high ? low : `${low} to ${high}`} % ${slower ? "slower" : "faster"}`;
};
const lostNodes = (row, now) => {
  const lost = row.wanted.flatMap(([node, want], at) => (now.nodes[at] && !samePrecision(want, now.nodes[at])
    ? [`${node} in ${now.nodes[at]} instead of ${want}`] : []));
  return lost.slice(0, 3).join(", ") + (lost.length > 3 ? ` and ${lost.length - 3} more` : "");
};
const instead = (row, now, column) => {
  const own = new Map(rows.filter((other) => other.case === row.case).map((other) => [other.name, other]));
  const family = [row.name];
  for (let name = row.counterpart; own.has(name) && !family.includes(name); name = own.get(name).counterpart) family.push(name);
  const near = [...own.values()].filter((other) => other.role === "workaround" && (family.includes(other.counterpart) || family.includes(other.name)));
  const proofs = now.proofs.flatMap((proof) => rows.filter((other) => `${other.case.name}.${other.name}` === proof));
  const every = [...new Set([...near, ...proofs])].filter((other) => other !== row).map((other) => [other, lookOf(other.index, column)]);
  if (!every.length) return "no workaround of it is known here";
  const good = every.filter(([, side]) => GOOD.has(side.known));
  const works = good.filter(([, side]) => side.sure === "measured");
  if (good.length) return (works.length ? works : good).slice(0, 2).map(([other, side]) => `${other.full} ${said(side)}`).join("; ");
  return `none of ${every.length} known here works on ${targets[column].id}`;
};
const stepRow = (row, kind, before, after, old, now) => {
  const known = [[before, old], [after, now]].filter(([, side]) => side.known !== null);
  const flaky = known.filter(([, side]) => side.flaky.length);
  const unstable = flaky.map(([column, side]) => `; flaky on ${targets[column].id} (${side.flaky.join(", ")})`).join("");
  const sure = (known.every(([, side]) => side.sure === "measured") ? "measured"
    : known.map(([column, side]) => `${targets[column].id} ${side.sure}`).join(", "))
    + (flaky.length ? `; flaky on ${flaky.map(([column]) => targets[column].id).join(" and ")}` : "");
  const made = { kind, case: row.case.name, variant: row.name, text: "", cause: "", instead: "", sure };
  if (kind === "slower" || kind === "faster") {
    made.text = pace(old, now) + unstable;
    return made;
  }
  made.text = `${said(old)} → ${said(now)}`;
  if (kind === "precision_lost") {
    const lost = lostNodes(row, now);
    if (lost) made.text += `: ${lost}`;
  }
  made.text += unstable;
  made.cause = kind === "fixed" || kind === "precision_gained" ? old.why : kind === "newly_unknown" ? "" : now.why;
  if (["broken", "precision_lost", "otherwise"].includes(kind)) made.instead = instead(row, now, after);
  return made;
};
const timing = (pairs) => {
  const both = pairs.filter(([old, now]) => old.box && now.box);
  if (!both.length) return [0, "Latency is not compared: no variant was timed on both."];
  const why = both.map(([old, now]) => hindrance(old, now));
  const count = (reason) => why.filter((one) => one === reason).length;
  const stacks = both.map((sides) => sides.map((side) => data.stacks[side.box.stack]));
  const differing = data.stackFields.filter((_, at) => stacks.some(([one, two]) => one[at] !== two[at]));
  const left = [count("stack") ? `${count("stack")} timed on different stacks (${differing.join(", ")} differ)` : "",
    count("noise") ? `${count("noise")} too noisy` : ""].filter(Boolean).join(", ");
  return [count(null), `Latency is compared for ${count(null) || "none"} of ${both.length} variants timed on both${left ? `; left out: ${left}` : ""}.`];
};
const headline = (pairs, made, a, b) => {
  const compared = pairs.filter(([old, now]) => old.known !== null && now.known !== null).length;
  if (!compared) return `Nothing is known on both ${a} and ${b}, so nothing can be said.`;
  const count = (kind) => made.filter((row) => row.kind === kind).length;
  const parts = [count("broken") ? `breaks ${count("broken")}` : "",
    count("precision_lost") ? `loses the precision of ${count("precision_lost")}` : ""].filter(Boolean);
  if (parts.length) return `Going to ${b} ${parts.join(" and ")} of ${compared} variants known on both.`;
  return `Nothing that works on ${a} breaks or loses precision on ${b}, of ${compared} variants known on both.`;
};
const coverage = (pairs, a, b) => {
  const wanted = rows.flatMap((row) => row.wanted.flatMap(([, want, op], at) => (want === "int8" ? [[row.index, at, op || "?"]] : [])));
  const told = (name, which) => {
    const found = wanted.map(([row, at, op]) => [pairs[row][which].nodes, at, op]);
    if (!found.some(([nodes]) => nodes.length)) return `not told on ${name}`;
    const ops = found.filter(([nodes, at]) => nodes[at] === "int8").map(([, , op]) => op);
    const byOp = [...new Set(ops)].sort().map((op) => `${op} ${ops.filter((one) => one === op).length}`).join(", ");
    return `${ops.length} on ${name}${byOp ? ` (${byOp})` : ""}`;
  };
  return wanted.length ? `Of ${wanted.length} nodes that should run in INT8, in INT8 are: ${told(a, 0)}, ${told(b, 1)}.` : "";
};
const upgrade = (before, after) => {
  const [a, b] = [targets[before].id, targets[after].id];
  const pairs = rows.map((row) => [sideOf(row.index, before), sideOf(row.index, after)]);
  const made = [];
  const still = [0, 0, 0];
  rows.forEach((row) => {
    const [old, now] = pairs[row.index];
    const found = [stepKind(row, old, now), speed(old, now)].filter(Boolean);
    made.push(...found.map((kind) => stepRow(row, kind, before, after, old, now)));
    if (!found.length) still[(old.known !== null) + (now.known !== null)] += 1;
  });
  const order = data.kinds.map(([kind]) => kind);
  made.sort((one, two) => order.indexOf(one.kind) - order.indexOf(two.kind));
  const unrun = [...new Set([before, after])].filter((column) => !targets[column].run).map((column) => targets[column].id);
  const [timed, timingSaid] = timing(pairs);
  return {
    before: a, after: b, rows: made, timed,
    rest: `${still[2]} variants are the same on both${still[1] ? `, ${still[1]} known on one side alone` : ""}${still[0] ? `, ${still[0]} known on neither` : ""}.`,
    headline: headline(pairs, made, a, b),
    basis: unrun.length ? `Not run here: ${unrun.join(" and ")}. What is said of it is documented, not measured.` : "",
    coverage: coverage(pairs, a, b), timing: timingSaid,
    counts: Object.fromEntries(order.map((kind) => [kind, made.filter((row) => row.kind === kind).length])),
  };
};

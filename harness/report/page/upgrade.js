// ---- from A to B: the same as harness/report/upgrade.py, from the same sides ----------------------------------
const GOOD = new Set(["ok", "built"]);
const grade = (cls) => (GOOD.has(cls) ? 2 : cls === "precision_lost" ? 1 : 0);
const FLOATS = new Set(["fp32", "tf32"]);
const samePrecision = (one, two) => one === two || (FLOATS.has(one) && FLOATS.has(two));
const NOTICEABLE = 1.05;

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
const speed = (old, now) => {
  const [before, after] = [old.box, now.box];
  if (!before || !after || before.stack !== after.stack) return null;
  if (after.low > before.high && after.median >= before.median * NOTICEABLE) return "slower";
  if (after.high < before.low && before.median >= after.median * NOTICEABLE) return "faster";
  return null;
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
  const sure = known.every(([, side]) => side.sure === "measured") ? "measured"
    : known.map(([column, side]) => `${targets[column].id} ${side.sure}`).join(", ");
  const made = { kind, case: row.case.name, variant: row.name, text: "", cause: "", instead: "", sure };
  if (kind === "slower" || kind === "faster") {
    const [one, two] = [old.box.median, now.box.median];
    made.text = `median ${ms(one)} → ${ms(two)}, ${(Math.abs(two / one - 1) * 100).toFixed(0)} % ${two > one ? "slower" : "faster"}`;
    return made;
  }
  made.text = `${said(old)} → ${said(now)}`;
  if (kind === "precision_lost") {
    const lost = lostNodes(row, now);
    if (lost) made.text += `: ${lost}`;
  }
  made.cause = kind === "fixed" || kind === "precision_gained" ? old.why : kind === "newly_unknown" ? "" : now.why;
  if (["broken", "precision_lost", "otherwise"].includes(kind)) made.instead = instead(row, now, after);
  return made;
};
const timing = (pairs) => {
  const both = pairs.filter(([old, now]) => old.box && now.box);
  const same = both.filter(([old, now]) => old.box.stack === now.box.stack).length;
  if (!both.length) return [0, "Latency is not compared: no variant was timed on both."];
  const apart = both.length - same;
  if (same) {
    const more = apart ? `; ${apart} more were timed on different stacks and are not compared` : "";
    return [same, `Latency is compared for ${same} variants, timed on the same stack${more}.`];
  }
  const [one, two] = both[0].map((side) => data.stacks[side.box.stack]);
  const differing = data.stackFields.filter((_, at) => one[at] !== two[at]);
  return [0, `Latency is not compared: the two were timed on different stacks (${differing.join(", ")} differ).`];
};
const headline = (pairs, made, a, b) => {
  const compared = pairs.filter(([old, now]) => old.known !== null && now.known !== null).length;
  if (!compared) return `Nothing is known on both ${a} and ${b}: this page cannot tell.`;
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
  let [same, unknown] = [0, 0];
  rows.forEach((row) => {
    const [old, now] = pairs[row.index];
    const found = [stepKind(row, old, now), speed(old, now)].filter(Boolean);
    made.push(...found.map((kind) => stepRow(row, kind, before, after, old, now)));
    if (old.known === null && now.known === null) unknown += 1;
    else if (!found.length) same += 1;
  });
  const order = data.kinds.map(([kind]) => kind);
  made.sort((one, two) => order.indexOf(one.kind) - order.indexOf(two.kind));
  const unrun = targets.filter((target) => [a, b].includes(target.id) && !target.run).map((target) => target.id);
  const [timed, timingSaid] = timing(pairs);
  return {
    before: a, after: b, rows: made, same, unknown, timed,
    headline: headline(pairs, made, a, b),
    basis: unrun.length ? `Not run here: ${unrun.join(" and ")}. What is said of it is documented, not measured.` : "",
    coverage: coverage(pairs, a, b), timing: timingSaid,
    counts: Object.fromEntries(order.map((kind) => [kind, made.filter((row) => row.kind === kind).length])),
  };
};

// ---- from A to B: the same as harness/report/compare/pairs.py, answer.py and upgrade.py, from the same sides -----------
const GOOD = new Set(["ok", "built"]);
const grade = (cls) => (GOOD.has(cls) ? 2 : cls === "precision_lost" ? 1 : 0);
const FLOATS = new Set(["fp32", "tf32"]);
const samePrecision = (one, two) => one === two || (FLOATS.has(one) && FLOATS.has(two));

const sideOf = (row, column) => ({ ...lookOf(row, column), box: boxOf(row, column), demanded: !targets[column].baseline });
const said = (side, predicate = data.predicates[side.known]) => {
  if (side.known === null) return side.why;
  return `${side.grade === "measured" ? "" : `${side.grade}: `}${predicate}${side.chip ? ` (${side.chip})` : ""}`;
};
const kept = (row, one, other) => row.wanted.filter(([, want], at) =>
  one.nodes[at] && other.nodes[at] && samePrecision(want, one.nodes[at])).length;
const allTold = (side) => side.nodes.length > 0 && side.nodes.every(Boolean);
const stepKind = (row, old, now) => {
  if (old.known === null || now.known === null) {
    return old.known !== null && now.why !== "does not apply" ? "newly_unknown" : null;
  }
  const [was, is] = [grade(old.known), grade(now.known)];
  if (is === 0) {
    const other = old.known !== now.known || (old.signature && now.signature && old.signature !== now.signature);
    return was ? "broken" : other ? "otherwise" : null;
  }
  if (!was) return is === 1 ? "builds_without" : "fixed";
  if (!now.demanded) return null;
  const gained = kept(row, now, old) - kept(row, old, now) || (allTold(old) && allTold(now) ? 0 : is - was);
  return gained < 0 ? "precision_lost" : gained ? "precision_gained" : null;
};
// The nodes that nobody wished for and that left or took a narrow type.
const NARROW = new Set(["int8", "uint8", "int4", "fp8", "fp4"]);
const crossed = (row, old, now) => {
  if (!now.demanded || ![old, now].every((side) => side.known !== null && grade(side.known))) return [];
  return row.rest.map((node, at) => [node, old.rest[at], now.rest[at]]).filter(([, one, two]) => one && two && NARROW.has(one) !== NARROW.has(two));
};
const width = (row, old, now) => {
  const found = crossed(row, old, now);
  return found.some(([, before]) => NARROW.has(before)) ? "wider" : found.length ? "narrower" : null;
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
const some = (told) => told.slice(0, 3).join(", ") + (told.length > 3 ? ` and ${told.length - 3} more` : "");
const lostNodes = (row, now) => {
  const lost = row.wanted.flatMap(([node, want], at) => (now.nodes[at] && !samePrecision(want, now.nodes[at])
    ? [`${node} in ${now.nodes[at]} instead of ${want}`] : []));
  return some(lost);
};
const crossedNodes = (row, kind, old, now) => {
  const found = crossed(row, old, now).map(([node, one, two]) => `${node} ${one} → ${two}`);
  return (found.length && !["wider", "narrower"].includes(kind) ? "not asked for: " : "") + some(found);
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
  const works = good.filter(([, side]) => side.grade === "measured");
  if (good.length) return (works.length ? works : good).slice(0, 2).map(([other, side]) => `${other.full} ${said(side)}`).join("; ");
  const proven = every.every(([, side]) => side.grade === "measured");
  return `none of ${every.length} known here ${proven ? "works" : "is known to work"} on ${targets[column].id}`;
};
const stepRow = (row, kind, before, after, old, now) => {
  const known = [[before, old], [after, now]].filter(([, side]) => side.known !== null);
  const flaky = known.filter(([, side]) => side.flaky.length);
  const unstable = flaky.map(([column, side]) => `; flaky on ${targets[column].id} (${side.flaky.join(", ")})`).join("");
  const sure = (known.every(([, side]) => side.grade === "measured") ? "measured"
    : known.map(([column, side]) => `${targets[column].id} ${side.graded}`).join(", "))
    + (flaky.length ? `; flaky on ${flaky.map(([column]) => targets[column].id).join(" and ")}` : "");
  const made = { kind, case: row.case.name, variant: row.name, text: "", cause: "", instead: "", sure };
  if (kind === "slower" || kind === "faster") {
    made.text = pace(old, now) + unstable;
    return made;
  }
  // What failed before had no precision to lose.
  made.text = `${said(old)} → ${said(now, kind === "builds_without" ? "builds without its precision" : undefined)}`;
  const told = [["precision_lost", "builds_without"].includes(kind) ? lostNodes(row, now) : "", crossedNodes(row, kind, old, now)].filter(Boolean);
  if (told.length) made.text += `: ${told.join("; ")}`;
  made.text += unstable;
  made.cause = kind === "fixed" || kind === "precision_gained" ? old.why : kind === "newly_unknown" ? "" : now.why;
  if (["broken", "precision_lost", "builds_without", "otherwise"].includes(kind)) made.instead = instead(row, now, after);
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
  const both = pairs.filter(([old, now]) => old.known !== null && now.known !== null);
  if (!both.length) return `Nothing is known on both ${a} and ${b}, so nothing can be said.`;
  const count = (kind) => made.filter((row) => row.kind === kind).length;
  const parts = [count("broken") ? `breaks ${count("broken")}` : "",
    count("precision_lost") ? `loses the precision of ${count("precision_lost")}` : ""].filter(Boolean);
  const without = count("builds_without");
  const silent = without ? `; ${without} that failed before now ${without === 1 ? "builds without its" : "build without their"} precision` : "";
  const wider = count("wider");
  const known = `of ${both.length} variants known on both${silent}${wider ? `; ${wider} ${wider === 1 ? "gives" : "give"} up a narrow type that nobody asked for` : ""}.`;
  if (parts.length) return `Going to ${b} ${parts.join(" and ")} ${known}`;
  const good = [["ok", "works"], ["built", "builds"]].flatMap(([cls, word]) => (both.some(([old]) => old.known === cls) ? [word] : []));
  return `Nothing that ${good.join(" or ") || "works"} on ${a} breaks or loses precision on ${b}, ${known}`;
};
// Classes that a cell has only where its engine was tried on a device.
const RUN = new Set(["ok", "inaccurate", "load_failed", "run_failed"]);
const basis = (pairs, a, b) => {
  const sides = [[a, pairs.map(([old]) => old)], [b, pairs.map(([, now]) => now)]];
  const unique = (names) => [...new Set(names)];
  const unrun = unique([a, b].filter((name) => !byTarget.get(name).run));
  const built = unique(sides.flatMap(([name, found]) => {
    const measured = unrun.includes(name) ? [] : found.filter((side) => side.grade === "measured");
    const only = measured.filter((side) => side.known === "built").length;
    return only ? [measured.some((side) => side.box || RUN.has(side.known)) ? `${name} (${only} ${only === 1 ? "variant" : "variants"})` : name] : [];
  }));
  const sways = (side) => side.known !== null && side.flaky.length > 0;
  const flaky = pairs.filter((pair) => pair.some(sways)).length;
  const flakyOn = unique(sides.filter(([, found]) => found.some(sways)).map(([name]) => name));
  return [unrun.length ? `Not run here: ${unrun.join(" and ")}. What is said of it is reported or guessed, not measured.` : "",
    built.length ? `Built, not run, on ${built.join(" and ")}: numbers and latency were not measured.` : "",
    flaky ? `${flaky} ${flaky === 1 ? "variant is" : "variants are"} flaky on ${flakyOn.join(" or ")}.` : ""].filter(Boolean).join(" ");
};
const coverage = (pairs, a, b) => {
  const wanted = rows.flatMap((row) => row.wanted.flatMap(([, want, op], at) => (want === "int8" ? [[row.index, at, op || "?"]] : [])));
  const told = (name, which) => {
    const found = wanted.map(([row, at, op]) => [pairs[row][which], at, op]);
    if (!found.some(([side]) => side.nodes.length)) {
      const measured = found.flatMap(([side]) => (side.grade === "measured" ? [side.known] : []));
      // What gives wrong numbers ran, in whatever precision.
      const failed = measured.length && measured.every((cls) => !grade(cls) && cls !== "inaccurate");
      return failed ? `none on ${name} (every variant measured there that wants INT8 fails)` : `not told on ${name}`;
    }
    const ops = found.filter(([side, at]) => side.nodes[at] === "int8").map(([, , op]) => op);
    const byOp = [...new Set(ops)].sort().map((op) => `${op} ${ops.filter((one) => one === op).length}`).join(", ");
    return `${ops.length} on ${name}${byOp ? ` (${byOp})` : ""}`;
  };
  return wanted.length ? `Of ${wanted.length} nodes that should run in INT8, in INT8 are: ${told(a, 0)}, ${told(b, 1)}.` : "";
};
const upgrade = (before, after) => {
  const [a, b] = [targets[before].id, targets[after].id];
  const pairs = rows.map((row) => [sideOf(row.index, before), sideOf(row.index, after)]);
  const made = [];
  const still = { same: 0, added: 0, dropped: 0, unknown: 0 };
  rows.forEach((row) => {
    const [old, now] = pairs[row.index];
    const found = [stepKind(row, old, now) || width(row, old, now), speed(old, now)].filter(Boolean);
    made.push(...found.map((kind) => stepRow(row, kind, before, after, old, now)));
    if (!found.length) still[old.known === null ? (now.known === null ? "unknown" : "added") : now.known === null ? "dropped" : "same"] += 1;
  });
  const order = data.kinds.map(([kind]) => kind);
  made.sort((one, two) => order.indexOf(one.kind) - order.indexOf(two.kind));
  const more = [[still.added, `known on ${b} alone`], [still.dropped, `known on ${a} but not applicable to ${b}`], [still.unknown, "known on neither"]];
  const [timed, timingSaid] = timing(pairs);
  return {
    before: a, after: b, rows: made, timed,
    rest: `${still.same} variants are the same on both${more.map(([count, text]) => (count ? `, ${count} ${text}` : "")).join("")}.`,
    headline: headline(pairs, made, a, b),
    basis: basis(pairs, a, b),
    coverage: coverage(pairs, a, b), timing: timingSaid,
    counts: Object.fromEntries(order.map((kind) => [kind, made.filter((row) => row.kind === kind).length])),
  };
};

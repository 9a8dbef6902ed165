// results.json (harness/report/writer.py describes it), what the app knows beside it (harness/report/page.py), and what
// its scripts pass to one another.

interface Link {
  url: string;
  title: string;
}
interface Stamps {
  when: string;
  run: string;
  environment: { [key: string]: string };
}
interface Reported {
  signature: string;
  seen: string;
}
interface TargetFields {
  id: string;
  label: string;
  name: string;
  product: string;
  baseline: boolean;
  family: string;
  series: string;
  engine: string;
  version: string;
  short: string;
  platform: string;
  image: string;
  needs: string;
  notes: string;
  stamps: Stamps | null;
  commands: string[];
  gpus: string;
  compute_capability: string;
  driver: string;
  cuda: string;
  jetpack: string;
  released: string;
  sources: Link[];
  troubles: Reported[];
}
interface Target extends TargetFields {
  index: number;
}
interface Claim {
  says: string;
  basis: "measured" | "reported";
  scope: string;
  of: string;
  stands: boolean;
  source: Link | null;
  title: string;
  where: string;
  note: string;
  signature: string | null;
}
interface GraphNode {
  name: string;
  op: string;
  inputs: string[];
  outputs: string[];
}
interface Variant {
  name: string;
  title: string;
  role: string;
  counterpart: string | null;
  wanted: { [node: string]: string };
  recipe_text: string;
  recipe_sha256: string;
  model_sha256: string;
  claims: Claim[];
  tags: string[];
  topics: string[];
  sentences: { series: string; text: string }[];
  reproduced: string;
  graph: { nodes: GraphNode[]; types: { [tensor: string]: string } };
}
interface Case {
  name: string;
  title: string;
  summary: string;
  links: Link[];
  variants: Variant[];
  seed: number | null;
}
interface RowSteps {
  known: number[];
  open: [before: number, after: number][];
  kinds: [before: number, after: number, kind: string, detail: number][];
  // The phenomenon of each of `kinds`, a number of a detail.
  phenomena: number[];
}
interface Row extends Variant {
  index: number;
  id: string;
  case: Case;
  cells: Cell[];
  steps: RowSteps;
}
interface Proof {
  case: string;
  variant: string;
  known: { basis: string; works: boolean; where: string }[];
}
interface Advice {
  title: string;
  cause: string;
  advice: string;
  proofs: (string | Proof)[];
}
interface Signature {
  title: string;
  cause: string;
  advice: string;
  harmless: string;
  kind: string;
  texts: { text: string; seen: string; url: string; note: string }[];
  seen: { basis: string; where: string; by: string; url: string }[];
  proofs: Proof[];
  links: string[];
  related: [id: string, title: string][];
}
interface OnGpu {
  compute_capability: string;
  gpu: string;
  driver: string;
  class: string;
  reason: string;
  median_ms: number | null;
  when: string;
}
interface Cell {
  id: string;
  case: string;
  variant: string;
  target: string;
  class: string;
  stands?: string;
  verdict: string;
  basis: "measured" | "reported" | "listed" | null;
  static?: { state: string };
  not_yet?: { what: string; since: string } | null;
  evidence?: boolean;
  text: string;
  reason: string;
  signature: string | null;
  diagnosis?: Advice;
  precision: { [node: string]: string };
  accuracy: {
    output: string;
    max_abs: number | null;
    max_rel: number | null;
    cosine: number | null;
    shape_matches: boolean;
  }[];
  latency_ms: {
    median: number;
    p95: number;
    n: number;
    low: number | null;
    high: number | null;
    noise: string;
    scope: string;
  } | null;
  phases: { [phase: string]: number };
  claims: number[];
  by_gpu: OnGpu[];
  stamps: string;
  layers: { sha256: string; count: number } | null;
  stale?: boolean;
  chip?: string;
  lost?: string[];
  why?: string[];
  failed_phase?: string;
  engine_bytes?: number;
  errors?: string[];
  notes?: string[];
  log?: string;
  instead?: string[];
  flaky?: string[];
  gpu?: [string, string];
  when?: string;
  by_hand?: string[];
  past?: {
    event: string;
    since: string;
    first_seen: string | null;
    fixed_since: string | null;
    latency: { change: string | null } | null;
  };
}
interface Change {
  case: string;
  variant: string;
  series: string;
  before: string;
  after: string;
  versions: string;
  kind: string;
  better: boolean | null;
  text: string;
}
interface RanOn {
  target: string;
  stamps: { environment: { [key: string]: string } };
}
interface Results {
  targets: TargetFields[];
  cases: Case[];
  cells: Cell[];
  places: number[];
  changes: Change[];
  runs: { id: string; when: string; on: RanOn[] }[];
  submissions: { account: string; gpu: string; commit: string; cells: number }[];
  steps: { details: string[]; variants: RowSteps[] };
  signatures: { [id: string]: Signature };
}
interface Words {
  states: { [state: string]: string };
  marks: { [cls: string]: { state: string; letters: string; shape: string; name: string; meaning: string } };
  kinds: { id: string; name: string; meaning: string }[];
  headlines: [counts: string[], text: string][];
  counted: { [part: string]: { [fact: string]: [one: string, many: string] } };
  generations: { [capability: string]: string };
  roles: { [role: string]: string };
  reading: [string, string][];
  removed: [name: string, first: string, gone: string, signature: string, now: string][];
  ends: { topic: string; name: string; partly?: boolean; signature: string }[];
  further: string[][];
  suites: { [place: string]: string };
  models: { [name: string]: number };
  issues: string;
  home: string;
  errors: any;
  lexicon: any;
}

// Unpacked before anything else runs.
declare const data: Results;
declare const words: Words;

type Attributes = { [name: string]: string | number | boolean | null | undefined };
type Content = Node | string | number | null | undefined | false | Content[];
interface State {
  a: string;
  b: string;
  q: string;
  topic: string;
  state: string;
  all: boolean;
  latency: boolean;
}
interface AnswerLine {
  text: string;
  href: string;
}
interface Answer {
  lines: AnswerLine[];
  step: [string, string] | null;
  columns: string[];
  rows: Row[];
  timed: boolean;
}
interface Query {
  rows: ((row: Row) => boolean)[];
  columns: ((target: Target) => boolean)[];
  cells: ((cell: Cell) => boolean)[];
  best: Row[];
  answer: Answer | null;
  question: string;
}
interface RowChange {
  kind: string;
  detail: string;
  phenomenon: string;
}
interface StepLine {
  kind: string;
  cause: { id: string; title: string } | null;
  instead: string[];
  sure: string;
  sources: string;
  rows: { row: Row; text: string; detail: string; phenomenon: string }[];
}
interface Column {
  targets: Target[];
  folded: boolean;
}

// The functions of the scripts that take or give much.
type HeadlineOf = (
  from: Target,
  to: Target,
  lines: StepLine[],
  troubles: Reported[],
  fits: (row: Row) => boolean,
) => string;
type Finding = (said: any, signature: any, every: any[]) => any;
type Line = (known: any, line: string) => [severity: string, text: string, bare: boolean];
type Make = (tag: string, attributes?: Attributes, ...children: Content[]) => HTMLElement;
type Table = (headings: string[], lines: Content[][], attributes?: Attributes) => Element;
type KindsOf = (row: Row, from: number, to: number) => RowChange[];
type ToRun = (from: Target, to: Target, fits: (row: Row) => boolean) => Element | null;
type Unknown = (said: any, told: Set<string>, findings: any[], known: any) => string[];
type StepLines = (from: Target, to: Target, fits: (row: Row) => boolean) => StepLine[];
type Explaining = (known: any, log: string, version?: string) => Generator<null, any>;
type HitsOf = (known: any, signature: any, texts: any) => Generator<any>;
type Listed = (items: Content[], most?: number, by?: string) => Content;
type PlaceOf = (id: string) => { row: Row; column: number } | undefined;
type Button = (label: Content, act: () => unknown, attributes?: Attributes) => HTMLElement;
type Chapter = (cell: Cell, row: Row, target: Target) => Content[];
type CellPart = (cell: Cell, row: Row, target: Target) => Element;
type Keys<T> = { [key: string]: (one: T, value: string) => boolean };
type Counted = (count: number, one: string, many?: string) => string;

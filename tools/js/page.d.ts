// What the report's page is given by harness/report/page, and what its scripts pass to one another.

interface Chunk { packed: string }

interface Target {
  index: number; id: string; label: string; family: string; series: string; version: string; short: string;
  engine: string; run: boolean; needs: string; gpu: string; baseline: boolean; commands: string[];
  name: string; facts: [name: string, text: string][]; sources: { url: string; title: string }[];
}
interface Case { name: string; title: string; summary: string; links: { url: string; title: string }[] }
interface RowFields {
  name: string; title: string; role: string; role_name: string; counterpart: string | null; tags: string[];
  spans: Span[]; changes: [number, number][];
}
interface Row extends RowFields { index: number; case: Case; full: string; wanted: { node: string; want: string; op: string }[] }
interface Span { series: string; text: string }
interface Fold { rows: number[]; name: string; said: string }
type Line = number | Fold;
interface Look {
  cls: string; bucket: string; letters: string; classes: string; corner: string; under: string; chip: string;
  words: string; said: string; nodes: [ran: string, kept: boolean][]; states: string[]; signature: string | null;
  ran: string[]; measured: boolean; past: string[]; known: string; grade: string; bad: number; good: boolean; fails: boolean;
}
interface Time { row: number; column: number; median: number; stack: number; noisy: number }
// Unpacked before anything else runs.
declare const data: PageData;
interface PageData {
  targets: Omit<Target, "index">[]; pair: [string, string]; series: number[][]; cases: Case[];
  rows: (RowFields & { case: number; wanted: [node: string, want: string, op: string][] })[]; folds: Fold[]; looks: Look[]; grid: number[][]; times: Time[];
  marks: { [cls: string]: { letters: string; shape: string; name: string } };
  kinds: { id: string; name: string; meaning: string }[];
  replaced: { [signature: string]: [old: string, now: string, url: string][] };
  patterns: { [kind: string]: [mark: string, path: string] };
  query: { states: string[]; pasts: string[]; precisions: string[]; engines: { [key: string]: string } };
  errors: Chunk; issues: string; home: string; called: CalledBy[]; rowsOfSteps: Chunk; choices: string[]; to: number[][]; steps: Chunk;
}
interface Behind { evidence: (Chunk & { rows: number[] })[]; models: Chunk }

// What pasted text is recognised by, and what was said in it, by place.
interface CalledBy { pattern: string; said: string; columns: number[] }
interface Called extends CalledBy { words: RegExp }

interface StepLine { kind: string; row: number; text: string; cause: string; instead: string; sure: string; seen: string; signature: string }
interface PackedLine { kind: string; text: number; cause: number; instead: number; sure: number; seen: number; signature: number }
interface Step {
  headline: string; basis: string; quiet: string;
  tiles: { kind: string; label: string; number: string }[]; rows: StepLine[];
  crossed: { row: number; node: string; before: string; after: string }[]; changes: { row: number; said: string }[];
  troubles?: [id: string, title: string, seen: string, advice: string][];
  choice?: string[];
}
interface Against { column: number; said(row: number, column: number): string }

interface Evidence { variant: Variant; cells: Cell[] }
interface Variant {
  name: string; wanted?: [node: string, want: string][]; recipe: string; hashes: [string, string][]; file: string; onnx?: [start: number, length: number][];
  expectations: { says: string; how: string; url?: string; source?: string; where?: string; note?: string }[]; tags?: string[]; graph?: Graph;
}
interface Cell {
  class: string; state: string; reason?: string; sentence?: string; expectation: number | null; claims?: number[];
  meanwhile?: string; diagnosis?: Diagnosis; notes?: string[]; phases?: [string, number][]; failedPhase?: string;
  missingApi?: string; end?: string; peakRss?: number; error?: string; parserErrors?: (string | null)[][];
  messages?: [severity: string, text: string][]; messagesLeftOut?: number; native?: string; log?: string;
  precision?: Ran[]; layers?: Layer[]; layerSource?: string; unparsedLayers?: number; engineBytes?: number;
  accuracy?: [string, Figure, Figure, Figure, number, boolean][]; latency?: Latency; stamps?: [string, string][];
  past?: Past; command?: string; script?: [head: string, body: string]; byHand?: string[]; byGpu?: OnGpu[];
}
interface OnGpu {
  gpu: string; driver: string; cls: string; name: string; verdict: string; said: string; median: number | null; when: string;
}
type Figure = number | string;
interface Ran { node: string; kind: string; lost: boolean }
interface Diagnosis { id: string; title: string; cause: string; advice: string; proofs: string[]; links: string[] }
type Use = [name: string, text: string];
interface Layer {
  name: string; type: string; precision: string; inputs: Use[]; weights: Use[]; outputs: Use[]; tactic: string;
  nodes: string[]; time: number | null;
}
interface Latency {
  median: number; p95: number; count: number; samples: number[]; warmup: number; clock: string; spread: number;
  noise: string; scope: string; upload: number | null; sensors: [string, string, string][];
}
interface Past {
  said: string[]; strip?: [when: string, cls: string, elsewhere: number][]; medians?: [when: string, value: number][];
  changes?: string[];
}
type Lane = [first: number, last: number, across: number];
interface Graph {
  tensors: [name: string, type: string][]; nodes: GraphNode[]; wires: Wire[];
  ends: { tensor: number; rank: number; across: number }[];
}
interface GraphNode { name: string; op: string; constants: number[]; rank: number; across: number }
interface Wire { tensor: number; source: number; sink: number; port: number; ports: number; lanes: Lane[] }
interface Where { (item: number): { x: number; top: number; bottom: number }; x(across: number): number; span(rank: number): number[] }
interface Side { name: string; baseline: boolean; cell: Cell; state: Element }

type Content = Node | string | null | undefined | false | Content[];
type Attributes = { [name: string]: string | number | boolean | null | undefined };
type LookTest = (look: Look) => boolean;
interface Query {
  rows: ((row: Row) => boolean)[]; columns: ((target: Target) => boolean)[]; cells: LookTest[]; none: LookTest[];
  sequences: [states: string[], not: boolean][]; named: boolean;
}
interface State { [key: string]: string; a: string; b: string; q: string; state: string; hide: string; only: string; metric: string; cell: string; vs: string; cols: string }
interface Filter {
  query: Query; hide: string[]; state: string; differs: boolean; measured: boolean; pair: [number, number] | null; cols: string[];
}

// What a selector finds in the page's own markup is what the script takes it for.
interface ParentNode { querySelector(selectors: string): any; querySelectorAll(selectors: string): NodeListOf<any> }
interface Element { closest(selectors: string): any }
interface EventTarget { closest?(selectors: string): any }

// The question to the engine and its answer: crates/playground/src/inputs.rs and answer.rs.

export type InputName = "definitions" | "old" | "new";

export type Way = "replace" | "merge" | "csa" | "ssa";

export type Question = Record<InputName, string> & {
  way: Way;
  /** The position of the object whose details are shown. Without it, the engine chooses. */
  object?: number;
};

export interface Problem {
  input: InputName;
  /** Counted from 1, as is the column. */
  line: number | null;
  column: number | null;
  severity: "error" | "warning" | "note";
  message: string;
}

/** A place in an input. Line and column are counted from 1. */
export interface Place {
  input: InputName;
  line: number;
  column: number;
}

export interface Answer {
  problems: Problem[];
  /** False if the text of an input cannot be read: perhaps a line is half written. */
  isReadable: boolean;
  summary: { today: VerdictLine; withKubeUnions: VerdictLine };
  /** The objects, if there are several. */
  objects: JudgedObject[];
  /** The position of the object that the details are about. */
  object: number | null;
  today: Verdict;
  /** The verdict with kube-unions. */
  verdict: Verdict;
  unions: { kind: string; api_version: string; unions: Union[] }[];
  /** The object after an apply, as YAML. Null if the new object is written as it is. */
  applied: string | null;
  normalized: { text: string; changes: { path: string; reason: string; place: Place | null }[]; rewritten: boolean } | null;
  jsonPatch: string | null;
  strategicPatch: { patch: string } | { error: string } | null;
  policies: { yaml: string; refusals: string[] } | null;
}

export interface Union {
  path: string;
  details: string[];
  choices: { value: string | null; members: { name: string; optional: boolean }[] }[];
}

export type Outcome = "allowed" | "notJudged" | "storedInvalid" | "undecided" | "denied";

export interface VerdictLine {
  outcome: Outcome;
  headline: string;
}

export interface JudgedObject {
  title: string;
  line: number | null;
  today: Outcome;
  withKubeUnions: Outcome;
  reason: string | null;
}

export interface Verdict extends VerdictLine {
  isUpdate: boolean;
  message: string | null;
  causes: { path: string; message: string; place: Place | null; help: string | null }[];
  warnings: string[];
  audit: string[];
}

export const INPUTS: readonly InputName[] = ["definitions", "old", "new"];

export const TITLES: Record<InputName, string> = { definitions: "definitions", old: "old object", new: "new object" };

const WAYS: readonly string[] = ["replace", "merge", "csa", "ssa"] satisfies Way[];

/** Returns a question that was stored or sent, undefined if it is none. A link of an older release has no way. */
export function questionOf(value: unknown): Question | undefined {
  const given = value as Partial<Record<string, unknown>> | null;
  const way = given?.["way"] ?? "replace";
  if (INPUTS.some((name) => typeof given?.[name] !== "string") || typeof way !== "string" || !WAYS.includes(way)) return undefined;
  return { definitions: given?.["definitions"], old: given?.["old"], new: given?.["new"], way } as Question;
}

export function isSame(one: Question, other: Question): boolean {
  return one.way === other.way && INPUTS.every((name) => one[name] === other[name]);
}

// The question to the engine and its answer: crates/playground/src/question.rs.

export type InputName = "definitions" | "old" | "new";

export type Question = Record<InputName, string>;

export interface Problem {
  input: InputName;
  /** Counted from 1, as is the column. */
  line: number | null;
  column: number | null;
  severity: "error" | "warning" | "note";
  message: string;
}

export interface Answer {
  problems: Problem[];
  unions: { kind: string; api_version: string; unions: Union[] }[];
  normalized: { text: string; changes: { path: string; reason: string; line: number | null }[]; rewritten: boolean } | null;
  verdict: Verdict | null;
  jsonPatch: string | null;
  strategicPatch: { patch: string } | { error: string } | null;
  policies: { yaml: string; refusals: string[] } | null;
}

export interface Union {
  path: string;
  details: string[];
  choices: { value: string | null; members: { name: string; optional: boolean }[] }[];
}

export interface Verdict {
  operation: "create" | "update";
  allowed: boolean;
  message: string | null;
  causes: { path: string; message: string; line: number | null; column: number | null }[];
  warnings: string[];
  audit: string[];
}

export const INPUTS: readonly InputName[] = ["definitions", "old", "new"];

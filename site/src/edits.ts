// The edits of the reader, which survive a reload. They stay in this browser.

import { questionOf, type Question } from "./answer.js";

const KEY = "kube-unions-edits";

export interface Edits {
  /** The fragment of the address that the edits began at. */
  fragment: string;
  question: Question;
}

/** Keeps edits. Returns false if this browser does not. */
export function keep(edits: Edits): boolean {
  try {
    localStorage.setItem(KEY, JSON.stringify(edits));
    return true;
  } catch {
    // Storage is refused in some private windows, and the texts may be larger than it.
    return false;
  }
}

/** Forgets the edits of a fragment. Those of another one may be in another tab. Returns false if this browser keeps nothing. */
export function forget(fragment: string): boolean {
  try {
    if (kept()?.fragment === fragment) localStorage.removeItem(KEY);
    return localStorage.length >= 0;
  } catch {
    return false;
  }
}

/** Returns the edits that were kept, undefined for none and for those of another release. */
export function kept(): Edits | undefined {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "null") as { fragment?: unknown; question?: unknown } | null;
    const question = questionOf(stored?.question);
    return question && typeof stored?.fragment === "string" ? { fragment: stored.fragment, question } : undefined;
  } catch {
    return undefined;
  }
}

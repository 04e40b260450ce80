// The edits of the reader, which survive a reload. They stay in this browser.

import { questionOf, type Question } from "./answer.js";

const KEY = "kube-unions-edits";

export interface Edits {
  /** The fragment of the address that the edits began at. */
  fragment: string;
  question: Question;
}

/** Keeps edits, and forgets them for undefined. Returns false if this browser does not keep them. */
export function keep(edits: Edits | undefined): boolean {
  try {
    if (edits) localStorage.setItem(KEY, JSON.stringify(edits));
    else localStorage.removeItem(KEY);
    return true;
  } catch {
    // Storage is refused in some private windows, and the texts may be larger than it.
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

// Shows an answer. Texts of the engine become text nodes, never HTML.

import type { Answer, InputName, Problem, Question, Union, Verdict } from "./answer.js";
import { Viewer } from "./editor.js";

type Jump = (input: InputName, line: number, column: number) => void;

const TITLES: Record<InputName, string> = { definitions: "definitions", old: "old object", new: "new object" };

export class Results {
  private readonly normalized = new Viewer(element("normalized"), "Normalised object");
  private readonly policies = new Viewer(element("policies"), "Compiled policies");
  private readonly jsonPatch = new Viewer(element("json-patch"), "JSON Patch");
  private readonly strategicPatch = new Viewer(element("strategic-patch"), "Strategic merge patch");

  constructor(private readonly jump: Jump) {}

  show(answer: Answer, question: Question): void {
    this.showProblems(answer.problems);
    this.showVerdict(answer.verdict);
    const changes = answer.normalized?.changes ?? [];
    list("changes", changes.map((change) => this.place("new", change.line, 1, `${change.path}: ${change.reason}`)));
    text("normalized-note", normalizedNote(answer));
    if (answer.normalized && answer.normalized.text !== question.new) this.normalized.compare(question.new, answer.normalized.text);
    else this.normalized.show(answer.normalized?.text ?? "");
    element("unions").replaceChildren(...answer.unions.map(kind));
    text("unions-note", answer.unions.length === 0 ? "The definitions declare no unions." : "");
    this.jsonPatch.show(answer.jsonPatch ?? "");
    text("json-patch-note", answer.jsonPatch ? "" : answer.jsonPatch === "" ? "The webhook changes nothing." : "No new object.");
    const patch = answer.strategicPatch;
    this.strategicPatch.show(patch && "patch" in patch ? patch.patch : "");
    text("strategic-patch-note", patch ? ("error" in patch ? patch.error : "") : "Give an old and a new object of a known kind.");
    this.policies.show(answer.policies?.yaml ?? "");
    list("refusals", (answer.policies?.refusals ?? []).map((refusal) => item(refusal)));
    text("policies-note", answer.policies ? "" : "No unions to compile.");
  }

  private showProblems(problems: Problem[]): void {
    list("problems", problems.map((problem) => {
      const { input, line, column, severity, message } = problem;
      const place = line === null ? TITLES[input] : `${TITLES[input]}:${line}:${column}`;
      const found = this.place(input, line, column ?? 1, `${place}: ${severity}: ${message}`);
      found.className = severity;
      return found;
    }));
    element("problems-panel").hidden = problems.length === 0;
  }

  private showVerdict(verdict: Verdict | null): void {
    const output = element("verdict");
    output.className = verdict ? (verdict.allowed ? "allowed" : "denied") : "";
    if (!verdict) output.textContent = "Give a new object to see the verdict.";
    else if (verdict.allowed) output.textContent = `Allowed: the API server stores the object (${verdict.operation}).`;
    else output.textContent = `Denied: ${verdict.message ?? ""}`;
    const causes = verdict?.causes ?? [];
    list("causes", causes.map((cause) => this.place("new", cause.line, cause.column ?? 1, `${cause.path}: ${cause.message}`)));
    list("warnings", (verdict?.warnings ?? []).map((warning) => item(`Warning: ${warning}`)));
    list("audit", (verdict?.audit ?? []).map((violation) => item(`Audit: ${violation}`)));
  }

  /** An item of a list that leads to a line of an input. */
  private place(input: InputName, line: number | null, column: number, label: string): HTMLLIElement {
    if (line === null) return item(label);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "place";
    button.textContent = label;
    button.addEventListener("click", () => this.jump(input, line, column));
    const found = document.createElement("li");
    found.append(button);
    return found;
  }
}

function normalizedNote(answer: Answer): string {
  const { normalized, verdict } = answer;
  if (!normalized) return "No new object.";
  const lost = normalized.rewritten ? " Comments are lost: anchors reach the changed fields." : "";
  if (normalized.changes.length === 0) return "Unchanged.";
  return (verdict?.allowed === false ? "Changed before it is denied." : "Changed.") + lost;
}

function kind({ kind, api_version, unions }: Answer["unions"][number]): HTMLElement {
  const branch = tree(kind, api_version);
  const inner = document.createElement("ul");
  inner.append(...unions.map(union));
  branch.append(inner);
  return wrap(branch);
}

function union({ path, details, choices }: Union): HTMLElement {
  const branch = tree(path || "(the object)", details.join(", "));
  const inner = document.createElement("ul");
  inner.append(...choices.map(({ value, members }) => {
    const names = members.map(({ name, optional }) => optional ? `${name} (optional)` : name);
    const selected = names.join(", ") || "no member";
    return item(value === null ? selected : `${value || '""'} → ${selected}`);
  }));
  branch.append(inner);
  return wrap(branch);
}

/** A branch that the reader can close, with the keyboard too. */
function tree(title: string, details: string): HTMLDetailsElement {
  const branch = document.createElement("details");
  branch.open = true;
  const summary = document.createElement("summary");
  const strong = document.createElement("strong");
  strong.textContent = title;
  const faint = document.createElement("span");
  faint.className = "faint";
  faint.textContent = ` ${details}`;
  summary.append(strong, faint);
  branch.append(summary);
  return branch;
}

function wrap(branch: HTMLElement): HTMLLIElement {
  const found = document.createElement("li");
  found.append(branch);
  return found;
}

function item(label: string): HTMLLIElement {
  const found = document.createElement("li");
  found.textContent = label;
  return found;
}

function list(id: string, items: HTMLElement[]): void {
  const found = element(id);
  found.replaceChildren(...items);
  found.hidden = items.length === 0;
}

function text(id: string, content: string): void {
  const found = element(id);
  found.textContent = content;
  found.hidden = content === "";
}

export function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element "${id}"`);
  return found;
}

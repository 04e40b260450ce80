// Shows an answer. Texts of the engine become text nodes, never HTML.

import { TITLES, type Answer, type JudgedObject, type Outcome, type Place, type Problem, type Question, type Union, type Verdict, type VerdictLine } from "./answer.js";
import { commands } from "./commands.js";
import { Viewer } from "./editor.js";
import { element, outputs } from "./page.js";

type Jump = (place: Place) => void;

/** Asks for the details of an object. */
type Choose = (object: number) => void;

/** The words of an outcome in the list of objects. */
const OUTCOMES: Record<Outcome, string> = {
  allowed: "allowed",
  notJudged: "not judged",
  storedInvalid: "stored, though invalid",
  undecided: "perhaps denied",
  denied: "denied",
};

export class Results {
  private readonly applied = new Viewer(element("applied"), "Object after the write");
  private readonly normalized = new Viewer(element("normalized"), "Normalised object");
  private readonly policies = new Viewer(element("policies"), "Compiled policies");
  private readonly jsonPatch = new Viewer(element("json-patch"), "JSON Patch");
  private readonly strategicPatch = new Viewer(element("strategic-patch"), "Strategic merge patch");
  private isShown = false;

  constructor(
    private readonly jump: Jump,
    private readonly choose: Choose,
  ) {
    const viewers: Record<string, Viewer> = {
      applied: this.applied,
      normalized: this.normalized,
      policies: this.policies,
      "json-patch": this.jsonPatch,
      "strategic-patch": this.strategicPatch,
    };
    for (const panel of document.querySelectorAll<HTMLElement>("[data-file]")) {
      const heading = panel.querySelector("h2");
      const viewer = viewers[panel.id.replace(/-panel$/, "")];
      const text = () => viewer?.text || panelText(panel);
      heading?.after(outputs(heading.textContent, panel.dataset["file"] ?? "", text));
      const command = document.createElement("p");
      command.className = "command";
      command.hidden = true;
      command.append(document.createElement("code"));
      panel.append(command);
    }
  }

  show(answer: Answer, question: Question): void {
    this.showProblems(answer.problems);
    bar("today", answer.summary.today);
    bar("verdict", answer.summary.withKubeUnions);
    this.showObjects(answer.objects, answer.object);
    this.showVerdict("today-", answer.today);
    this.showVerdict("", answer.verdict);
    // While a line is half written, the last results stay, dimmed.
    const isStale = !answer.isReadable && this.isShown;
    document.body.toggleAttribute("data-stale", isStale);
    element("stale").hidden = !isStale;
    if (isStale) return;
    this.isShown = true;
    for (const [panel, command] of Object.entries(commands(question, answer.applied !== null))) {
      const line = element(panel).querySelector<HTMLElement>(".command");
      if (!line?.firstElementChild) continue;
      line.firstElementChild.textContent = command;
      line.hidden = false;
    }
    const before = answer.applied ?? question.new;
    this.applied.show(answer.applied ?? "");
    element("applied-panel").hidden = answer.applied === null;
    const changes = answer.normalized?.changes ?? [];
    list("changes", changes.map((change) => this.place(change.place, `${change.path}: ${change.reason}`)));
    text("normalized-note", normalizedNote(answer));
    if (answer.normalized && answer.normalized.text !== before) this.normalized.compare(before, answer.normalized.text);
    else this.normalized.show(answer.normalized?.text ?? "");
    element("unions").replaceChildren(...answer.unions.map(kind));
    text("unions-note", answer.unions.length === 0 ? "The definitions declare no unions that are in force." : "");
    this.jsonPatch.show(answer.jsonPatch ?? "");
    text("json-patch-note", answer.jsonPatch ? "" : answer.jsonPatch === "" ? "The webhook changes nothing." : "No new object.");
    const patch = answer.strategicPatch;
    this.strategicPatch.show(patch && "patch" in patch ? patch.patch : "");
    text("strategic-patch-note", patch ? ("error" in patch ? patch.error : "") : "Give an old and a new object of a known kind.");
    this.policies.show(answer.policies?.yaml ?? "");
    list("refusals", (answer.policies?.refusals ?? []).map((refusal) => item(refusal)));
    text("policies-note", answer.policies ? "" : "No unions to compile.");
    for (const panel of document.querySelectorAll<HTMLElement>("[data-file]")) {
      const viewer = panel.querySelector<HTMLElement>(".viewer:not([hidden])");
      panel.classList.toggle("empty", !viewer && panelText(panel) === "");
    }
  }

  /** Shows that the engine does not run. */
  fail(message: string): void {
    for (const name of ["today", "verdict"]) bar(name, { outcome: "notJudged", headline: `Not judged: ${message}` });
  }

  private showProblems(problems: Problem[]): void {
    list("problems", problems.map((problem) => {
      const { input, line, column, severity, message } = problem;
      const place = line === null ? TITLES[input] : `${TITLES[input]}:${line}:${column}`;
      const found = this.place(line === null ? null : { input, line, column: column ?? 1 }, `${place}: ${severity}: ${message}`);
      found.className = severity;
      return found;
    }));
    element("problems-panel").hidden = problems.length === 0;
  }

  /** Shows the objects of a rendering, each with both verdicts. */
  private showObjects(objects: JudgedObject[], chosen: number | null): void {
    list("objects", objects.map(({ title, today, withKubeUnions, reason }, position) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "place";
      button.textContent = title;
      button.setAttribute("aria-pressed", String(position === chosen));
      button.addEventListener("click", () => this.choose(position));
      const found = document.createElement("li");
      found.append(button, ...(reason === null ? [": ", outcome("today", today), ", ", outcome("with kube-unions", withKubeUnions)] : [`: ${reason}`]));
      return found;
    }));
    element("objects-panel").hidden = objects.length === 0;
  }

  private showVerdict(prefix: string, { headline, causes, warnings, audit }: Verdict): void {
    text(`${prefix}headline`, headline);
    list(`${prefix}causes`, causes.map(({ path, message, place, help }) => {
      const found = this.place(place, `${path}: ${message}`);
      if (help) {
        const link = document.createElement("a");
        link.href = `../${help}`;
        link.textContent = "Help";
        link.setAttribute("aria-label", `Help: ${message}`);
        found.append(" ", link);
      }
      return found;
    }));
    list(`${prefix}warnings`, warnings.map((warning) => item(`Warning: ${warning}`)));
    list(`${prefix}audit`, audit.map((violation) => item(`Audit: ${violation}`)));
  }

  /** An item of a list that leads to a line of an input. */
  private place(place: Place | null, label: string): HTMLLIElement {
    if (place === null) return item(label);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "place";
    button.textContent = label;
    button.addEventListener("click", () => this.jump(place));
    const found = document.createElement("li");
    found.append(button);
    return found;
  }
}

/** Shows the verdict of a cluster on all objects. */
function bar(name: string, { outcome, headline }: VerdictLine): void {
  const output = element(name);
  // A reader hears only what changes.
  if (output.textContent !== headline) output.textContent = headline;
  element(`${name}-bar`).className = outcome;
}

function outcome(cluster: string, outcome: Outcome): HTMLElement {
  const found = document.createElement("span");
  found.className = outcome;
  found.textContent = `${cluster} ${OUTCOMES[outcome]}`;
  return found;
}

/** Returns the result of a panel as text, a line for each item. */
function panelText(panel: HTMLElement): string {
  const headline = panel.querySelector(".headline");
  const verdict = headline ? [headline.textContent] : [];
  const items = [...panel.querySelectorAll<HTMLElement>("li, summary")].filter((found) => !found.querySelector("summary"));
  const lines = items.map((found) => `${"  ".repeat(depth(found, panel))}${found.textContent}`);
  return [...verdict, ...lines].map((line) => `${line}\n`).join("");
}

function depth(found: Element, panel: HTMLElement): number {
  let level = -1;
  for (let at: Element | null = found; at && at !== panel; at = at.parentElement) level += Number(at.matches("ul"));
  return Math.max(level, 0);
}

function normalizedNote(answer: Answer): string {
  const { normalized, verdict } = answer;
  if (!normalized) return "No new object.";
  const lost = normalized.rewritten ? " Comments are lost: anchors reach the changed fields." : "";
  if (normalized.changes.length === 0) return "Unchanged.";
  return (verdict.outcome === "denied" ? "Changed before it is denied." : "Changed.") + lost;
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

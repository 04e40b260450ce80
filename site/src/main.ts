// The playground: three inputs, and everything that kube-unions makes of them.

import { INPUTS, TITLES, isSame, questionOf, type Answer, type InputName, type Question, type Way } from "./answer.js";
import { forget, keep, kept } from "./edits.js";
import { Editor } from "./editor.js";
import { Engine } from "./engine.js";
import { copy, element, outputs, reason, say } from "./page.js";
import { Results } from "./results.js";
import { decode, encode } from "./state.js";
import { Tabs } from "./tabs.js";
import { followTheme } from "./theme.js";

interface Sample extends Question {
  id: string;
  group: string;
  title: string;
}

/** Milliseconds without a key before the engine is asked. */
const PAUSE = 120;

const SAMPLE = "sample=";

const EMPTY: Question = { definitions: "", old: "", new: "", way: "replace" };

/** The sample without inputs, to begin with one's own. */
const OWN: Sample = { id: "empty", group: "Your own", title: "Empty: your own objects", ...EMPTY };

const samples = element("sample") as HTMLSelectElement;
const way = element("way") as HTMLSelectElement;
const tabs = new Tabs((name) => editors?.[name].view.requestMeasure());
const results = new Results(({ input, line, column }) => {
  tabs.show(input);
  editors[input].goTo(line, column);
}, (object) => {
  chosen = object;
  changed();
});
const engine = new Engine({ onBusy, onAnswer, onFailure });
const editors: Record<InputName, Editor> = {
  definitions: new Editor(element("definitions"), "Definitions: CRDs and UnionDeclarations", changed),
  old: new Editor(element("old"), "Old object", changed),
  new: new Editor(element("new"), "New object", changed),
};

let known: Sample[] = [];
/** The object of a rendering whose details the reader asked for. */
let chosen: number | undefined;
let pause: ReturnType<typeof setTimeout> | undefined;
/** The inputs of the fragment, before any edit. */
let loaded: Question = EMPTY;

function changed(): void {
  clearTimeout(pause);
  pause = setTimeout(() => {
    engine.ask(chosen === undefined ? inputs() : { ...inputs(), object: chosen });
    keepEdits();
  }, PAUSE);
}

function keepEdits(): void {
  const question = inputs();
  const isEdited = !isSame(question, loaded);
  const isKept = isEdited ? keep({ fragment: location.hash, question }) : forget(location.hash);
  document.body.toggleAttribute("data-edited", isEdited);
  (element("reset") as HTMLButtonElement).disabled = !isEdited;
  element("kept").textContent = isKept
    ? "Nothing that you type leaves your browser: edits are kept in its local storage until you reset them."
    : "Nothing that you type leaves your browser, and this browser does not keep it either: before you reload, download your inputs or copy a link.";
}

function inputs(): Question {
  const [definitions, old, object] = INPUTS.map((name) => editors[name].text) as [string, string, string];
  return { definitions, old, new: object, way: way.value as Way };
}

function load(question: Question): void {
  for (const name of INPUTS) if (editors[name].text !== question[name]) editors[name].text = question[name];
  way.value = question.way;
  chosen = undefined;
  changed();
}

function onBusy(): void {
  document.body.dataset["state"] = "busy";
}

function onAnswer(answer: Answer, question: Question): void {
  results.show(answer, question);
  for (const name of INPUTS) {
    const problems = answer.problems.filter((problem) => problem.input === name);
    if (editors[name].text === question[name]) editors[name].mark(problems);
    const worst = ["error", "warning"].find((severity) => problems.some((problem) => problem.severity === severity));
    element(`tab-${name}`).dataset["problems"] = worst ?? "";
    element(`tab-${name}`).title = worst ? `${problems.length} in the ${TITLES[name]}: see Problems` : "";
  }
  document.body.dataset["state"] = "ready";
  document.body.dataset["answers"] = String(Number(document.body.dataset["answers"] ?? 0) + 1);
}

function onFailure(message: string): void {
  document.body.dataset["state"] = "failed";
  results.fail(message);
}

/** Goes to a fragment. The edits of the entry that is left stay with it. */
function go(fragment: string): void {
  try {
    history.replaceState(isSame(inputs(), loaded) ? null : inputs(), "");
  } catch {
    // The texts are larger than an entry of the history.
  }
  history.pushState(null, "", fragment);
}

async function share(): Promise<void> {
  try {
    const fragment = `#${await encode(inputs())}`;
    if (fragment !== location.hash) go(fragment);
  } catch (error) {
    say(reason(error));
    return;
  }
  loaded = inputs();
  samples.value = "";
  keepEdits();
  await copy(location.href, "a link. The inputs are in the link itself");
}

/** Reads the fragment, and puts edits over its inputs. */
async function readFragment(edits: Question | undefined): Promise<void> {
  const fragment = location.hash.slice(1);
  samples.value = "";
  try {
    loaded = fragment === "" || fragment.startsWith(SAMPLE) ? pick(fragment.slice(SAMPLE.length)) : await decode(fragment);
    say("");
  } catch (error) {
    say(reason(error));
    loaded = known[0] ?? EMPTY;
    samples.value = known[0]?.id ?? "";
  }
  load(edits ?? loaded);
}

function pick(id: string): Question {
  if (known.length === 0) throw new Error("the samples could not be loaded: reload the page, or paste your own definitions and objects");
  const sample = id === "" ? known[0] : known.find((sample) => sample.id === id);
  if (!sample) throw new Error("there is no such sample in this release: pick one from the list");
  samples.value = sample.id;
  return sample;
}

function offer(): void {
  const own = new Option("Own inputs", "");
  own.hidden = true;
  samples.append(own);
  for (const group of new Set(known.map((sample) => sample.group))) {
    const parent = document.createElement("optgroup");
    parent.label = group;
    parent.append(...known.filter((sample) => sample.group === group).map(({ id, title }) => new Option(title, id)));
    samples.append(parent);
  }
  samples.addEventListener("change", () => {
    go(`#${SAMPLE}${samples.value}`);
    void readFragment(undefined);
  });
}

async function start(): Promise<void> {
  followTheme(element("theme") as HTMLSelectElement);
  tabs.show("new");
  for (const name of INPUTS) element(`panel-${name}`).prepend(outputs(TITLES[name], `${name}.yaml`, () => editors[name].text));
  way.addEventListener("change", changed);
  element("share").addEventListener("click", () => void share());
  element("reset").addEventListener("click", () => load(loaded));
  window.addEventListener("popstate", ({ state }) => void readFragment(questionOf(state)));
  try {
    const response = await fetch(new URL("samples.json", import.meta.url));
    if (!response.ok) throw new Error(`status ${response.status}`);
    known = [...((await response.json()) as Sample[]), OWN];
  } catch {
    // Without samples, the page has empty inputs, and says so.
  }
  offer();
  const edits = kept();
  if (location.hash === "" && edits) history.replaceState(null, "", edits.fragment);
  await readFragment(edits?.fragment === location.hash ? edits.question : undefined);
}

if (typeof WebAssembly === "undefined") {
  onFailure("this browser has no WebAssembly, which the engine needs: allow it for this page, use another browser, or the command line");
  say("");
} else {
  start().catch((error: unknown) => onFailure(`${reason(error)}: reload the page, or use the command line`));
}

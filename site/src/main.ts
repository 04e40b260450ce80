// The playground: three inputs, and everything that kube-unions makes of them.

import { INPUTS, type Answer, type InputName, type Question } from "./answer.js";
import { Editor } from "./editor.js";
import { Engine } from "./engine.js";
import { Results, element } from "./results.js";
import { decode, encode } from "./state.js";
import { followTheme } from "./theme.js";

interface Sample extends Question {
  group: string;
  name: string;
}

/** Milliseconds without a key before the engine is asked. */
const PAUSE = 120;

const SAMPLE = "sample=";

const status = element("status");
const samples = element("sample") as HTMLSelectElement;
const results = new Results((input, line, column) => editors[input].goTo(line, column));
const engine = new Engine({ onBusy, onAnswer, onFailure });
const editors: Record<InputName, Editor> = {
  definitions: new Editor(element("definitions"), "Definitions: CRDs and UnionDeclarations", changed),
  old: new Editor(element("old"), "Old object", changed),
  new: new Editor(element("new"), "New object", changed),
};

let known: Sample[] = [];
let pause: ReturnType<typeof setTimeout> | undefined;
/** The fragment that the page wrote itself. */
let written = "";

function changed(): void {
  clearTimeout(pause);
  pause = setTimeout(() => engine.ask(inputs()), PAUSE);
}

function inputs(): Question {
  return Object.fromEntries(INPUTS.map((name) => [name, editors[name].text])) as Question;
}

function load(question: Question): void {
  for (const name of INPUTS) editors[name].text = question[name];
}

function onBusy(): void {
  document.body.dataset["state"] = "busy";
}

function onAnswer(answer: Answer, question: Question): void {
  results.show(answer, question);
  for (const name of INPUTS) {
    if (editors[name].text === question[name]) editors[name].mark(answer.problems.filter((problem) => problem.input === name));
  }
  document.body.dataset["state"] = "ready";
  document.body.dataset["answers"] = String(Number(document.body.dataset["answers"] ?? 0) + 1);
}

function onFailure(message: string): void {
  document.body.dataset["state"] = "failed";
  say(message);
}

function say(message: string): void {
  status.textContent = message;
}

async function share(): Promise<void> {
  try {
    written = await encode(inputs());
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    return;
  }
  history.replaceState(null, "", `#${written}`);
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied. The inputs are in the link itself.");
  } catch {
    say("The link is in the address bar. The inputs are in the link itself.");
  }
}

async function readFragment(): Promise<void> {
  const fragment = location.hash.slice(1);
  if (fragment !== "" && fragment === written) return;
  try {
    if (fragment === "") pick(known[0]);
    else if (fragment.startsWith(SAMPLE)) pick(known.find(({ group, name }) => `${SAMPLE}${group}/${name}` === fragment));
    else load(await decode(fragment));
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    if (INPUTS.every((name) => editors[name].text === "")) pick(known[0]);
  }
}

function pick(sample: Sample | undefined): void {
  if (!sample) throw new Error("there is no such sample: pick one from the list");
  samples.value = `${sample.group}/${sample.name}`;
  load(sample);
}

function offer(): void {
  const groups = new Map<string, HTMLOptGroupElement>();
  for (const { group, name } of known) {
    let parent = groups.get(group);
    if (!parent) {
      parent = document.createElement("optgroup");
      parent.label = group;
      groups.set(group, parent);
    }
    parent.append(new Option(`${group}: ${name.replaceAll("-", " ")}`, `${group}/${name}`));
  }
  samples.replaceChildren(...groups.values());
  samples.addEventListener("change", () => {
    history.replaceState(null, "", `#${SAMPLE}${samples.value}`);
    void readFragment();
  });
}

async function start(): Promise<void> {
  followTheme(element("theme") as HTMLSelectElement);
  element("share").addEventListener("click", () => void share());
  window.addEventListener("hashchange", () => void readFragment());
  const response = await fetch(new URL("samples.json", import.meta.url));
  if (!response.ok) throw new Error(`the samples cannot be loaded: ${response.status}`);
  known = (await response.json()) as Sample[];
  offer();
  await readFragment();
}

start().catch((error: unknown) => onFailure(error instanceof Error ? error.message : String(error)));

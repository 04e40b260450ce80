// The playground as a reader uses it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { answered, answers, browser, paste, photograph, site, textOf } from "./browser.mjs";

const { context, playground } = browser();

const ROLLOUT = `apiVersion: samples.kube-unions.dev/v1
kind: Rollout
metadata:
  name: web
spec:
  strategy:
    type: Canary
`;

test("the first sample shows every result, and nothing is loaded from elsewhere", async () => {
  const { page, faults, origin } = await playground();
  assert.equal(await page.textContent("#verdict"), "Allowed: the API server stores the object (update).");
  assert.equal(await page.textContent("#changes"), 'spec.strategy.blueGreen: cleared because `type` changed to "Canary"');
  assert.equal(await page.textContent("#warnings"), 'Warning: spec.strategy.blueGreen: cleared because `type` changed to "Canary"');
  const removed = await page.locator("#normalized .cm-deletedChunk").allTextContents();
  assert.deepEqual(removed.map((text) => text.trim()), ["blueGreen:      previewService: web-preview"]);
  const choices = await page.locator("#unions ul ul li").allTextContents();
  assert.deepEqual(choices, ["BlueGreen → blueGreen", "Canary → canary", "Recreate → no member", "RollingUpdate → rollingUpdate (optional)"]);
  assert.deepEqual(JSON.parse(await textOf(page, "json-patch")), [{ op: "remove", path: "/spec/strategy/blueGreen" }]);
  assert.match(await textOf(page, "strategic-patch"), /^spec:\n {2}replicas: 5\n/);
  assert.match(await textOf(page, "policies"), /^apiVersion: admissionregistration\.k8s\.io\/v1\nkind: MutatingAdmissionPolicy\n/);
  assert.equal(await page.isHidden("#problems-panel"), true);
  const loaded = await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => entry.name));
  assert.deepEqual(loaded.filter((name) => !name.startsWith(`${origin}playground/`) && !name.startsWith("data:")), []);
  assert.deepEqual(faults, []);
});

test("typing changes the verdict, and a cause leads to its line", async () => {
  const { page, faults } = await playground();
  await paste(page, "old", "");
  await paste(page, "new", ROLLOUT);
  const verdict = 'Denied: Rollout.samples.kube-unions.dev "web" is invalid: spec.strategy.canary: Required value: must be specified when `type` is "Canary"';
  assert.equal(await page.textContent("#verdict"), verdict);
  const before = await answered(page);
  await page.keyboard.press("Control+End");
  await page.keyboard.type("    canary: {weight: 5}\n");
  await answers(page, before + 1);
  await page.locator("#verdict", { hasText: "Allowed: the API server stores the object (create)." }).waitFor();
  await paste(page, "new", `${ROLLOUT}    canary: {weight: 5}\n    blueGreen: {previewService: web}\n`);
  await page.locator("#causes button", { hasText: "spec.strategy.blueGreen" }).click();
  assert.equal(await page.locator("#new .cm-activeLine").textContent(), "    blueGreen: {previewService: web}");
  assert.deepEqual(faults, []);
});

test("every sample has the result that its name says", async () => {
  const { page, faults } = await playground();
  const samples = JSON.parse(await readFile(join(site, "playground/samples.json"), "utf8"));
  assert.ok(samples.length > 40, `only ${samples.length} samples`);
  for (const { group, name } of samples) {
    const sample = `${group}/${name}`;
    // The first one is shown already.
    if ((await page.inputValue("#sample")) !== sample) {
      const before = await answered(page);
      await page.selectOption("#sample", sample);
      await answers(page, before + 1);
    }
    const verdict = (await page.textContent("#verdict")) ?? "";
    assert.ok(verdict.startsWith(name.startsWith("rejected") ? "Denied: " : "Allowed: "), `${group}/${name}: ${verdict}`);
    const changes = await page.locator("#changes li").count();
    if (name.startsWith("valid")) assert.equal(changes, 0, `${group}/${name}`);
    assert.deepEqual(await page.locator("#problems .error").allTextContents(), [], `${group}/${name}`);
  }
  assert.deepEqual(faults, []);
});

test("a link has the inputs, also after a reload", async () => {
  const { page, faults } = await playground();
  const text = `${ROLLOUT}    canary: {weight: 7} # ünïcode\n`;
  await paste(page, "new", text);
  const definitions = await textOf(page, "definitions");
  await page.click("#share");
  await page.waitForFunction(() => location.hash.startsWith("#1."));
  await page.locator("#status", { hasText: "The inputs are in the link itself." }).waitFor();
  await page.reload();
  await answers(page, 1);
  assert.deepEqual([await textOf(page, "definitions"), await textOf(page, "new")], [definitions, text]);
  const shared = await playground({ fragment: new URL(page.url()).hash });
  assert.deepEqual([await textOf(shared.page, "definitions"), await textOf(shared.page, "new")], [definitions, text]);
  assert.deepEqual([...faults, ...shared.faults], []);
});

test("a link that is damaged, unknown or too long is explained", async () => {
  const fragments = { "#1.AAAA": "this link is damaged", "#9.AAAA": "of another version", "#sample=no/such": "no such sample" };
  for (const [fragment, message] of Object.entries(fragments)) {
    const { page } = await playground({ fragment });
    await page.locator("#status", { hasText: message }).waitFor();
    assert.match((await page.textContent("#verdict")) ?? "", /^Allowed/, "the first sample is loaded instead");
  }
  const { page } = await playground();
  // Random digits do not compress below half their length.
  const noise = await page.evaluate(() => Array.from(crypto.getRandomValues(new Uint32Array(16_000)), (it) => it.toString(36)).join(""));
  await paste(page, "new", `${ROLLOUT}  # ${noise}\n`);
  await page.click("#share");
  await page.locator("#status", { hasText: "the inputs are too long for a link" }).waitFor();
  assert.equal(new URL(page.url()).hash, "");
});

test("a CRD with an error shows the line", async () => {
  const { page, faults } = await playground();
  const definitions = await textOf(page, "definitions");
  const lines = definitions.split("\n");
  const line = lines.findIndex((text) => text.includes("x-kubernetes-unions:")) + 1;
  assert.ok(line > 0, "the sample has the keyword");
  await paste(page, "definitions", definitions.replace("x-kubernetes-unions:", "x-kubernetes-union:"));
  const misspelt = page.locator("#problems button", { hasText: `definitions:${line}:` });
  assert.match((await misspelt.textContent()) ?? "", /error: .*the keyword `x-kubernetes-union` has no effect; did you mean `x-kubernetes-unions`\?$/);
  await misspelt.click();
  assert.match((await page.locator("#definitions .cm-activeLine").textContent()) ?? "", /x-kubernetes-union:/);
  assert.ok((await page.locator("#definitions .cm-lint-marker-error").count()) > 0, "the gutter marks the line");
  await photograph(page, "problem");

  await paste(page, "definitions", "kind: CustomResourceDefinition\nspec: [\n");
  assert.match((await page.locator("#problems button").first().textContent()) ?? "", /^definitions:\d+:\d+: error: /);
  assert.deepEqual(faults, []);
});

test("inputs that are too deep or too long are refused, and the page goes on", async () => {
  const { page } = await playground();
  await paste(page, "new", `${ROLLOUT}  a: ${"[".repeat(5_000)}${"]".repeat(5_000)}\n`);
  await page.locator("#problems", { hasText: "nested too deeply" }).waitFor();
  const deep = Array.from({ length: 240 }, (_, level) => `${" ".repeat(level)}a:\n`).join("");
  await paste(page, "new", deep);
  await page.locator("#problems", { hasText: "`apiVersion` or `kind` is missing" }).waitFor();
  await paste(page, "new", `# ${"x".repeat(2 << 20)}\n`);
  await page.locator("#problems", { hasText: "the playground reads at most 2097152" }).waitFor();
  await paste(page, "new", ROLLOUT);
  assert.equal(await page.isHidden("#problems-panel"), true);
});

test("the page handles a key while the engine reads an object of a megabyte", async () => {
  const { page, faults } = await playground();
  const rows = Array.from({ length: 24_000 }, (_, row) => `    note-${row}: "a value of the object ${row}"\n`).join("");
  const large = `apiVersion: samples.kube-unions.dev/v1\nkind: Rollout\nmetadata:\n  name: web\n  annotations:\n${rows}spec:\n  strategy:\n    type: Canary\n`;
  assert.ok(large.length > 1 << 20, `${large.length}`);
  await page.evaluate(() => {
    /** @type {string[]} */
    const log = [];
    Object.assign(window, { log });
    const observer = new MutationObserver((records) => {
      for (const { attributeName } of records) log.push(attributeName === "data-answers" ? "answer" : "state");
      if (document.body.dataset["state"] !== "busy" || log.includes("key")) return;
      // The task is queued before the worker can queue its answer.
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        document.execCommand("insertText", false, "#");
        log.push("key");
      };
      port2.postMessage(null);
    });
    observer.observe(document.body, { attributes: true, attributeFilter: ["data-state", "data-answers"] });
  });
  await paste(page, "new", large);
  await answers(page, 3);
  const log = await page.evaluate(() => /** @type {any} */ (window).log.slice(0, 2));
  assert.deepEqual(log, ["state", "key"], "the key is handled before the first answer");
  assert.match((await page.textContent("#verdict")) ?? "", /^Denied: .* spec\.strategy\.canary: Required value/);
  assert.equal(await textOf(page, "new"), `${large}#`, "the key is in the text, and the answer is about it");
  assert.deepEqual(faults, []);
});

test("the page is usable with the keyboard alone", async () => {
  const { page } = await playground();
  /** @type {string[]} */
  const order = [];
  for (let step = 0; step < 9; step++) {
    await page.keyboard.press("Tab");
    order.push(await page.evaluate(() => {
      const focused = /** @type {HTMLElement} */ (document.activeElement);
      return focused.id || focused.textContent || "";
    }));
  }
  const expected = ["Skip to the results", "Guide", "sample", "share", "theme", "UnionDeclarations", "definitions", "old", "new"];
  assert.deepEqual(order, expected);
  // Each editor has a name for a screen reader.
  const names = await page.getByRole("textbox").evaluateAll((found) => found.map((it) => it.getAttribute("aria-label")));
  assert.equal(names.length, 7);
  assert.ok(names.every((name) => name), JSON.stringify(names));
  assert.equal(await page.locator("#sample").evaluate((it) => /** @type {HTMLSelectElement} */ (it).labels.length), 1);
});

test("the theme is that of the system, and the switch overrides it", async () => {
  const background = (/** @type {import("playwright-core").Page} */ page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  /** @type {Record<string, string>} */
  const shown = {};
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    const { page } = await playground({ options: { colorScheme, viewport: { width: 1400, height: 1000 } } });
    shown[colorScheme] = await background(page);
    await photograph(page, colorScheme);
    const other = colorScheme === "light" ? "dark" : "light";
    await page.selectOption("#theme", other);
    shown[`switched to ${other}`] = await background(page);
    await page.reload();
    await answers(page, 1);
    shown[`kept ${other}`] = await background(page);
  }
  const [light, dark] = ["rgb(255, 255, 255)", "rgb(22, 24, 29)"];
  const expected = { light, dark, "switched to light": light, "switched to dark": dark, "kept light": light, "kept dark": dark };
  assert.deepEqual(Object.entries(shown).sort(), Object.entries(expected).sort());
});

test("the page fits a phone", async () => {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    const options = { colorScheme, viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
    const { page } = await playground({ options });
    const widths = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.deepEqual(widths, [390, 390]);
    await photograph(page, `phone-${colorScheme}`);
  }
});

test("without JavaScript the pages are text", async () => {
  const page = await (await context({ javaScriptEnabled: false })).newPage();
  await page.goto("playground/");
  assert.match(await page.locator(".notice").innerText(), /use the command line:\nkube-unions normalize|use the command line: kube-unions normalize/);
  await page.goto("guide/getting-started.html");
  assert.match(await page.locator("main").innerText(), /^Getting started/);
});

// The playground as a reader uses it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { deflateRawSync, gzipSync } from "node:zlib";
import { answered, answers, browser, findings, paste, photograph, site, textOf } from "./browser.mjs";

const { context, playground } = browser();

const TO_CANARY = "#sample=rollout/normalized-to-canary";

const ROLLOUT = `apiVersion: samples.kube-unions.dev/v1
kind: Rollout
metadata:
  name: web
spec:
  strategy:
    type: Canary
`;

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web:1}]}
`;

test("the engine is at most 1 MB compressed", async () => {
  const engine = await readFile(join(site, "playground/engine_bg.wasm"));
  const bytes = gzipSync(engine, { level: 9 }).length;
  console.log(`the engine: ${engine.length} bytes, ${bytes} compressed`);
  assert.ok(bytes <= 1_000_000, `${bytes} bytes`);
});

test("a sample shows every result, and nothing is loaded from elsewhere", async () => {
  const { page, faults, origin } = await playground({ fragment: TO_CANARY });
  assert.equal(await page.textContent("#verdict"), "Allowed: no union forbids this update, with 1 warning.");
  assert.equal(await page.textContent("#changes"), 'spec.strategy.blueGreen: cleared because `type` changed to "Canary"');
  assert.equal(await page.textContent("#warnings"), 'Warning: spec.strategy.blueGreen: cleared because `type` changed to "Canary"');
  const removed = await page.locator("#normalized .cm-deletedChunk").allTextContents();
  assert.deepEqual(removed.map((text) => text.trim()), ["blueGreen:      previewService: web-preview"]);
  const choices = await page.locator("#unions ul ul li").allTextContents();
  assert.deepEqual(choices, ["BlueGreen → blueGreen", "Canary → canary", "Recreate → no member", "RollingUpdate → rollingUpdate (optional)"]);
  assert.deepEqual(JSON.parse(await textOf(page, "json-patch")), [{ op: "remove", path: "/spec/strategy/blueGreen" }]);
  assert.match(await textOf(page, "strategic-patch"), /^spec:\n {2}replicas: 5\n/);
  assert.match(await textOf(page, "policies"), /^# Unions of Rollout\.(.*\n#)+.*\napiVersion: admissionregistration\.k8s\.io\/v1\nkind: MutatingAdmissionPolicy\n/);
  assert.equal(await page.isHidden("#problems-panel"), true);
  const loaded = await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => entry.name));
  assert.deepEqual(loaded.filter((name) => !name.startsWith(`${origin}playground/`) && !name.startsWith("data:")), []);
  assert.deepEqual(faults, []);
});

test("typing changes the verdict, and a cause leads to its line", async () => {
  const { page, faults } = await playground({ fragment: TO_CANARY });
  await paste(page, "old", "");
  await paste(page, "new", ROLLOUT);
  const verdict = 'Denied: Rollout.samples.kube-unions.dev "web" is invalid: spec.strategy.canary: Required value: must be specified when `type` is "Canary"';
  assert.equal(await page.textContent("#verdict"), verdict);
  const before = await answered(page);
  await page.keyboard.press("Control+End");
  await page.keyboard.type("    canary: {weight: 5}\n");
  await answers(page, before + 1);
  await page.locator("#verdict", { hasText: "Allowed: no union forbids this create." }).waitFor();
  await paste(page, "new", `${ROLLOUT}    canary: {weight: 5}\n    blueGreen: {previewService: web}\n`);
  await page.locator("#causes button", { hasText: "spec.strategy.blueGreen" }).click();
  assert.equal(await page.locator("#new .cm-activeLine").textContent(), "    blueGreen: {previewService: web}");
  assert.deepEqual(faults, []);
});

test("a switch is refused today, and stored with kube-unions", async () => {
  const { page, faults } = await playground();
  const today = "Denied: Deployment \"web\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'";
  assert.deepEqual([await page.textContent("#today"), await page.getAttribute("#today-bar", "class")], [today, "denied"]);
  assert.match((await page.textContent("#verdict")) ?? "", /^Allowed: no union forbids this update/);
  // The lines below say the same.
  assert.equal(await page.textContent("#today-headline"), today);
  assert.equal(await page.textContent("#headline"), await page.textContent("#verdict"));
  assert.equal(await page.locator("#today-causes a").getAttribute("href"), "../errors/recreate.html");
  assert.deepEqual(faults, []);
});

test("an object of one's own needs no definitions", async () => {
  const { page, faults } = await playground({ fragment: "#sample=empty" });
  assert.match((await page.textContent("#today")) ?? "", /^Not judged: paste an object/);
  assert.deepEqual([await textOf(page, "definitions"), await textOf(page, "old"), await textOf(page, "new")], ["", "", ""]);
  await paste(page, "new", DEPLOYMENT);
  for (const bar of ["#today", "#verdict"]) assert.equal(await page.textContent(bar), "Allowed: no union forbids this create.");
  await paste(page, "new", DEPLOYMENT.replace("spec:\n", "spec:\n  strategy: {type: Recreate, rollingUpdate: {}}\n"));
  for (const bar of ["#today-bar", "#verdict-bar"]) assert.equal(await page.getAttribute(bar, "class"), "denied");
  assert.deepEqual(faults, []);
});

test("a rendering has a verdict on each object and on all, and the details of the one that is chosen", async () => {
  const { page, faults } = await playground({ fragment: "#sample=empty" });
  const broken = DEPLOYMENT.replace("name: web", "name: shop").replace("spec:\n", "spec:\n  strategy: {type: Recreate, rollingUpdate: {}}\n");
  await paste(page, "new", [DEPLOYMENT, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n", broken, "a: {{ .Values.a }}\n"].join("---\n"));
  assert.equal(await page.textContent("#today"), "Denied: 4 objects: 1 denied, 1 not readable, 1 allowed, 1 of kinds without unions.");
  const objects = await page.locator("#objects li").allTextContents();
  assert.deepEqual(objects, [
    "Deployment web: today allowed, with kube-unions allowed",
    "ConfigMap web: no union of the kind `ConfigMap` of `v1` is known",
    "Deployment shop: today denied, with kube-unions denied",
  ]);
  assert.match((await page.textContent("#today-headline")) ?? "", /^Denied: Deployment "shop" is invalid/);
  const before = await answered(page);
  await page.locator("#objects button", { hasText: "Deployment web" }).click();
  await answers(page, before + 1);
  assert.equal(await page.textContent("#today-headline"), "Allowed: no union forbids this create.");
  assert.match(await textOf(page, "normalized"), /name: web/);
  assert.equal(await page.getAttribute("#today-bar", "class"), "denied", "the bar is about all objects");
  assert.deepEqual(faults, []);
});

test("every sample has the result that its name says", async () => {
  const { page, faults } = await playground();
  const samples = JSON.parse(await readFile(join(site, "playground/samples.json"), "utf8"));
  assert.ok(samples.length > 40, `only ${samples.length} samples`);
  for (const { id: sample, title } of samples.slice(4)) {
    const name = sample.split("/")[1];
    assert.ok(title.includes(": "), title);
    // The first one is shown already.
    if ((await page.inputValue("#sample")) !== sample) {
      const before = await answered(page);
      await page.selectOption("#sample", sample);
      await answers(page, before + 1);
    }
    const verdict = (await page.textContent("#verdict")) ?? "";
    assert.ok(verdict.startsWith(name.startsWith("rejected") ? "Denied: " : "Allowed: "), `${sample}: ${verdict}`);
    const changes = await page.locator("#changes li").count();
    if (name.startsWith("valid")) assert.equal(changes, 0, sample);
    assert.deepEqual(await page.locator("#problems .error").allTextContents(), [], sample);
  }
  assert.deepEqual(faults, []);
});

test("a link has the inputs, also after a reload", async () => {
  const { page, faults } = await playground({ fragment: TO_CANARY });
  await page.selectOption("#way", "merge");
  const text = `${ROLLOUT}    canary: {weight: 7} # ünïcode\n`;
  await paste(page, "new", text);
  const definitions = await textOf(page, "definitions");
  await page.click("#share");
  await page.waitForFunction(() => location.hash.startsWith("#1."));
  await page.locator("#status", { hasText: "The inputs are in the link itself." }).waitFor();
  await page.reload();
  await answers(page, 1);
  assert.deepEqual([await textOf(page, "definitions"), await textOf(page, "new")], [definitions, text]);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
  const shared = await playground({ fragment: new URL(page.url()).hash });
  assert.equal(await shared.page.inputValue("#way"), "merge");
  assert.deepEqual([await textOf(shared.page, "definitions"), await textOf(shared.page, "new")], [definitions, text]);
  assert.deepEqual([...faults, ...shared.faults], []);
});

test("a link that is damaged, unknown or too long is explained", async () => {
  const shared = await playground({ fragment: TO_CANARY });
  await shared.page.click("#share");
  await shared.page.waitForFunction(() => location.hash.startsWith("#1."));
  const whole = new URL(shared.page.url()).hash;
  const older = deflateRawSync(JSON.stringify({ definitions: "", old: "", new: "# of an older release" })).toString("base64url");
  const fragments = {
    [whole.slice(0, whole.length / 2)]: /this link is damaged, perhaps cut off .*: copy it again as a whole/,
    "#1.AAAA": /this link is damaged/,
    "#0.AAAA": /from an older release of the playground, .*: ask for a new link/,
    "#9.AAAA": /from a newer release/,
    "#%": /no link of the playground/,
    "#anything": /no link of the playground: pick a sample/,
    [`#1.${"A".repeat(1_000_000)}`]: /this link has 1000002 characters, .* at most 32000: ask for the inputs as files/,
    "#sample=no/such": /no such sample in this release: pick one from the list/,
  };
  for (const [fragment, message] of Object.entries(fragments)) {
    const { page, faults } = await playground({ fragment });
    await page.locator("#status", { hasText: message }).waitFor();
    assert.match((await page.textContent("#verdict")) ?? "", /^Allowed/, "the first sample is loaded instead");
    assert.deepEqual(faults, []);
  }
  const old = await playground({ fragment: `#1.${older}` });
  assert.deepEqual([await textOf(old.page, "new"), await old.page.inputValue("#way")], ["# of an older release", "replace"]);

  const { page } = await playground();
  // Random digits do not compress below half their length.
  const noise = await page.evaluate(() => Array.from(crypto.getRandomValues(new Uint32Array(16_000)), (it) => it.toString(36)).join(""));
  await paste(page, "new", `${ROLLOUT}  # ${noise}\n`);
  await page.click("#share");
  await page.locator("#status", { hasText: /the inputs are too long for a link: .* download each and send the files/ }).waitFor();
  assert.equal(new URL(page.url()).hash, "");
});

test("a CRD with an error shows the line", async () => {
  const { page, faults } = await playground({ fragment: TO_CANARY });
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
  assert.equal(await page.getAttribute("#tab-definitions", "data-problems"), "error");

  await paste(page, "definitions", "kind: CustomResourceDefinition\nspec: [\n");
  assert.match((await page.locator("#problems button").first().textContent()) ?? "", /^definitions:\d+:\d+: error: /);
  assert.deepEqual(faults, []);
});

test("inputs that are too deep or too long are refused, and the page goes on", async () => {
  const { page } = await playground({ fragment: TO_CANARY });
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
  const { page, faults } = await playground({ fragment: TO_CANARY });
  await paste(page, "old", "");
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
  const focused = () => page.evaluate(() => {
    const focused = /** @type {HTMLElement} */ (document.activeElement);
    return focused.id || focused.getAttribute("aria-label") || focused.textContent || "";
  });
  /** @type {string[]} */
  const order = [];
  for (let step = 0; step < 12; step++) {
    await page.keyboard.press("Tab");
    order.push(await focused());
  }
  const expected = [
    "Skip to the results", "Help", "Guide", "sample", "share", "theme", "tab-new", "way", "Copy: new object", "Download: new object", "new", "Copy: Today",
  ];
  assert.deepEqual(order, expected);
  await page.focus("#tab-new");
  for (const [key, tab] of [["ArrowRight", "definitions"], ["ArrowLeft", "new"], ["ArrowLeft", "old"], ["Home", "definitions"], ["End", "new"]]) {
    await page.keyboard.press(/** @type {string} */ (key));
    assert.equal(await focused(), `tab-${tab}`, key);
    assert.deepEqual(await page.locator('[role="tabpanel"]:visible').evaluateAll((found) => found.map((it) => it.id)), [`panel-${tab}`]);
  }
  // Each editor has a name for a screen reader.
  const names = await page.getByRole("textbox", { includeHidden: true }).evaluateAll((found) => found.map((it) => it.getAttribute("aria-label")));
  assert.equal(names.length, 8);
  assert.ok(names.every((name) => name), JSON.stringify(names));
  assert.equal(await page.locator("#sample").evaluate((it) => /** @type {HTMLSelectElement} */ (it).labels.length), 1);
});

test("the theme is that of the system, and the switch overrides it", async () => {
  const background = (/** @type {import("playwright-core").Page} */ page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  /** @type {Record<string, string>} */
  const shown = {};
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    const { page } = await playground({ options: { colorScheme } });
    shown[colorScheme] = await background(page);
    const other = colorScheme === "light" ? "dark" : "light";
    await page.selectOption("#theme", other);
    shown[`switched to ${other}`] = await background(page);
    await page.reload();
    await answers(page, 1);
    shown[`kept ${other}`] = await background(page);
  }
  const [light, dark] = ["rgb(242, 244, 247)", "rgb(17, 19, 24)"];
  const expected = { light, dark, "switched to light": light, "switched to dark": dark, "kept light": light, "kept dark": dark };
  assert.deepEqual(Object.entries(shown).sort(), Object.entries(expected).sort());
});

/** @type {Record<string, import("playwright-core").BrowserContextOptions>} */
const SIZES = {
  laptop: { viewport: { width: 1366, height: 768 } },
  tablet: { viewport: { width: 820, height: 1180 }, isMobile: true, hasTouch: true },
  phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
};

test("the verdict is always in view, axe finds nothing serious, and there are screenshots", async () => {
  for (const [size, device] of Object.entries(SIZES)) {
    for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
      const { page, faults } = await playground({ options: { ...device, colorScheme } });
      const name = `${size}-${colorScheme}`;
      const widths = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.deepEqual(widths, [device.viewport?.width, device.viewport?.width], name);
      await photograph(page, name);
      assert.deepEqual(await findings(page), [], name);
      for (const [input, text, outcome] of /** @type {const} */ ([
        ["new", (await textOf(page, "new")).replace("strategy:", "strategy:\n    rollingUpdate: {maxSurge: 1}"), "denied"],
        ["new", "", "notJudged"],
      ])) {
        await paste(page, input, text);
        assert.equal(await page.getAttribute("#verdict-bar", "class"), outcome, name);
        assert.deepEqual(await findings(page), [], `${name}-${outcome}`);
        await photograph(page, `${name}-${outcome}`);
        // An editor is as high with one line as with many, and leaves room for the results.
        const panel = await page.locator(`#panel-${input}`).boundingBox();
        const room = device.viewport?.height ?? 0;
        assert.ok(panel && panel.height > 300 && panel.height < room * 0.85, `${name}: ${JSON.stringify(panel)}`);
      }
      // Also at the end of the results.
      await page.locator("#policies-panel").scrollIntoViewIfNeeded();
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      const { height, width } = /** @type {{ width: number, height: number }} */ (device.viewport);
      const box = await page.locator("#verdict").boundingBox();
      assert.ok(box && box.y >= 0 && box.y + box.height <= height && box.x + box.width <= width, `${name}: ${JSON.stringify(box)}`);
      assert.ok(await page.locator("#policies-panel h2").isVisible());
      assert.deepEqual(faults, [], name);
    }
  }
  const { page } = await playground({ options: SIZES["laptop"] ?? {} });
  const [inputs, outputs] = [await page.locator(".inputs").boundingBox(), await page.locator("#results").boundingBox()];
  assert.ok(inputs && outputs && inputs.x + inputs.width <= outputs.x, `the inputs are on the left: ${JSON.stringify([inputs, outputs])}`);
  assert.equal(await page.getAttribute("#verdict", "aria-live"), "polite");
  for (const part of ["#new", "#verdict", "#verdict-panel", "#normalized"]) {
    const box = await page.locator(part).boundingBox();
    assert.ok(box && box.y >= 0 && box.y < 768, `${part} is on the first screen: ${JSON.stringify(box)}`);
  }
});

test("without JavaScript the pages are text", async () => {
  const page = await (await context({ javaScriptEnabled: false })).newPage();
  await page.goto("playground/");
  assert.match(await page.locator("noscript .notice").innerText(), /use the command line:\nkube-unions normalize|use the command line: kube-unions normalize/);
  await page.goto("guide/getting-started.html");
  assert.match(await page.locator("main").innerText(), /^Getting started/);
});

test("each sample of the page has the result that it is there for", async () => {
  const { page, faults } = await playground();
  const cleared = (/** @type {string} */ path) => [/^Allowed: no union forbids this update/, path];
  for (const [title, way, [verdict, path]] of /** @type {const} */ ([
    ["Deployment to Recreate", "ssa", cleared("spec.strategy.rollingUpdate")],
    ["A volume gets a source", "ssa", cleared("spec.template.spec.volumes[0].emptyDir")],
    ["cert-manager: Issuer from self-signed to a CA", "merge", cleared("spec.selfSigned")],
    ["External Secrets: a store with two providers", "replace", [/^Denied: SecretStore/, ""]],
  ])) {
    if ((await page.locator("#sample option:checked").textContent()) !== title) {
      const before = await answered(page);
      await page.selectOption("#sample", { label: title });
      await answers(page, before + 1);
    }
    assert.equal(await page.inputValue("#way"), way, title);
    assert.match((await page.textContent("#verdict")) ?? "", /** @type {RegExp} */ (verdict), title);
    const changes = await page.locator("#changes li").allTextContents();
    assert.deepEqual(changes.map((change) => change.split(": ")[0]), path === "" ? [] : [path], title);
    assert.equal(await page.isVisible("#applied-panel"), way !== "replace", title);
    assert.equal(await page.isHidden("#problems-panel"), true, title);
    // The inputs fit a link.
    const hash = new URL(page.url()).hash;
    await page.click("#share");
    await page.waitForFunction((hash) => location.hash !== hash && location.hash.startsWith("#1."), hash);
    assert.ok(new URL(page.url()).hash.length < 4_000, `${title}: ${new URL(page.url()).hash.length}`);
  }
  assert.deepEqual(faults, []);
});

test("a write is not judged, in amber, when there is nothing to judge by", async () => {
  const { page, faults } = await playground({ fragment: TO_CANARY });
  const definitions = await textOf(page, "definitions");
  const amber = await page.evaluate(() => {
    const probe = document.createElement("p");
    probe.className = "notJudged";
    document.getElementById("verdicts")?.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  });
  assert.equal(amber, "rgb(115, 76, 0)");
  for (const [input, text, message] of /** @type {const} */ ([
    ["definitions", "", "is not among the definitions; paste its CRD"],
    ["definitions", "kind: List\n", "nothing here describes a kind"],
    ["definitions", definitions.replace("x-kubernetes-unions:", "x-kubernetes-union:"), "the keyword `x-kubernetes-union` has no effect"],
    ["new", ROLLOUT.replace("kind: Rollout", "kind: Rolout"), "did you mean `Rollout`"],
    ["new", ROLLOUT.replace("kind: Rollout", "kind: Store"), "paste its CRD"],
    ["new", "", "paste an object, or what `helm template` prints"],
    ["old", "a: 1\n", "old object, line 1: not an object"],
  ])) {
    await paste(page, "definitions", definitions);
    await paste(page, "old", "");
    await paste(page, "new", `${ROLLOUT}    canary: {weight: 5}\n`);
    assert.equal(await page.getAttribute("#verdict-bar", "class"), "allowed", message);
    await paste(page, input, text);
    const verdict = (await page.textContent("#verdict")) ?? "";
    assert.ok(verdict.startsWith("Not judged: ") && verdict.includes(message), `${message}: ${verdict}`);
    assert.equal(await page.locator("#verdict").evaluate((it) => getComputedStyle(it).color), amber, message);
  }
  assert.match((await page.textContent("#verdict-panel")) ?? "", /Only unions are judged, and of built-in kinds .* is not checked here/);
  assert.deepEqual(faults, []);
});

test("the last results stay, dimmed, while a line is half written", async () => {
  const { page, faults } = await playground({ fragment: TO_CANARY });
  const normalized = await textOf(page, "normalized");
  const opacity = () => page.locator("#normalized-panel").evaluate((it) => getComputedStyle(it).opacity);
  const text = await textOf(page, "new");
  await paste(page, "new", `${text}  half`);
  assert.match((await page.textContent("#verdict")) ?? "", /^Not judged: new object, line \d+: /);
  assert.deepEqual([await opacity(), await page.isVisible("#stale"), await textOf(page, "normalized")], ["0.45", true, normalized]);
  await paste(page, "new", text);
  assert.deepEqual([await opacity(), await page.isVisible("#stale")], ["1", false]);
  assert.deepEqual(faults, []);
});

test("edits survive a reload, until they are reset", async () => {
  const { page, faults } = await playground();
  const [definitions, old, sample] = [await textOf(page, "definitions"), await textOf(page, "old"), await textOf(page, "new")];
  assert.ok(await page.isDisabled("#reset"));
  assert.match((await page.textContent("#kept")) ?? "", /^Nothing that you type leaves your browser: edits are kept in its local storage/);
  await paste(page, "new", `${sample}# mine\n`);
  const before = await answered(page);
  await page.selectOption("#way", "csa");
  await answers(page, before + 1);
  const another = async () => {
    const other = await page.context().newPage();
    await other.goto("playground/#sample=issuer");
    await answers(other, 1);
    await page.reload();
  };
  for (const open of [() => page.reload(), another, () => page.goto(page.url().split("#")[0] ?? "")]) {
    await open();
    await answers(page, 1);
    assert.deepEqual([await textOf(page, "definitions"), await textOf(page, "old"), await textOf(page, "new")], [definitions, old, `${sample}# mine\n`]);
    assert.equal(await page.inputValue("#way"), "csa");
  }
  await page.click("#reset");
  await page.waitForFunction(() => localStorage.getItem("kube-unions-edits") === null);
  assert.deepEqual([await textOf(page, "new"), await page.inputValue("#way"), await page.isDisabled("#reset")], [sample, "ssa", true]);
  // What another release kept is left alone.
  for (const foreign of ["{", "7", '{"fragment":"","question":{"new":1}}']) {
    await page.evaluate((foreign) => localStorage.setItem("kube-unions-edits", foreign), foreign);
    await page.reload();
    await answers(page, 1);
    assert.equal(await textOf(page, "new"), sample, foreign);
  }
  assert.deepEqual(faults, []);
});

test("Back returns to the last sample, with its edits", async () => {
  const { page, faults } = await playground();
  const first = await textOf(page, "new");
  await paste(page, "new", `${first}# mine\n`);
  for (const sample of ["issuer", "rollout/valid-recreate"]) {
    const before = await answered(page);
    await page.selectOption("#sample", sample);
    await answers(page, before + 1);
  }
  const back = async (/** @type {string} */ sample) => {
    const before = await answered(page);
    await page.goBack();
    await answers(page, before + 1);
    assert.equal(await page.inputValue("#sample"), sample);
  };
  await back("issuer");
  assert.match(await textOf(page, "new"), /kind: Issuer/);
  await back("deployment");
  assert.equal(await textOf(page, "new"), `${first}# mine\n`);
  assert.deepEqual(faults, []);
});

test("every result is copied and downloaded", async () => {
  const { page, faults } = await playground();
  const files = [];
  for (const panel of await page.locator(".results [data-file]:visible").all()) {
    const title = (await panel.locator("h2").textContent()) ?? "";
    await panel.getByRole("button", { name: `Copy: ${title}`, exact: true }).click();
    await page.locator("#status", { hasText: `Copied: ${title}.` }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(copied.length > 10, `${title}: ${copied}`);
    const [file] = await Promise.all([page.waitForEvent("download"), panel.getByRole("button", { name: `Download: ${title}`, exact: true }).click()]);
    assert.equal(await readFile(await file.path(), "utf8"), copied, title);
    files.push(file.suggestedFilename());
    assert.equal(await panel.locator(".command code").isVisible(), title !== "JSON Patch of the webhook", title);
  }
  const expected = ["today.txt", "verdict.txt", "normalized.yaml", "applied.yaml", "unions.txt", "json-patch.json", "strategic-patch.yaml", "policies.yaml"];
  assert.deepEqual(files, expected);
  for (const input of ["definitions", "old", "new"]) {
    await page.click(`#tab-${input}`);
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator(`#panel-${input}`).getByRole("button", { name: "Download" }).click()]);
    assert.equal(file.suggestedFilename(), `${input}.yaml`);
    assert.equal(await readFile(await file.path(), "utf8"), await textOf(page, input));
  }
  await page.locator("#unions-panel").getByRole("button", { name: "Copy" }).click();
  const unions = "Deployment apps/v1\n  spec.strategy 2022 form, discriminator `type`, from declaration deployment-strategy\n    Recreate → no member\n    RollingUpdate → rollingUpdate (optional)\n";
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), unions);
  assert.deepEqual(faults, []);
});

test("what cannot be loaded or is not there is said, with what to do", async () => {
  /** @type {[string, (page: import("playwright-core").Page) => Promise<unknown>, string, RegExp][]} */
  const cases = [
    ["no samples", (page) => page.route("**/samples.json", (route) => route.abort()), "#status", /^the samples could not be loaded: reload the page, or paste your own/],
    ["no engine", (page) => page.route("**/engine_bg.wasm", (route) => route.fulfill({ status: 404 })), "#verdict", /^Not judged: the engine stopped .* reload the page, or use the command line$/],
    ["no worker", (page) => page.route("**/worker.js", (route) => route.abort()), "#verdict", /^Not judged: the engine stopped .* reload the page, or use the command line$/],
    ["no script", (page) => page.route("**/main.js", (route) => route.abort()), "#status", /^\s*The playground is loading\. If it does not start, reload the page, or use the command line/],
    ["no WebAssembly", (page) => page.addInitScript("delete globalThis.WebAssembly"), "#verdict", /^Not judged: this browser has no WebAssembly, .* use another browser, or the command line$/],
    ["no storage", (page) => page.addInitScript('Object.defineProperty(globalThis, "localStorage", { get() { throw new Error("refused"); } })'), "#kept", /this browser does not keep it either: before you reload, download your inputs or copy a link\.$/],
  ];
  for (const [name, prepare, part, message] of cases) {
    const page = await (await context()).newPage();
    await prepare(page);
    await page.goto("playground/");
    await page.locator(part, { hasText: message }).waitFor();
    if (name === "no storage") await page.locator("#verdict", { hasText: /^Allowed/ }).waitFor();
    if (name !== "no samples") continue;
    await page.locator("#verdict", { hasText: /^Not judged: paste an object/ }).waitFor();
  }
});

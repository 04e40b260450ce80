// The rows of the engine's tests, pasted into the page: its verdicts, and that no headline is at odds with the text below it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { answered, answers, browser, paste } from "./browser.mjs";

const { playground } = browser();

/**
 * A row of `crates/playground/tests/cases`.
 * @typedef {{ name: string, way?: string, definitions?: string, old?: string, new?: string, today?: string, withKubeUnions?: string, objects?: string[], says?: string }} Row
 */

/**
 * @param {string} name
 * @returns {Promise<Row[]>}
 */
async function rows(name) {
  return parse(await readFile(join(import.meta.dirname, "../../crates/playground/tests/cases", name), "utf8"));
}

/**
 * Pastes what a row asks.
 * @param {import("playwright-core").Page} page
 * @param {Row} row
 */
async function ask(page, row) {
  const way = row.way ?? "replace";
  if ((await page.inputValue("#way")) !== way) {
    const before = await answered(page);
    await page.selectOption("#way", way);
    await answers(page, before + 1);
  }
  for (const input of /** @type {const} */ (["definitions", "old", "new"])) await paste(page, input, row[input] ?? "");
}

const REFUSES = /^(Denied|Perhaps denied|Stored, and nothing refuses it): ./;

/**
 * Asserts that the text below a headline says the same.
 * @param {import("playwright-core").Page} page
 * @param {string} name
 */
async function holdTogether(page, name) {
  for (const prefix of ["today-", ""]) {
    const headline = (await page.textContent(`#${prefix}headline`)) ?? "";
    const causes = await page.locator(`#${prefix}causes li`).allTextContents();
    assert.match(headline, /^(Allowed|Not judged|Denied|Perhaps denied|Stored, and nothing refuses it): ./, name);
    assert.equal(causes.length > 0, REFUSES.test(headline), `${name}: ${headline}: ${causes}`);
    if (causes[0]) assert.ok(headline.includes(causes[0].split(": ")[0] ?? "-"), `${name}: ${headline}: ${causes}`);
    const warnings = await page.locator(`#${prefix}warnings li`).count();
    assert.equal(/with \d+ warnings?\.$/.test(headline), warnings > 0 && headline.startsWith("Allowed: "), `${name}: ${headline}`);
  }
  const isDenied = REFUSES.test((await page.textContent("#headline")) ?? "");
  assert.equal((await page.textContent("#normalized-note"))?.startsWith("Changed."), !isDenied && (await page.locator("#changes li").count()) > 0, name);
}

test("own Deployments, CRDs and others have their verdicts, and each text its headline", async () => {
  const { page, faults } = await playground({ fragment: "#sample=empty" });
  const all = await rows("objects.yaml");
  const deployments = all.filter((row) => /^kind: Deployment$/m.test(row.new ?? ""));
  assert.ok(deployments.length >= 10, `only ${deployments.length} Deployments`);
  const definitions = new Set(all.map((row) => row.definitions).filter((text) => text?.includes("kind: CustomResourceDefinition")));
  assert.ok(definitions.size >= 3, `only ${definitions.size} CRDs`);
  for (const row of all) {
    await ask(page, row);
    const bars = [await page.getAttribute("#today-bar", "class"), await page.getAttribute("#verdict-bar", "class")];
    assert.deepEqual(bars, [row.today, row.withKubeUnions], row.name);
    const [today = "", verdict = ""] = [await page.textContent("#today") ?? "", await page.textContent("#verdict") ?? ""];
    assert.ok(`${today}\n${verdict}`.includes(row.says ?? ""), `${row.name}: ${today} ${verdict}`);
    await holdTogether(page, row.name);
  }
  assert.deepEqual(faults, []);
});

test("renderings have a verdict on each object and on all", async () => {
  const { page, faults } = await playground({ fragment: "#sample=empty" });
  const all = await rows("renderings.yaml");
  assert.ok(all.length >= 5, `only ${all.length} renderings`);
  const words = { allowed: "allowed", denied: "denied", storedInvalid: "stored, though invalid" };
  for (const row of all) {
    await ask(page, row);
    if (row.today) assert.deepEqual([await page.textContent("#today"), await page.textContent("#verdict")], [row.today, row.withKubeUnions], row.name);
    const listed = (row.objects ?? []).length < 2 ? [] : row.objects ?? [];
    const shown = await page.locator("#objects li").allTextContents();
    assert.equal(shown.length, listed.length, `${row.name}: ${shown}`);
    for (const [position, object] of listed.entries()) {
      const [, title, today = "", withKubeUnions = ""] = /^(.*) (\w+) (\w+)$/.exec(object) ?? [];
      const known = /** @type {Record<string, string>} */ (words);
      const outcomes = today === "notJudged" ? `${title}: ` : `${title}: today ${known[today]}, with kube-unions ${known[withKubeUnions]}`;
      assert.ok(today === "notJudged" ? shown[position]?.startsWith(outcomes) : shown[position] === outcomes, `${row.name}: ${shown[position]}`);
    }
    await holdTogether(page, row.name);
  }
  assert.deepEqual(faults, []);
});

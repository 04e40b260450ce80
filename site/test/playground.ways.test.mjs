// The ways of a write in the playground, and the places of what is told of an applied object.

import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, answers, browser, paste, textOf } from "./browser.mjs";

const { playground } = browser();

test("the way of the write decides what is left beside the new fields", async () => {
  const { page, faults } = await playground();
  for (const [way, command] of [
    ["replace", "kubectl replace -f new.yaml --dry-run=server"],
    ["merge", "kubectl patch -f new.yaml --type=merge --patch-file new.yaml --dry-run=server"],
    ["csa", "kubectl apply -f new.yaml --dry-run=server"],
    ["ssa", "kubectl apply --server-side --force-conflicts -f new.yaml --dry-run=server"],
  ]) {
    await page.selectOption("#way", /** @type {string} */ (way));
    await page.locator("#verdict-panel .command", { hasText: command ?? "" }).waitFor();
    const isLeft = way === "merge" || way === "ssa";
    assert.equal(await page.locator("#changes li").count(), isLeft ? 1 : 0, way);
    if (way !== "replace") {
      assert.equal(await page.locator("#applied-panel .command").textContent(), `kube-unions preview --from definitions.yaml --old old.yaml --new new.yaml --as ${way}`);
      assert.equal((await textOf(page, "applied")).includes("rollingUpdate:"), isLeft, way);
    }
  }
  assert.deepEqual(faults, []);
});

test("a change and a cause of an applied object lead to the input that has the field", async () => {
  const { page, faults } = await playground();
  const before = await answered(page);
  await page.selectOption("#sample", "volume");
  await answers(page, before + 1);
  const [old, text] = [await textOf(page, "old"), await textOf(page, "new")];
  const shown = () => page.locator('[role="tabpanel"]:visible').evaluate((panel) => panel.id);
  // The old object has no managers, so the apply leaves its fields.
  const stored = old.replace("  name: web\nspec:", "  name: web\n  managedFields: []\nspec:");
  await paste(page, "old", stored.replace("      volumes:\n      - name: settings\n", "      volumes:\n      - name: first\n      - name: settings\n        emptyDir: {}\n"));
  // Only the old object has the field.
  await page.click("#tab-new");
  await page.locator("#changes button", { hasText: "spec.template.spec.volumes[1].emptyDir" }).click();
  assert.equal(await shown(), "panel-old");
  assert.equal(await page.locator("#old .cm-activeLine").textContent(), "        emptyDir: {}");
  // The new object has the item, at another index than the result.
  await paste(page, "new", text.replace("        configMap:", "        secret: {secretName: web}\n        configMap:"));
  await page.click("#tab-definitions");
  await page.locator("#causes button", { hasText: "spec.template.spec.volumes[1]" }).first().click();
  assert.equal(await shown(), "panel-new");
  assert.equal(await page.locator("#new .cm-activeLine").textContent(), "      - name: settings");
  assert.deepEqual(faults, []);
});

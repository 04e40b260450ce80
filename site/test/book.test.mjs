// The book: every link leads to a page and a heading of it.

import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { dirname, join, normalize, relative } from "node:path";
import { test } from "node:test";
import { site } from "./browser.mjs";

const repository = join(import.meta.dirname, "../..");

/** The pages of the site, without those that mdBook makes of all pages. */
async function pages() {
  const files = await readdir(site, { recursive: true });
  const found = files.filter((file) => file.endsWith(".html") && !["404.html", "print.html", "toc.html"].includes(file));
  return new Map(await Promise.all(found.map(async (file) => /** @type {const} */ ([file, await readFile(join(site, file), "utf8")]))));
}

test("every link leads to a page and a heading", async () => {
  const all = await pages();
  let checked = 0;
  const broken = [];
  for (const [page, text] of all) {
    for (const [, link = ""] of text.matchAll(/<a [^>]*?href="([^"]+)"/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      checked += 1;
      const [path = "", heading = ""] = link.split("#");
      let target = path === "" ? join(site, page) : normalize(join(site, dirname(page), path));
      if (existsSync(target) && statSync(target).isDirectory()) target = join(target, "index.html");
      const other = all.get(relative(site, target));
      const leads = existsSync(target) && (heading === "" || other === undefined || other.includes(`id="${decodeURIComponent(heading)}"`));
      if (!leads) broken.push(`${page}: ${link}`);
    }
  }
  assert.ok(checked > 200, `only ${checked} links`);
  assert.deepEqual(broken, []);
});

test("links that leave docs/ lead to files of the repository", async () => {
  const found = new Set();
  for (const text of (await pages()).values()) {
    for (const [, path = ""] of text.matchAll(/href="https:\/\/github\.com\/kube-unions\/kube-unions\/blob\/main\/([^"#]+)/g)) found.add(path);
  }
  assert.ok(found.size > 5, `only ${[...found]}`);
  assert.deepEqual([...found].filter((path) => !existsSync(join(repository, path))), []);
});

test("the summary has every page of the guide and the reference, and none for contributors", async () => {
  const summary = await readFile(join(repository, "docs/SUMMARY.md"), "utf8");
  const found = (await readdir(join(repository, "docs"), { recursive: true })).filter((file) => file.endsWith(".md") && file !== "SUMMARY.md");
  const files = found.filter((file) => !file.startsWith("developing/"));
  assert.ok(files.length > 15, `only ${files.length} pages`);
  assert.deepEqual(files.filter((file) => !summary.includes(`](${file})`)), []);
  assert.ok(!summary.includes("](developing/"));
});

// A preprocessor of mdBook. A link that leaves docs/ leads to the repository, for the book has no such page. A link to the published
// site leads to the same page of this one, wherever it is served.

import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";

if (process.argv[2] === "supports") process.exit(0);

const root = join(import.meta.dirname, "..");
const manifest = readFileSync(join(root, "Cargo.toml"), "utf8");
const repository = /^repository = "(.+)"$/m.exec(manifest)?.[1];
const homepage = /^homepage = "(.+)"$/m.exec(manifest)?.[1];
if (!repository || !homepage) throw new Error("Cargo.toml has no repository or no homepage");

/**
 * @typedef {{ content: string, path: string | null, sub_items: Item[] }} Chapter
 * @typedef {{ Chapter?: Chapter } | string} Item
 */

/** @param {Item} item */
function rewrite(item) {
  if (typeof item === "string" || !item.Chapter) return;
  const chapter = item.Chapter;
  if (chapter.path) chapter.content = rewritten(chapter.content, posix.join("docs", chapter.path));
  chapter.sub_items.forEach(rewrite);
}

/**
 * @param {string} text
 * @param {string} page
 */
function rewritten(text, page) {
  let isCode = false;
  const lines = text.split("\n").map((line) => {
    if (line.trimStart().startsWith("```")) isCode = !isCode;
    if (isCode) return line;
    return line
      .replace(/\]\((\.\.\/[^)\s]+)\)/g, (_, target) => `](${absolute(target, page)})`)
      .replaceAll(`](${homepage}/`, `](${"../".repeat(page.split("/").length - 2)}`)
      .replace(/^(\[[^\]]+\]: )(\.\.\/\S+)$/, (_, label, target) => label + absolute(target, page));
  });
  return lines.join("\n");
}

/**
 * @param {string} target
 * @param {string} page
 */
function absolute(target, page) {
  const path = posix.join(dirname(page), target);
  return path.startsWith("docs/") ? target : `${repository}/blob/main/${path}`;
}

const [, book] = JSON.parse(readFileSync(0, "utf8"));
(book.items ?? book.sections).forEach(rewrite);
process.stdout.write(JSON.stringify(book));

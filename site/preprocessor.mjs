// A preprocessor of mdBook. Pages of the repository that are no part of docs/ are pages of the book if a page of docs/reference includes
// them. Other links that leave docs/ lead to the repository, and so do links to docs/developing, which is for contributors. A link to the
// published site leads to the same page of this one, wherever it is served. A picture becomes part of its page, so that it has the colours
// of the theme.

import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { picture } from "./pictures.mjs";

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

/**
 * The pages whose text is a file elsewhere: the file of each page, and the page of each file.
 * @type {{ files: Map<string, string>, pages: Map<string, string> }}
 */
const included = { files: new Map(), pages: new Map() };

/**
 * @param {Item[]} items
 * @param {(chapter: Chapter, page: string) => void} work
 */
function each(items, work) {
  for (const item of items) {
    if (typeof item === "string" || !item.Chapter) continue;
    if (item.Chapter.path) work(item.Chapter, posix.join("docs", item.Chapter.path));
    each(item.Chapter.sub_items, work);
  }
}

/**
 * @param {string} text
 * @param {string} source the file with the text
 * @param {string} page
 */
function rewritten(text, source, page) {
  let isCode = false;
  const lines = text.split("\n").map((line) => {
    if (line.trimStart().startsWith("```")) isCode = !isCode;
    if (isCode) return line;
    return line
      .replace(/^!\[([^\]]+)\](?:\[picture-(\w+)\]|\((?:\S+\/)?pictures\/(\w+)\.svg\))$/, (_, words, name, other) => drawn(name ?? other, words))
      .replaceAll(`](${homepage}/`, `](${"../".repeat(page.split("/").length - 2)}`)
      .replace(/\]\(([^)\s]+)\)/g, (_, target) => `](${link(target, source, page)})`)
      .replace(/^(\[[^\]]+\]: )(\S+)$/, (_, label, target) => label + link(target, source, page));
  });
  return lines.join("\n");
}

/**
 * @param {string} name
 * @param {string} words the text alternative
 */
function drawn(name, words) {
  const label = words.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  return `<div class="picture">\n${picture(name, `role="img" aria-label="${label}"`)}\n</div>`;
}

/**
 * Returns a link of the book for a link of a file.
 * @param {string} target
 * @param {string} source
 * @param {string} page
 */
function link(target, source, page) {
  if (/^(?:[a-z]+:|#)/.test(target) || (source === page && !target.startsWith("../"))) return target;
  const [path = "", heading] = posix.join(dirname(source), target).split("#");
  const isOfBook = path.startsWith("docs/") && !path.startsWith("docs/developing/");
  const inBook = included.pages.get(path) ?? (isOfBook ? path : undefined);
  if (!inBook) return `${repository}/blob/main/${posix.join(dirname(source), target)}`;
  return posix.relative(dirname(page), inBook) + (heading === undefined ? "" : `#${heading}`);
}

const [, book] = JSON.parse(readFileSync(0, "utf8"));
const items = book.items ?? book.sections;
each(items, (chapter, page) => {
  const file = /^\{\{#include (\S+)\}\}\n$/.exec(chapter.content)?.[1];
  if (!file) return;
  const source = posix.join(dirname(page), file);
  included.files.set(page, source);
  included.pages.set(source, page);
});
each(items, (chapter, page) => {
  const source = included.files.get(page);
  const text = source ? readFileSync(join(root, source), "utf8") : chapter.content;
  chapter.content = rewritten(text, source ?? page, page);
});
process.stdout.write(JSON.stringify(book));

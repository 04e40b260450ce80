// Additions to the pages of mdBook.

// Highlights the YAML of heredocs, which mdBook highlights as text of the shell.
for (const code of document.querySelectorAll("code.language-sh")) {
  const parts = (code.textContent ?? "").split(/(?<=<<'EOF'[^\n]*\n)(.*?^)(?=EOF$)/ms);
  if (parts.length < 2) continue;
  code.innerHTML = parts.map((part, index) => hljs.highlight(index % 2 ? "yaml" : "bash", part, true).value).join("");
}

// The bar at the top is a landmark, and the label in it that opens the table of contents is a button.
document.getElementById("mdbook-menu-bar")?.setAttribute("role", "banner");
document.getElementById("mdbook-sidebar-toggle")?.setAttribute("role", "button");

// A block that scrolls sideways can be reached by the keyboard.
for (const block of document.querySelectorAll(".table-wrapper, .picture, pre > code")) {
  if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
}

// A search is for pages with all words. A pasted line of a log has names of its own, which no page has, so its phrases of three words tell its
// page: a heading with half of its phrases in the line comes first. If no page has all words, pages with any of them follow, by their phrases.
const phrases = (text) => {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return new Set(words.slice(2).map((_, at) => words.slice(at, at + 3).join(" ")));
};
const search = elasticlunr.Index.prototype.search;
elasticlunr.Index.prototype.search = function (line, options) {
  const asked = phrases(line);
  const common = (text) => [...phrases(text)].filter((phrase) => asked.has(phrase)).length;
  const heading = ({ title }) => {
    const found = common(title);
    return found * 2 >= phrases(title).size ? found : 0;
  };
  const sorted = (pages, rank) => {
    const ranks = new Map(pages.map((page) => [page, rank(page.doc)]));
    return pages.sort((one, other) => ranks.get(other) - ranks.get(one));
  };
  const all = search.call(this, line, options);
  if (asked.size === 0) return all.length > 0 ? all : search.call(this, line, { ...options, bool: "OR" });
  const any = sorted(search.call(this, line, { ...options, bool: "OR" }), ({ body }) => common(body));
  const first = sorted(any.filter(({ doc }) => heading(doc) > 0), heading);
  const found = new Set(first.map(({ ref }) => ref));
  return [...first, ...(all.length > 0 ? all : any).filter(({ ref }) => !found.has(ref))];
};

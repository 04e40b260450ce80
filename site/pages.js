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

// A search is for all words. A pasted line of a log has names of its own, which no page has: then it is for any of its words.
const search = elasticlunr.Index.prototype.search;
elasticlunr.Index.prototype.search = function (words, options) {
  const found = search.call(this, words, options);
  return found.length > 0 ? found : search.call(this, words, { ...options, bool: "OR" });
};

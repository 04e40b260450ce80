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

// A search is for all words. A pasted line of a log has names of its own, which no page has: then it is for any of its words, and a title
// whose words are in the line comes first, but for a name or number among them. Words of the rest, such as `Invalid value: ""`, may be common.
const search = elasticlunr.Index.prototype.search;
elasticlunr.Index.prototype.search = function (words, options) {
  const found = search.call(this, words, options);
  if (found.length > 0) return found;
  const tokens = (text) => this.pipeline.run(elasticlunr.tokenizer(text));
  const asked = new Set(tokens(words));
  const said = ({ doc }) => {
    const title = tokens(doc.title);
    const common = title.filter((word) => asked.has(word)).length;
    return title.length > 1 && common >= title.length * 0.75 ? common : 0;
  };
  return search.call(this, words, { ...options, bool: "OR" }).sort((one, other) => said(other) - said(one));
};

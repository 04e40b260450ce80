// The pictures of the guide. `node pictures.mjs` writes each picture of pictures/*.dot as docs/pictures/*.svg, for pages on GitHub; the book
// has them in its pages, in the colours of its theme.
//
// Graphviz draws them, compiled to WebAssembly (@viz-js/viz): it needs no browser and depends on nothing.

import { instance } from "@viz-js/viz";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const SOURCES = join(import.meta.dirname, "pictures");
const FONT = "Helvetica";

/** The colours of text in a source, each with its variable, and its values on light and on dark ground. */
const COLOURS = [
  { source: "#c00001", variable: "--picture-bad", light: "#b3261e", dark: "#ff8f85" },
  { source: "#008001", variable: "--picture-good", light: "#1a7f37", dark: "#56d364" },
];

/** Text is laid out larger than it is drawn, because readers without Helvetica have a wider font. */
const [LAID_OUT, DRAWN] = [14, 12];

const TEXT = { fontname: FONT, fontsize: LAID_OUT };
const GRAPH = { ...TEXT, bgcolor: "transparent", newrank: true };
const NODE = { ...TEXT, shape: "box", margin: "0.1,0.07" };
const EDGE = { ...TEXT, arrowsize: 0.7 };

const viz = await instance();

export const names = readdirSync(SOURCES).map((file) => file.replace(/\.dot$/, "")).sort();

/**
 * Returns a picture as an SVG element whose lines and text have the colour of the text around it.
 * @param {string} name
 * @param {string} attributes of the element
 */
export function picture(name, attributes) {
  const source = readFileSync(join(SOURCES, `${name}.dot`), "utf8");
  const drawn = viz.renderString(source, { format: "svg", graphAttributes: GRAPH, nodeAttributes: NODE, edgeAttributes: EDGE });
  let svg = drawn
    .slice(drawn.indexOf("<svg"))
    .replace(/<!--.*?-->|<title>.*?<\/title>/gs, "")
    .replace(/ xmlns:xlink="[^"]*"| id="[^"]*"/g, "")
    .replaceAll(`font-size="${LAID_OUT}.00"`, `font-size="${DRAWN}"`)
    .replaceAll('"black"', '"currentColor"')
    .replace(/^<svg/, `<svg fill="currentColor" ${attributes}`)
    .replace(/\n+/g, "\n");
  for (const { source, variable } of COLOURS) svg = svg.replaceAll(`fill="${source}"`, `style="fill:var(${variable})"`);
  return svg.trim();
}

/**
 * Returns a picture as a file of its own, which follows the colours that the reader's system prefers.
 * @param {string} name
 */
export function file(name) {
  const values = (/** @type {"light" | "dark"} */ theme) => COLOURS.map((colour) => `${colour.variable}:${colour[theme]}`).join(";");
  const style = `<style>:root{color:#1f2328;${values("light")}}@media(prefers-color-scheme:dark){:root{color:#e6edf3;${values("dark")}}}</style>`;
  return `${picture(name, 'role="img"').replace(">", `>\n${style}`)}\n`;
}

if (process.argv[1] === import.meta.filename) {
  const folder = join(import.meta.dirname, "../docs/pictures");
  mkdirSync(folder, { recursive: true });
  for (const name of names) writeFileSync(join(folder, `${name}.svg`), file(name));
}

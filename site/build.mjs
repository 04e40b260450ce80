// Writes the playground into a folder: `node build.mjs FOLDER`. Its engine has to be in engine/.

import { build } from "esbuild";
import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const here = import.meta.dirname;
const samples = join(here, "../manifests/samples");
const folder = process.argv[2];
if (!folder) throw new Error("usage: node build.mjs FOLDER");
await mkdir(folder, { recursive: true });

await build({
  absWorkingDir: here,
  entryPoints: ["src/main.ts", "src/worker.ts"],
  outdir: folder,
  bundle: true,
  format: "esm",
  target: "es2023",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
});
await copyFile(join(here, "engine/engine_bg.wasm"), join(folder, "engine_bg.wasm"));
await copyFile(join(here, "playground.html"), join(folder, "index.html"));
await copyFile(join(here, "playground.css"), join(folder, "playground.css"));
await writeFile(join(folder, "samples.json"), JSON.stringify(await allSamples()));

/** Returns the samples of the page, then each object of manifests/samples with its CRD: there the names say what happens to it. */
async function allSamples() {
  const found = [];
  const own = join(here, "samples");
  for (const { name, ...about } of JSON.parse(await readFile(join(own, "samples.json"), "utf8"))) {
    const files = await readdir(join(own, name));
    const read = async (/** @type {string} */ file) => (files.includes(file) ? readFile(join(own, name, file), "utf8") : "");
    const [definitions, old, object] = await Promise.all(["definitions.yaml", "old.yaml", "new.yaml"].map(read));
    found.push({ id: name, ...about, definitions, old, new: object });
  }
  const entries = await readdir(samples, { withFileTypes: true });
  for (const group of entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort()) {
    const files = (await readdir(join(samples, group))).sort();
    if (!files.includes("crd.yaml")) continue;
    const read = (/** @type {string} */ name) => readFile(join(samples, group, name), "utf8");
    const parts = ["crd.yaml", "declaration.yaml"].filter((name) => files.includes(name));
    const definitions = (await Promise.all(parts.map(read))).join("---\n");
    for (const file of files.filter((name) => name.endsWith(".new.yaml") || name.startsWith("valid-"))) {
      const name = file.replace(/(\.new)?\.yaml$/, "");
      const old = `${name}.old.yaml`;
      const object = await read(file);
      const kind = /^kind: (.+)$/m.exec(object)?.[1];
      found.push({
        id: `${group}/${name}`,
        group: `The sample ${kind}`,
        title: `${kind}: ${name.replaceAll("-", " ").replace(/^normalized/, "normalised")}`,
        way: "replace",
        definitions,
        old: files.includes(old) ? await read(old) : "",
        new: object,
      });
    }
  }
  return found;
}

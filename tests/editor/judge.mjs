// Prints how many manifests are valid for yaml-language-server.
//
//   judge.mjs SCHEMAS MANIFESTS   two folders; the schema of a kind has the name that kubeconform looks for
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(import.meta.url);
const { getLanguageService, TextDocument } = require("yaml-language-server/out/server/src");
const { parse } = require("yaml");

const [schemas, manifests] = process.argv.slice(2);
const service = getLanguageService({
  schemaRequestService: (uri) => Promise.resolve(readFileSync(new URL(uri), "utf8")),
  workspaceContext: { resolveRelativePath: (path) => path },
});
service.configure({
  validate: true,
  schemas: readdirSync(schemas).map((name) => ({
    uri: `file://${join(schemas, name)}`,
    fileMatch: [`*.${name}`],
    schema: JSON.parse(readFileSync(join(schemas, name), "utf8")),
  })),
});

let invalid = 0;
const all = readdirSync(manifests);
for (const name of all) {
  const text = readFileSync(join(manifests, name), "utf8");
  const { apiVersion, kind } = parse(text);
  const schema = `${kind}-${apiVersion.replace(/(\..*)?\//, "-")}.json`.toLowerCase();
  const document = TextDocument.create(`file:///${name}.${schema}`, "yaml", 1, text);
  const told = await service.doValidation(document, false);
  if (told.length > 0) invalid += 1;
}
console.log(`${all.length} manifests: ${all.length - invalid} valid, ${invalid} invalid`);

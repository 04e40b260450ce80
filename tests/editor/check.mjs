// Checks that yaml-language-server names the fields of a union that are wrong, in an object that the webhook rejects.
//
//   check.mjs SCHEMA NAME         the object is NAME.new.yaml, and NAME.want.yaml has the causes of its rejection
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { getLanguageService, TextDocument } = require("yaml-language-server/out/server/src");
const { parse } = require("yaml");

const [schemaFile, name] = process.argv.slice(2);
const schema = JSON.parse(readFileSync(schemaFile, "utf8"));
const document = TextDocument.create("file:///object.yaml", "yaml", 1, readFileSync(`${name}.new.yaml`, "utf8"));
const { causes } = parse(readFileSync(`${name}.want.yaml`, "utf8"));

const service = getLanguageService({
  schemaRequestService: () => Promise.resolve(JSON.stringify(schema)),
  workspaceContext: { resolveRelativePath: (path) => path },
});
service.configure({ validate: true, schemas: [{ uri: "file:///schema.json", fileMatch: ["*.yaml"], schema }] });

const diagnostics = await service.doValidation(document, false);
const told = diagnostics.map(({ range, message }) => [document.getText(range), message]);
const wanted = causes.map(({ field, reason, message }) => {
  const path = field.split(".");
  // What is missing is told at the object that lacks it.
  return [path.at(reason === "FieldValueRequired" ? -2 : -1), `${path.at(-1)}: ${message}`];
});
assert.deepEqual(told.sort(), wanted.sort());
for (const [at, message] of told) console.log(`${name}: at ${at}: ${message}`);

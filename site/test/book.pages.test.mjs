// The pages of the book as a reader sees them, in light and dark, on a phone, a tablet and a desk.

import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { file, names } from "../pictures.mjs";
import { browser, screenshots } from "./browser.mjs";

const { context } = browser();

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const THEMES = /** @type {const} */ (["light", "dark"]);
const SIZES = { phone: { width: 390, height: 844 }, tablet: { width: 820, height: 1180 }, desk: { width: 1366, height: 768 } };

/** A page of each kind: with buttons and a picture, code, wide tables, and a text from elsewhere. */
const PAGES = {
  home: "index.html",
  start: "guide/getting-started.html",
  choosing: "guide/choosing.html",
  declaring: "guide/declaring.html",
  semantics: "reference/semantics.html",
  questions: "guide/questions.html",
  error: "errors/recreate.html",
  chart: "reference/chart.html",
  security: "reference/security.html",
};

/** What a reader looks for, and a page that search has to find. */
const TERMS = {
  GitOps: "guide/gitops", "Argo CD": "guide/gitops", Flux: "guide/gitops", OpenShift: "guide/questions", EKS: "guide/questions",
  GKE: "guide/questions", latency: "guide/questions", risk: "guide/questions", uninstall: "guide/questions",
};

/**
 * Opens a page. Fails later, with `faults`, if the page reports an error.
 * @param {string} path
 * @param {import("playwright-core").BrowserContextOptions} [options]
 */
async function open(path, options) {
  const page = await (await context(options)).newPage();
  /** @type {string[]} */
  const faults = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  await page.goto(path);
  return { page, faults };
}

test("the home page says what a union is in three sentences, shows a switch, and has three buttons", async () => {
  const { page, faults } = await open(PAGES.home);
  const words = await page.locator("main > p").first().textContent();
  assert.equal(words?.match(/\.(?=\s|$)/g)?.length, 3, words ?? "");
  assert.match(await page.locator("main .picture svg").first().getAttribute("aria-label") ?? "", /patched/);
  const buttons = await page.locator("main .buttons a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  assert.deepEqual(buttons, ["playground/", "guide/getting-started.html", "guide/choosing.html"]);
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("five pictures stand in the pages, each with words and in the colours of the theme", async () => {
  const colours = new Map();
  let found = 0;
  for (const colorScheme of THEMES) {
    for (const path of Object.values(PAGES)) {
      const { page } = await open(path, { colorScheme });
      for (const picture of await page.locator("main svg[role=img]").all()) {
        const words = await picture.getAttribute("aria-label");
        assert.ok((words ?? "").length > 100, `${path}: ${words}`);
        const colour = (/** @type {Element} */ element) => getComputedStyle(element).color;
        const ofText = await page.locator("main").evaluate(colour);
        const line = picture.locator("[stroke=currentColor]").first();
        assert.equal(await line.evaluate((element) => getComputedStyle(element).stroke), ofText);
        colours.set(colorScheme, ofText);
        found += 1;
      }
      await page.context().close();
    }
  }
  assert.equal(found, 2 * names.length);
  assert.equal(names.length, 5);
  assert.notEqual(colours.get("light"), colours.get("dark"));
});

test("the pictures for GitHub are those that are drawn", async () => {
  for (const name of names) {
    const stored = await readFile(join(import.meta.dirname, `../../docs/pictures/${name}.svg`), "utf8");
    assert.equal(stored, file(name), `docs/pictures/${name}.svg is out of date: run \`make pictures\``);
  }
});

test("the texts from elsewhere are pages, and the pages link to each other", async () => {
  const titles = { chart: "The kube-unions chart", presets: "Presets", "preset-policies": "Policies", samples: "Samples", security: "Security" };
  for (const [name, title] of Object.entries(titles)) {
    const { page } = await open(`reference/${name}.html`);
    assert.match(await page.locator("main h1").first().textContent() ?? "", new RegExp(title));
    await page.context().close();
  }
  const { page } = await open(PAGES.chart);
  assert.ok(await page.locator('main a[href="../guide/operating.html"]').count() > 0);
  await page.goto(PAGES.home);
  assert.ok(await page.locator('main a[href="reference/security.html"]').count() > 0);
  await page.context().close();
});

test("the page of questions answers twenty, each in five lines", async () => {
  const { page } = await open(PAGES.questions, { viewport: SIZES.desk });
  assert.equal(await page.locator("main h3").count(), 20);
  const text = await readFile(join(import.meta.dirname, "../../docs/guide/questions.md"), "utf8");
  const answers = text.split(/^### /m).slice(1).map((part) => part.split(/^## /m)[0] ?? "");
  for (const answer of answers) {
    const [question, ...lines] = answer.split("\n");
    const prose = lines.filter((line) => line !== "" && !line.startsWith("|"));
    assert.ok(prose.length > 0 && prose.length <= 5, `${question} ${prose.length} lines`);
  }
  await page.context().close();
});

/** Lines as Kubernetes, kubectl and other tools print them about objects of one's own, also several of them, with the page of each. */
const LINES = /** @type {const} */ ([
  ["The Deployment \"billing\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'", "recreate"],
  ['The StatefulSet "db" is invalid: spec.template.spec.containers[0].readinessProbe.httpGet: Forbidden: may not specify more than 1 handler type', "handler"],
  ['The Deployment "cache" is invalid: spec.template.spec.volumes[0].persistentVolumeClaim: Forbidden: may not specify more than 1 volume type', "volume"],
  ['The CronJob "report" is invalid: spec.jobTemplate.spec.template.spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty', "value-from"],
  ['error: Apply failed with 1 conflict: conflict with "flux": .spec.replicas', "conflict"],
  ['error: Apply failed with 2 conflicts: conflicts with "flux" using apps/v1:', "conflict"],
  ["* spec.validation.openAPIV3Schema.properties[spec].properties[rules].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)", "rule-cost"],
  ['The HorizontalPodAutoscaler "web" is invalid: spec.metrics[0].resource: Forbidden: must populate the given metric source only', "metric"],
  ['The Ingress "shop" is invalid: spec.defaultBackend: Invalid value: "": cannot set both resource and service backends', "backend"],
  ['The Ingress "shop" is invalid: spec.rules[0].http.paths[0].backend: Invalid value: "": cannot set both port name & port number', "port"],
  ['The PodDisruptionBudget "shop" is invalid: spec: Invalid value: {"MinAvailable":1,"Selector":{"matchLabels":{"app":"shop"}},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set', "budget"],
  ['The Store "a" is invalid: spec.s3: Invalid value: "null": spec.s3 in body must be of type object: "null"', "null"],
  ['The Store "a" is invalid: spec.target.s3: Invalid value: "": "spec.target" must validate one and only one schema (oneOf). Found none valid', "one-of"],
  ['Error from server (BadRequest): error when creating "crd.yaml": CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: strict decoding error: unknown field "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.source.x-kubernetes-unions"', "unknown-field"],
  ['The Job "migrate" is invalid: spec.template: Invalid value: {"Spec":{"Volumes":[{"Name":"scratch","HostPath":null,"EmptyDir":null,"ConfigMap":{"Name":"c"}}],"RestartPolicy":"Never"}}: field is immutable', "immutable"],
  ['The Service "web" is invalid: spec.ports[0].nodePort: Forbidden: may not be used when `type` is \'ClusterIP\'', "service"],
  ["Error: UPGRADE FAILED: cannot patch \"web\" with kind Deployment: Deployment.apps \"web\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'", "recreate"],
  ["Error: UPGRADE FAILED: conflict occurred while applying object default/web apps/v1, Kind=Deployment: Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas", "conflict"],
  ["Error: INSTALLATION FAILED: 1 error occurred:\n\t* Service \"web\" is invalid: spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'\n\n", "service"],
  ["one or more objects failed to apply, reason: error when patching \"/dev/shm/1937562\": Deployment.apps \"web\" is invalid: spec.template.spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type. Retrying attempt #5 at 10:42PM.", "handler"],
  ["one or more objects failed to apply, reason: Deployment.apps \"web\" is invalid: spec.template.spec.containers[0].env[2].valueFrom: Invalid value: \"\": may not have more than one field specified at a time", "value-from"],
  ["Deployment/shop/web dry-run failed (Invalid): Deployment.apps \"web\" is invalid: [spec.template.spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type, spec.template.spec.volumes[1].secret: Forbidden: may not specify more than 1 volume type]", "volume"],
  ["╷\n│ Error: Failed to update deployment: Deployment.apps \"web\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'\n│ \n│   with kubernetes_deployment.web,\n│   on main.tf line 1, in resource \"kubernetes_deployment\" \"web\":\n╵", "recreate"],
  ["    error: resource default/web was not successfully created by the Kubernetes API server : Server-side apply patch failed: Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas", "conflict"],
  ["cannot compose resources: cannot apply composed resource \"bucket\": failed to create typed patch object (/bucket-x7k; s3.aws.upbound.io/v1beta1, Kind=Bucket): .spec.forProvider.versioning: field not declared in schema", "unknown-field"],
  ["cannot compose resources: cannot apply composed resource \"config\": failed to create typed patch object (default/config; v1, Kind=ConfigMap): .data.port: expected string, got &value.valueUnstructured{Value:8080}", "decode"],
  ["The Deployment \"web\" is invalid: \n* spec.template.spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty\n* spec.template.spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty", "value-from"],
  ["Error from server (Invalid): error when applying patch:\n{\"spec\":{\"strategy\":{\"type\":\"Recreate\"}}}\nto:\nResource: \"apps/v1, Resource=deployments\", GroupVersionKind: \"apps/v1, Kind=Deployment\"\nName: \"web\", Namespace: \"default\"\nfor: \"web.yaml\": error when patching \"web.yaml\": Deployment.apps \"web\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'", "recreate"],
  ["error: Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.template.spec.containers[name=\"web\"].image\nPlease review the fields above--they currently have other managers. Here\nare the ways you can resolve this warning:\n* If you intend to manage all of these fields, please re-run the apply\n  command with the `--force-conflicts` flag.", "conflict"],
  ["Error from server: failed to create typed patch object (default/web; apps/v1, Kind=Deployment): errors:\n  .spec.template.spec.containers[name=\"web\"].livenessProbes: field not declared in schema\n  .spec.strategies: field not declared in schema", "unknown-field"],
  ["The CustomResourceDefinition \"stores.example.com\" is invalid: \n* spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of 1.4x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)\n* spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema", "rule-cost"],
  ["The Store \"a\" is invalid: \n* spec.s3: Invalid value: \"null\": spec.s3 in body must be of type object: \"null\"\n* <nil>: Invalid value: \"null\": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation", "null"],
  ["The PersistentVolume \"data\" is invalid: spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n  core.PersistentVolumeSource{\n- \tHostPath: &core.HostPathVolumeSource{Path: \"/a\"},\n", "immutable"],
  ["The Pod \"web\" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`", "immutable"],
  ["error: error validating \"web.yaml\": error validating data: ValidationError(Deployment.spec.strategy): invalid type for io.k8s.api.apps.v1.DeploymentStrategy: got \"string\", expected \"map\"; if you choose to ignore these errors, turn validation off with --validate=false", "decode"],
  ["Error from server (BadRequest): error when creating \"deploy.yaml\": Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string", "decode"],
  ["W1130 12:00:00.000000       1 warnings.go:70] unknown field \"spec.versions[0].schema.openAPIV3Schema.properties.spec.x-kubernetes-unions\"", "unknown-field"],
  ["The HTTPRoute \"x\" is invalid: spec.rules[0].filters[0]: Invalid value: \"object\": exactly one of the fields in [requestMirror urlRewrite] must be set", "exactly-one"],
  ["GitRepository.source.toolkit.fluxcd.io \"x\" is invalid: spec.ref: Invalid value: at most one of the fields in [branch tag] may be set", "exactly-one"],
  ["The SecretStore \"aws\" is invalid: spec.provider: Too many: 2: must have at most 1 items", "one-of"],
  ["StatefulSet.apps \"db\" is invalid: spec.updateStrategy.rollingUpdate: Invalid value: apps.RollingUpdateStatefulSetStrategy{Partition:0, MaxUnavailable:(*intstr.IntOrString)(nil)}: only allowed for updateStrategy 'RollingUpdate'", "on-delete"],
  ["{\"level\":\"error\",\"ts\":\"2026-01-01T00:00:00Z\",\"msg\":\"Reconciler error\",\"controller\":\"web\",\"error\":\"Deployment.apps \\\"web\\\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'\"}", "recreate"],
  ["The Deployment “web” is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy ‘type’ is ‘Recreate’", "recreate"],
  ["rollingUpdate may not be specified when strategy type is Recreate helm", "recreate"],
]);

/** Returns the sentences of errors, each with its page: the titles of the summary, and headings below them. */
async function sentences() {
  const errors = join(import.meta.dirname, "../../docs/errors");
  const found = [];
  for (const name of (await readdir(errors)).filter((name) => name !== "index.md")) {
    const text = await readFile(join(errors, name), "utf8");
    for (const [, , said = ""] of text.matchAll(/^##? (`+)(.+)\1$/gm)) {
      found.push({ said, page: `errors/${name.replace(".md", "")}` });
    }
  }
  return found;
}

/**
 * Returns the pages that search finds, the best one first.
 * @param {import("playwright-core").Page} page
 * @param {string} words
 */
async function search(page, words) {
  await page.locator("#mdbook-searchbar").fill(words);
  await page.locator("#mdbook-searchbar").press("End");
  await page.locator("#mdbook-searchresults-header", { hasText: `for '${words}'` }).waitFor();
  return page.locator("#mdbook-searchresults a").evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));
}

test("search finds the page of each sentence first, also in a line with other names", async () => {
  const { page, faults } = await open(PAGES.home);
  await page.locator("#mdbook-search-toggle").click();
  const all = await sentences();
  assert.ok(all.length >= 27, `only ${all.length} sentences`);
  // A browser pastes several lines as one.
  const lines = LINES.map(([said, name]) => ({ said: said.replaceAll("\n", "").trim(), page: `errors/${name}` }));
  const named = all.map(({ said, page }) => ({ said: `The CronJob "report" is invalid: spec.jobs[0]: Invalid value: "": ${said}`, page }));
  const wrong = [];
  for (const { said, page: wanted } of [...all, ...named, ...lines]) {
    const found = await search(page, said);
    if (!found[0]?.startsWith(wanted)) wrong.push(`${said}: ${found.slice(0, 3).map((link) => link.replace(/\?[^#]*/, ""))}`);
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("search finds pages with all words, and not with any", async () => {
  const { page } = await open(PAGES.home);
  await page.locator("#mdbook-search-toggle").click();
  // The words to highlight are in the links.
  const places = async (/** @type {string} */ words) => (await search(page, words)).map((link) => link.replace(/\?[^#]*/, ""));
  const [both, one] = [await places("minAvailable maxUnavailable"), await places("maxUnavailable")];
  assert.ok(both.length > 0 && both.length < one.length, `${both.length} ${one.length}`);
  assert.deepEqual(both.filter((link) => !one.includes(link)), []);
  await page.context().close();
});

test("search of nonsense finds nothing, and a search goes on", async () => {
  const { page, faults } = await open(PAGES.home);
  await page.locator("#mdbook-search-toggle").click();
  for (const nonsense of ["qwzx vbnm", "{{ <qwzx> & \\ }}", "[[((", "zz".repeat(5_000)]) assert.deepEqual(await search(page, nonsense), [], nonsense);
  assert.ok((await search(page, "conflict")).length > 0);
  assert.deepEqual(faults, []);
  await page.context().close();
});

test("search finds what a platform team looks for", async () => {
  const { page, faults } = await open(PAGES.home);
  await page.locator("#mdbook-search-toggle").click();
  for (const [term, wanted] of Object.entries(TERMS)) {
    const found = await search(page, term);
    assert.ok(found.some((link) => link.startsWith(wanted)), `${term}: ${found}`);
  }
  assert.deepEqual(faults, []);
  await page.context().close();
});

for (const colorScheme of THEMES) {
  test(`axe has no serious finding in ${colorScheme}`, async () => {
    for (const path of Object.values(PAGES)) {
      const { page } = await open(path, { colorScheme, viewport: SIZES.desk });
      await page.evaluate(axe);
      const found = await page.evaluate(async () => {
        const { violations, passes } = await /** @type {any} */ (globalThis).axe.run();
        const serious = violations.filter((/** @type {any} */ it) => ["serious", "critical"].includes(it.impact) || it.id.startsWith("landmark") || it.id === "region");
        return {
          passed: passes.map((/** @type {any} */ it) => it.id),
          serious: serious.map((/** @type {any} */ it) => `${it.id}: ${it.nodes.map((/** @type {any} */ node) => node.html.slice(0, 120))}`),
        };
      });
      assert.ok(found.passed.includes("color-contrast"), `${path}: contrast was not judged`);
      assert.deepEqual(found.serious, [], path);
      await page.context().close();
    }
  });
}

test("a wide table on a phone keeps its first column", async () => {
  const { page } = await open(PAGES.choosing, { viewport: SIZES.phone });
  const table = page.locator(".table-wrapper").nth(2);
  const first = table.locator("tbody td").first();
  const before = await first.boundingBox();
  assert.ok(await table.evaluate((element) => element.scrollWidth > element.clientWidth), "the table is not wide");
  await table.evaluate((element) => element.scrollBy({ left: 200, behavior: "instant" }));
  const after = await first.boundingBox();
  assert.ok(await table.evaluate((element) => element.scrollLeft) > 0);
  assert.equal(Math.trunc((after?.x ?? 0) - (before?.x ?? 0)) + 0, 0);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page itself scrolls sideways");
  await page.context().close();
});

test("the YAML of a heredoc is highlighted", async () => {
  const { page } = await open(PAGES.start);
  const code = page.locator("code.language-sh", { hasText: "kind: CustomResourceDefinition" });
  assert.ok((await code.locator(".hljs-attr").allTextContents()).includes("apiVersion:"));
  const source = await readFile(join(import.meta.dirname, "../../docs/guide/getting-started.md"), "utf8");
  assert.ok(source.includes(await code.textContent() ?? "-"), "the text of the block has changed");
  await page.context().close();
});

for (const [size, viewport] of Object.entries(SIZES)) {
  test(`screenshots of a ${size}`, async () => {
    for (const colorScheme of THEMES) {
      for (const [name, path] of Object.entries(PAGES)) {
        const { page, faults } = await open(path, { colorScheme, viewport });
        await page.screenshot({ path: join(screenshots, `book-${name}-${size}-${colorScheme}.png`) });
        assert.deepEqual(faults, []);
        await page.context().close();
      }
    }
  });
}

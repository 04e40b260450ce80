// The browser of the tests, and the served site.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { createRequire } from "node:module";
import { after, before } from "node:test";
import { chromium } from "playwright-core";
import { serve } from "../serve.mjs";

const BINARIES = ["chromium", "chromium-browser", "google-chrome"];

/** Longest wait for a condition, in milliseconds: a machine may have other work. */
const LONGEST_WAIT = 180_000;

/** @param {string} name */
function required(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: run \`make site-check\``);
  return value;
}

export const site = required("KUBE_UNIONS_SITE");
export const screenshots = required("KUBE_UNIONS_SCREENSHOTS");

/** Starts the server and the browser before the tests of a file. */
export function browser() {
  /** @type {import("playwright-core").Browser} */
  let chrome;
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  before(async () => {
    await mkdir(screenshots, { recursive: true });
    server = await serve(site, 0);
    const folders = (process.env["PATH"] ?? "").split(delimiter);
    const found = BINARIES.flatMap((name) => folders.map((folder) => join(folder, name))).find(existsSync);
    assert.ok(found, `none of ${BINARIES.join(", ")} is on PATH: run \`make site-browser\``);
    // Root, as in a container, has no sandbox.
    chrome = await chromium.launch({ executablePath: found, args: ["--no-sandbox"] });
  });
  after(async () => {
    await chrome?.close();
    server?.close();
  });
  /** @param {import("playwright-core").BrowserContextOptions} [options] */
  const context = async (options) => {
    const context = await chrome.newContext({ baseURL: server.url, ...options });
    context.setDefaultTimeout(LONGEST_WAIT);
    return context;
  };
  return {
    context,
    /**
     * Opens the playground and waits for its first answer. Faults are the errors that the page reports.
     * @param {{ fragment?: string, options?: import("playwright-core").BrowserContextOptions }} [asked]
     */
    async playground({ fragment = "", options } = {}) {
      const page = await (await context({ permissions: ["clipboard-read", "clipboard-write"], ...options })).newPage();
      /** @type {string[]} */
      const faults = [];
      page.on("pageerror", (error) => faults.push(error.message));
      page.on("console", (message) => {
        if (message.type() === "error") faults.push(message.text());
      });
      await page.goto(`playground/${fragment}`);
      await answers(page, 1);
      return { page, faults, origin: server.url };
    },
  };
}

/**
 * Waits until the page has shown so many answers and awaits no other.
 * @param {import("playwright-core").Page} page
 * @param {number} fewest
 */
export async function answers(page, fewest) {
  await page.waitForFunction((fewest) => {
    const { state, answers } = document.body.dataset;
    return state === "ready" && Number(answers ?? 0) >= fewest;
  }, fewest);
}

/** @param {import("playwright-core").Page} page */
export async function answered(page) {
  return Number(await page.evaluate(() => document.body.dataset["answers"] ?? "0"));
}

/**
 * Shows the tab of an input.
 * @param {import("playwright-core").Page} page
 * @param {string} input
 */
async function show(page, input) {
  const tab = page.locator(`#tab-${input}`);
  if (await tab.count()) await tab.click();
}

/**
 * Replaces the text of an editor as a paste does, and waits for the answer.
 * @param {import("playwright-core").Page} page
 * @param {string} input
 * @param {string} text
 */
export async function paste(page, input, text) {
  if ((await textOf(page, input)) === text) return;
  const before = await answered(page);
  await page.evaluate(([input, text]) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    const root = /** @type {HTMLElement} */ (document.getElementById(input)).shadowRoot;
    const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    root?.querySelector(".cm-content")?.dispatchEvent(event);
  }, /** @type {const} */ ([input, text]));
  await answers(page, before + 1);
}

/**
 * Writes a screenshot of what is in view.
 * @param {import("playwright-core").Page} page
 * @param {string} name
 */
export async function photograph(page, name) {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await page.screenshot({ path: join(screenshots, `${name}.png`) });
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * Returns the serious and critical findings of axe, each with its element.
 * @param {import("playwright-core").Page} page
 * @returns {Promise<string[]>}
 */
export async function findings(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => /** @type {any} */ (window).axe.run());
  const serious = violations.filter((/** @type {any} */ { impact }) => ["serious", "critical"].includes(impact));
  return serious.flatMap((/** @type {any} */ { id, nodes }) => nodes.map((/** @type {any} */ { target, any }) => `${id}: ${target.flat().join(" ")}: ${any[0]?.message}`));
}

/**
 * Returns the text of an editor, also the lines that are not drawn.
 * @param {import("playwright-core").Page} page
 * @param {string} input
 */
export async function textOf(page, input) {
  await show(page, input);
  await page.locator(`#${input} .cm-content`).focus();
  await page.keyboard.press("Control+A");
  const copied = await page.evaluate((input) => {
    const root = /** @type {HTMLElement} */ (document.getElementById(input)).shadowRoot;
    const data = new DataTransfer();
    root?.querySelector(".cm-content")?.dispatchEvent(new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true }));
    return data.getData("text/plain");
  }, input);
  return copied;
}

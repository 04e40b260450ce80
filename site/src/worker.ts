// Runs the engine beside the page, so that typing never waits for it.

import init, { answer } from "../engine/engine.js";

export interface Task {
  id: number;
  question: string;
}

export type Result = { id: number; answer: string } | { id: number; failure: string };

const ready = init({ module_or_path: new URL("engine_bg.wasm", import.meta.url) });
// Each answer tells the failure.
ready.catch(() => {});

self.addEventListener("message", async ({ data: { id, question } }: MessageEvent<Task>) => {
  let result: Result;
  try {
    await ready;
    result = { id, answer: answer(question) };
  } catch (error) {
    result = { id, failure: error instanceof Error ? error.message : String(error) };
  }
  self.postMessage(result);
});

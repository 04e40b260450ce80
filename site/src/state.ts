// The inputs in the fragment of a link. A browser never sends the fragment to a server.
//
// `#1.` is followed by the JSON of the question, compressed with raw DEFLATE, in base64url. The number is the version of the format.

import { INPUTS, type Question } from "./answer.js";

const VERSION = "1";

/** Longest fragment that is written. Longer links do not survive chats and issue trackers. */
export const LONGEST_FRAGMENT = 32_000;

/** Most bytes of a decompressed fragment: three inputs of 2 MiB, and their escapes. */
const LARGEST_STATE = 8 << 20;

export async function encode(question: Question): Promise<string> {
  const text = new Blob([JSON.stringify(question)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(text).arrayBuffer());
  const fragment = `${VERSION}.${base64url(bytes)}`;
  if (fragment.length > LONGEST_FRAGMENT) {
    throw new Error(
      `the inputs are too long for a link: it would have ${fragment.length} characters, and at most ${LONGEST_FRAGMENT} are allowed`,
    );
  }
  return fragment;
}

export async function decode(fragment: string): Promise<Question> {
  const [version, data] = fragment.split(".", 2);
  if (version !== VERSION || data === undefined) {
    throw new Error("this link is of another version of the playground, or is no link of the playground");
  }
  let state: unknown;
  try {
    state = JSON.parse(await inflated(bytes(data)));
  } catch (error) {
    throw new Error(`this link is damaged (${error instanceof Error ? error.message : error}): copy it again as a whole`);
  }
  return question(state);
}

async function inflated(data: Uint8Array<ArrayBuffer>): Promise<string> {
  const reader = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [text, size] = ["", 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.byteLength;
    if (size > LARGEST_STATE) {
      await reader.cancel();
      throw new Error(`it has more than ${LARGEST_STATE} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}

function question(state: unknown): Question {
  const given = state as Partial<Record<string, unknown>> | null;
  const found = INPUTS.map((name) => [name, given?.[name]] as const);
  if (found.some(([, text]) => typeof text !== "string")) {
    throw new Error("this link has no inputs: copy it again as a whole");
  }
  return Object.fromEntries(found) as Question;
}

function base64url(data: Uint8Array): string {
  let text = "";
  for (const byte of data) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
}

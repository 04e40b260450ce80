// The inputs in the fragment of a link. A browser never sends the fragment to a server.
//
// `#1.` is followed by the JSON of the question, compressed with raw DEFLATE, in base64url. The number is the version of the format.

import { questionOf, type Question } from "./answer.js";
import { reason } from "./page.js";

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
      `the inputs are too long for a link: it would have ${fragment.length} characters, and at most ${LONGEST_FRAGMENT} are allowed; ` +
        "shorten them, or download each and send the files",
    );
  }
  return fragment;
}

export async function decode(fragment: string): Promise<Question> {
  const [, version, data = ""] = /^(\d+)\.(.*)$/s.exec(fragment) ?? [];
  if (version === undefined) throw new Error("this is no link of the playground: pick a sample, or copy the link again as a whole");
  if (version !== VERSION) {
    const age = Number(version) < Number(VERSION) ? "an older" : "a newer";
    throw new Error(`this link is from ${age} release of the playground, and cannot be read here: ask for a new link, or for the inputs as files`);
  }
  if (fragment.length > LONGEST_FRAGMENT) {
    throw new Error(
      `this link has ${fragment.length} characters, and the playground makes links of at most ${LONGEST_FRAGMENT}: ask for the inputs as files`,
    );
  }
  let state: unknown;
  try {
    state = JSON.parse(await inflated(bytes(data)));
  } catch (error) {
    throw new Error(`this link is damaged, perhaps cut off (${reason(error)}): copy it again as a whole`);
  }
  const question = questionOf(state);
  if (!question) throw new Error("this link has no inputs: copy it again as a whole");
  return question;
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

function base64url(data: Uint8Array): string {
  let text = "";
  for (const byte of data) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
}

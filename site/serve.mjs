// Serves a folder on loopback: `node serve.mjs FOLDER [PORT]`.

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";

/** @type {Record<string, string>} */
const TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
};

/**
 * Starts a server, on any free port for 0.
 * @param {string} folder
 * @param {number} port
 * @returns {Promise<{ url: string, close: () => void }>}
 */
export async function serve(folder, port) {
  const server = createServer(async (request, response) => {
    try {
      const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname));
      let file = join(folder, path);
      if (path.split(sep).includes("..")) throw new Error("outside the folder");
      if ((await stat(file)).isDirectory()) file = join(file, "index.html");
      const { size } = await stat(file);
      response.writeHead(200, {
        "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
        "Content-Length": size,
        "Cache-Control": "no-cache",
      });
      createReadStream(file).pipe(response);
    } catch {
      response.writeHead(404, { "Content-Type": "text/plain" }).end("not found\n");
    }
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", () => resolve(undefined));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no address");
  return {
    url: `http://127.0.0.1:${address.port}/`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

if (process.argv[1] === import.meta.filename) {
  const [folder, port = "8000"] = process.argv.slice(2);
  if (!folder) throw new Error("usage: node serve.mjs FOLDER [PORT]");
  const { url } = await serve(folder, Number(port));
  console.log(`${url} serves ${folder}; the playground is ${url}playground/`);
}

// Elements of the page.

export function element(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element "${id}"`);
  return found;
}

export function say(message: string): void {
  const status = element("status");
  if (status.textContent !== message) status.textContent = message;
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Copies a text, and says so. */
export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied: ${what}.`);
  } catch {
    say("The browser does not let this page copy: use Download.");
  }
}

export function download(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 0);
}

/** Returns the buttons that copy and download a text. */
export function outputs(what: string, name: string, text: () => string): HTMLElement {
  const group = document.createElement("span");
  group.className = "outputs";
  for (const [label, act] of [["Copy", () => void copy(text(), what)], ["Download", () => download(text(), name)]] as const) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-label", `${label}: ${what}`);
    button.addEventListener("click", act);
    group.append(button);
  }
  return group;
}

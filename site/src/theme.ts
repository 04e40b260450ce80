// The theme: that of the system, unless the reader chose one.

const KEY = "kube-unions-theme";

export function followTheme(select: HTMLSelectElement): void {
  const apply = (theme: string) => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  };
  const stored = read();
  select.value = [...select.options].some((option) => option.value === stored) ? stored : "auto";
  apply(select.value);
  select.addEventListener("change", () => {
    apply(select.value);
    write(select.value);
  });
}

// Storage is refused in some private windows. The theme then lasts as long as the page.
function read(): string {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto";
  }
}

function write(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return;
  }
}

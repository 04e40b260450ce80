// The tabs of the inputs, as the ARIA practices describe them: arrows move, and only the chosen tab is in the order of Tab.

import { INPUTS, type InputName } from "./answer.js";
import { element } from "./page.js";

export class Tabs {
  constructor(private readonly onShow: (name: InputName) => void) {
    for (const [index, name] of INPUTS.entries()) {
      const tab = element(`tab-${name}`);
      tab.addEventListener("click", () => this.show(name));
      tab.addEventListener("keydown", (event) => {
        const last = INPUTS.length - 1;
        const next = { ArrowRight: index === last ? 0 : index + 1, ArrowLeft: index === 0 ? last : index - 1, Home: 0, End: last }[event.key];
        const chosen = next === undefined ? undefined : INPUTS[next];
        if (!chosen) return;
        event.preventDefault();
        this.show(chosen);
        element(`tab-${chosen}`).focus();
      });
    }
  }

  show(chosen: InputName): void {
    for (const name of INPUTS) {
      const tab = element(`tab-${name}`);
      tab.setAttribute("aria-selected", String(name === chosen));
      tab.tabIndex = name === chosen ? 0 : -1;
      element(`panel-${name}`).hidden = name !== chosen;
    }
    this.onShow(chosen);
  }
}

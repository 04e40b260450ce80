// The editors. Each is in a shadow root: there CodeMirror adds its styles without <style> elements, which the page's policy forbids.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { unifiedMergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorSelection, EditorState, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Problem } from "./answer.js";

// The colours are the variables of playground.css, which cross the border of a shadow root.
const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--field)", fontSize: "0.85rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.45" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { color: "var(--faint)", backgroundColor: "var(--field)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--active)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selection)",
  },
  ".cm-panels, .cm-tooltip": { color: "var(--text)", backgroundColor: "var(--page)", borderColor: "var(--line)" },
  ".cm-textfield, .cm-button": { color: "var(--text)", background: "var(--field)", borderColor: "var(--line)" },
  ".cm-changedLine": { backgroundColor: "var(--added)" },
  ".cm-deletedChunk": { backgroundColor: "var(--removed)" },
  ".cm-changedText": { background: "var(--added-text)" },
  ".cm-deletedChunk .cm-deletedText": { background: "var(--removed-text)" },
  ".cm-collapsedLines": { color: "var(--faint)", background: "var(--active)" },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"⋯"' },
});

// An editor is as high as its panel, a result as its text.
const filling = EditorView.theme({ "&": { height: "100%" } });
const growing = EditorView.theme({ "&": { maxHeight: "26rem" } });

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--faint)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--key)" },
  { tag: [tags.string, tags.content, tags.number, tags.bool, tags.null], color: "var(--value)" },
]);

function setup(label: string): Extension {
  return [
    lineNumbers(),
    drawSelection(),
    syntaxHighlighting(colours),
    yaml(),
    look,
    // A text that scrolls is reached by Tab.
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
  ];
}

export class Editor {
  readonly view: EditorView;

  constructor(host: HTMLElement, label: string, onChange: () => void) {
    const root = host.attachShadow({ mode: "open" });
    this.view = new EditorView({
      root,
      parent: root,
      extensions: [
        setup(label),
        filling,
        history(),
        foldGutter(),
        indentOnInput(),
        bracketMatching(),
        highlightActiveLine(),
        highlightSelectionMatches(),
        search({ top: true }),
        lintGutter(),
        // Tab moves the focus, as everywhere on the page.
        keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap, ...searchKeymap, ...lintKeymap]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange();
        }),
      ],
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 } });
  }

  /** Marks the lines of problems. Ignores those behind the end: the text may be newer than the answer. */
  mark(problems: Problem[]): void {
    const doc = this.view.state.doc;
    const marks = problems.flatMap((problem): Diagnostic[] => {
      if (problem.line === null || problem.line > doc.lines) return [];
      const line = doc.line(problem.line);
      const from = Math.min(line.from + (problem.column ?? 1) - 1, line.to);
      const severity = problem.severity === "note" ? "info" : problem.severity;
      return [{ from, to: line.to, severity, message: problem.message }];
    });
    marks.sort((one, other) => one.from - other.from);
    this.view.dispatch(setDiagnostics(this.view.state, marks));
  }

  goTo(line: number, column: number): void {
    const { doc } = this.view.state;
    const at = doc.line(Math.min(line, doc.lines));
    const position = Math.min(at.from + column - 1, at.to);
    this.view.dispatch({ selection: EditorSelection.cursor(position), effects: EditorView.scrollIntoView(position, { y: "center" }) });
    this.view.focus();
  }
}

/** A text that cannot be edited, with its differences from another one. */
export class Viewer {
  private readonly view: EditorView;
  text = "";

  constructor(
    private readonly host: HTMLElement,
    private readonly label: string,
  ) {
    const root = host.attachShadow({ mode: "open" });
    this.view = new EditorView({ root, parent: root, state: this.state("", []) });
  }

  /** Shows a text, and nothing for an empty one. */
  show(text: string): void {
    this.host.hidden = text === "";
    this.text = text;
    this.view.setState(this.state(text, []));
  }

  compare(before: string, after: string): void {
    this.host.hidden = false;
    this.text = after;
    const merge = unifiedMergeView({
      original: before,
      mergeControls: false,
      gutter: true,
      collapseUnchanged: { margin: 4, minSize: 8 },
      // Large texts are compared line by line at most.
      diffConfig: { scanLimit: 500, timeout: 100 },
    });
    this.view.setState(this.state(after, merge));
  }

  private state(doc: string, more: Extension): EditorState {
    const extensions = [setup(this.label), growing, EditorState.readOnly.of(true), keymap.of([...defaultKeymap, ...searchKeymap]), more];
    return EditorState.create({ doc, extensions });
  }
}

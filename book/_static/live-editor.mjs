/** The editor of a cell: Python with the house's colours, few keys, and a way out for the keyboard. */

import {
  bracketMatching,
  defaultKeymap,
  EditorState,
  EditorView,
  HighlightStyle,
  history,
  historyKeymap,
  indentOnInput,
  indentUnit,
  indentWithTab,
  keymap,
  lineNumbers,
  Prec,
  python,
  syntaxHighlighting,
  tags,
} from "./vendor/codemirror/codemirror.mjs";

/** @typedef {{run: () => void, runAndGoOn: () => void, changed: (text: string) => void}} Actions */

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], class: "ffn-code-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "ffn-code-string" },
  { tag: [tags.number, tags.bool, tags.null], class: "ffn-code-number" },
  { tag: [tags.comment], class: "ffn-code-comment" },
  {
    tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)],
    class: "ffn-code-name",
  },
]);

/** Tab indents. After Escape it moves on instead, until something is typed or the editor is left. */
const LEAVING = [
  keymap.of([
    {
      key: "Escape",
      run: (view) => {
        view.setTabFocusMode(true);
        return true;
      },
    },
  ]),
  EditorView.domEventHandlers({ blur: (_, view) => void view.setTabFocusMode(false) }),
  EditorView.updateListener.of(({ docChanged, view }) => docChanged && view.setTabFocusMode(false)),
];

/**
 * @param {HTMLElement} parent
 * @param {string} text
 * @param {string} label what the editor is called
 * @param {Actions} actions
 */
export function makeEditor(parent, text, label, { run, runAndGoOn, changed }) {
  const act = (/** @type {() => void} */ action) => () => {
    action();
    return true;
  };
  const extensions = [
    lineNumbers(),
    history(),
    python(),
    bracketMatching(),
    indentOnInput(),
    indentUnit.of("    "),
    syntaxHighlighting(COLOURS),
    Prec.high(
      keymap.of([
        { key: "Shift-Enter", run: act(runAndGoOn) },
        { key: "Mod-Enter", run: act(run) },
      ]),
    ),
    LEAVING,
    keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
    EditorView.contentAttributes.of({
      "aria-label": label,
      "aria-describedby": "live-help-keys",
      // Long lines scroll with the keyboard: said to whoever does not take an editable element for one in reach.
      tabindex: "0",
    }),
    EditorView.updateListener.of(
      ({ docChanged, state }) => docChanged && changed(state.doc.toString()),
    ),
  ];
  return new EditorView({ parent, state: EditorState.create({ doc: text, extensions }) });
}

/**
 * Put another text into an editor, as one step that can be undone.
 * @param {EditorView} view
 * @param {string} text
 */
export function replaceText(view, text) {
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
}

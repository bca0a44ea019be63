/** What book/_static/live-editor.mjs takes from CodeMirror; everything else is left out of the bundle. */

export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { python } from "@codemirror/lang-python";
export {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
export { Compartment, EditorState, Prec } from "@codemirror/state";
export { EditorView, keymap, lineNumbers } from "@codemirror/view";
export { tags } from "@lezer/highlight";

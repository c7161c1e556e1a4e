// Elements and untrusted text. Nothing in this page parses markup: what an agent, a model or a
// program wrote only becomes text nodes.

const $ = (id) => document.getElementById(id);

// Creates an element. Properties: class, text, data (an object), on (listeners by event), attributes.
// Children: elements, and strings, which become text. null and false are left out.
function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "text") element.textContent = value;
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

// Characters that are invisible or reverse the text around them: controls, formats, lone surrogates.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const CONTROLS = { 0: "NUL", 7: "BEL", 8: "BS", 11: "VT", 12: "FF", 13: "CR", 27: "ESC", 127: "DEL" };

function mark(character) {
  const code = character.codePointAt(0);
  if (code === 9 || code === 10) return character;
  const name = CONTROLS[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  return `\u27e8${name}\u27e9`;
}

// Returns a text on one line, with marks for invisible characters.
function line(text) {
  return String(text ?? "").replace(/\s*\n\s*/g, " \u23ce ").replace(INVISIBLE, mark);
}

// Returns a text as nodes: line breaks are kept, invisible characters become coloured marks.
function visible(text) {
  const out = document.createDocumentFragment();
  const whole = String(text ?? "").replace(/\r\n/g, "\n");
  let from = 0;
  for (const found of whole.matchAll(INVISIBLE)) {
    if (found[0] === "\n" || found[0] === "\t") continue;
    if (found.index > from) out.append(whole.slice(from, found.index));
    out.append(h("span", { class: "invisible", text: mark(found[0]) }));
    from = found.index + found[0].length;
  }
  out.append(whole.slice(from));
  return out;
}

const number = new Intl.NumberFormat("en");

// Formats figures as text; unknown ones become an empty string.
const format = {
  count: (n) => (n === null || n === undefined ? "" : number.format(n)),
  reward: (n) => (n === null || n === undefined ? "" : String(Number(n.toFixed(3)))),
  short: (n) => (n === null || n === undefined ? "" : n < 1 && n >= 0.995 ? "0.99+" : n.toFixed(2)),
  percent: (n) => (n === null || n === undefined ? "" : `${n.toFixed(1)} %`),
  mean: (n) => (n === null || n === undefined ? "" : n.toFixed(1)),
  cost: (n) => (n === null || n === undefined ? "" : `$${n < 0.1 ? n.toFixed(4) : n.toFixed(2)}`),
  seconds: (n) => {
    if (n === null || n === undefined) return "";
    return n < 10 ? `${n.toFixed(2)} s` : n < 120 ? `${n.toFixed(0)} s` : `${(n / 60).toFixed(0)} min`;
  },
  tokens: (a, b) => (a === null || a === undefined || b === null || b === undefined
    ? "" : `${number.format(a)} + ${number.format(b)}`),
  end: (end) => String(end ?? "").replaceAll("_", " "),
};

function megabytes(bytes) {
  return `${number.format(Math.ceil(bytes / 1e6))} MB`;
}

function plural(n, one, many = `${one}s`) {
  return `${number.format(n)} ${n === 1 ? one : many}`;
}

const OUTCOMES = {
  solved: { sign: "\u2713", word: "solved" },
  missed: { sign: "\u2717", word: "not solved" },
  failed: { sign: "!", word: "error" },
};

// Returns the outcome of an episode. One that ended in an error of the infrastructure has no result.
function outcome(row) {
  if (row.end === "error" || row.error) return "failed";
  return row.success ? "solved" : "missed";
}

function badge(row, word = false) {
  const kind = outcome(row);
  const { sign, word: name } = OUTCOMES[kind];
  return h("span", { class: `badge ${kind}`, title: name },
    h("span", { "aria-hidden": "true", text: sign }),
    h("span", { class: word ? "" : "hidden", text: word ? ` ${name}` : name }));
}

function setStatus(text) {
  $("status").textContent = text;
}

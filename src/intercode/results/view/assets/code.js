// Colours for code: enough of Bash, SQL and Python to tell words, texts and comments apart. Every
// pattern reads what it has begun in one pass, so that no text can make it slow.

const WORDS = {
  bash: "if then else elif fi for in do done while until case esac function select time return " +
    "break continue exit export local declare unset set source alias cd echo printf read eval exec",
  sql: "select from where group by having order limit offset join inner left right outer full cross " +
    "on using as and or not in exists between like is null distinct union all intersect except " +
    "case when then else end insert into values update set delete create drop alter table view " +
    "index show tables databases describe desc asc use with count sum avg min max cast submit",
  python: "and as assert async await break class continue def del elif else except finally for from " +
    "global if import in is lambda match case nonlocal not or pass raise return try while with " +
    "yield None True False self print",
};

const GRAMMARS = {
  bash: String.raw`(?<comment>(?<![^\s;(|&])#[^\n]*)|(?<text>"(?:\\[^]|[^"\\])*"?|'[^']*'?)|` +
    String.raw`(?<name>\$(?:\{[^}\n]*\}?|\w+|[@*#?$!-]))|(?<option>(?<=\s)--?[A-Za-z][\w-]*)|` +
    String.raw`(?<number>(?<![\w.\/-])\d+(?![\w.\/-]))|(?<sign>[|&;<>]+)|(?<word>[A-Za-z_][\w.-]*)`,
  sql: String.raw`(?<comment>--[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?)|` +
    String.raw`(?<text>"(?:\\[^]|[^"\\])*"?|'(?:\\[^]|[^'\\])*'?)|(?<name>${"`"}[^${"`"}\n]*${"`"}?)|` +
    String.raw`(?<number>\b\d+(?:\.\d+)?\b)|(?<sign>[=<>!]+)|(?<word>[A-Za-z_]\w*)`,
  python: String.raw`(?<comment>#[^\n]*)|` +
    String.raw`(?<text>"""(?:[^"]|"(?!""))*(?:""")?|'''(?:[^']|'(?!''))*(?:''')?|` +
    String.raw`"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?)|(?<name>@[\w.]+)|` +
    String.raw`(?<number>\b\d[\w.]*)|(?<sign>[=<>!+*\/%|&^~-]+)|(?<word>[A-Za-z_]\w*)`,
};

const READERS = Object.fromEntries(Object.entries(GRAMMARS).map(([name, pattern]) => [name, {
  pattern: new RegExp(pattern, "g"),
  words: new Set(WORDS[name].split(" ")),
  fold: name === "sql",
}]));

const LANGUAGES = { bash: "bash", ctf: "bash", sql: "sql", python: "python" };
const LONGEST_COLOURED = 50000; // characters

// Code as nodes with spans of the classes comment, text, name, option, number, sign, keyword.
function coloured(text, environment) {
  const reader = READERS[LANGUAGES[environment]];
  if (!reader || text.length > LONGEST_COLOURED) return shown(text);
  const out = document.createDocumentFragment();
  const put = (kind, piece) => {
    if (kind) out.append(h("span", { class: `c-${kind}` }, shown(piece)));
    else if (piece) out.append(shown(piece));
  };
  let from = 0;
  for (const found of text.matchAll(reader.pattern)) {
    let kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
    if (kind === "word") {
      const word = reader.fold ? found[0].toLowerCase() : found[0];
      kind = reader.words.has(word) ? "keyword" : null;
    }
    if (kind === null) continue;
    put(null, text.slice(from, found.index));
    put(kind, found[0]);
    from = found.index + found[0].length;
  }
  put(null, text.slice(from));
  return out;
}

// Syntax colours for Bash, SQL and Python: keywords, strings, comments and the like. The patterns do
// not backtrack, so that no text can make them slow.

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

const LEXERS = Object.fromEntries(Object.entries(GRAMMARS).map(([name, pattern]) => [name, {
  pattern: new RegExp(pattern, "g"),
  words: new Set(WORDS[name].split(" ")),
  fold: name === "sql",
}]));

const LANGUAGES = { bash: "bash", ctf: "bash", sql: "sql", python: "python" };
const MAX_COLOURED = 50000; // characters

// Returns code as nodes with spans of the classes comment, text, name, option, number, sign, keyword.
function highlight(text, environment) {
  const lexer = LEXERS[LANGUAGES[environment]];
  if (!lexer || text.length > MAX_COLOURED) return visible(text);
  const out = document.createDocumentFragment();
  const append = (kind, piece) => {
    if (kind) out.append(h("span", { class: `c-${kind}` }, visible(piece)));
    else if (piece) out.append(visible(piece));
  };
  let from = 0;
  for (const found of text.matchAll(lexer.pattern)) {
    let kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
    if (kind === "word") {
      const word = lexer.fold ? found[0].toLowerCase() : found[0];
      kind = lexer.words.has(word) ? "keyword" : null;
    }
    if (kind === null) continue;
    append(null, text.slice(from, found.index));
    append(kind, found[0]);
    from = found.index + found[0].length;
  }
  append(null, text.slice(from));
  return out;
}

// The first page: every run with its figures, and the selection of two runs to compare.

const picked = []; // numbers of the runs to compare, at most two

function bar(summary) {
  const outer = h("span", { class: "bar", "aria-hidden": "true" });
  if (summary.success === null) return outer;
  outer.style.setProperty("--value", `${summary.success}%`);
  if (summary.low !== null) {
    outer.style.setProperty("--low", `${summary.low}%`);
    outer.style.setProperty("--high", `${summary.high}%`);
    outer.append(h("span", { class: "interval" }));
  }
  return outer;
}

const NARROW = 640; // pixels: a phone, which shows the name and the success of a run first
let runNames = []; // by the numbers of the runs

const RUN_COLUMNS = [
  { key: "pick", title: "", width: "1.2rem", cell: (run) => pickCheckbox(run) },
  { key: "name", title: "Run", width: "minmax(8rem, 2.4fr)", value: (run) => run.name,
    cell: (run) => [h("strong", { text: line(runNames[run.number]), title: line(run.name) }),
      run.problems.length ? h("span", { class: "note", text: ` ${plural(run.problems.length, "problem")}` }) : null] },
  { key: "dataset", title: "Dataset", width: "minmax(6rem, 1.2fr)", value: (run) => run.metadata.dataset,
    cell: (run) => line(run.metadata.dataset) },
  { key: "agent", title: "Agent", width: "minmax(5rem, .8fr)", value: (run) => run.metadata.agent,
    cell: (run) => line(run.metadata.agent) },
  { key: "model", title: "Model", width: "minmax(5rem, 1.2fr)", value: (run) => run.metadata.model,
    cell: (run) => line(run.metadata.model) },
  { key: "profile", title: "Profile", width: "4.4rem", value: (run) => run.metadata.profile,
    cell: (run) => line(run.metadata.profile) },
  { key: "episodes", title: "Episodes", width: "4.6rem", right: true, first: "-episodes",
    value: (run) => run.summary.episodes, cell: (run) => format.count(run.summary.episodes) },
  { key: "success", title: "Success", width: "10.6rem", first: "-success",
    hint: "Sort by success: over all tasks and epochs, an error counts as not solved; with its 95 % interval",
    value: (run) => run.summary.success, cell: (run) => success(run) },
  { key: "errors", title: "Errors", width: "3.4rem", right: true, first: "-errors",
    value: (run) => run.summary.errors, cell: (run) => format.count(run.summary.errors) },
  { key: "turns", title: "Turns", width: "3.2rem", right: true, first: "-turns",
    value: (run) => run.summary.turns, cell: (run) => format.mean(run.summary.turns) },
  { key: "tokens", title: "Tokens in + out", width: "9rem", right: true, first: "-tokens",
    value: (run) => run.summary.prompt_tokens,
    cell: (run) => format.tokens(run.summary.prompt_tokens, run.summary.completion_tokens) },
  { key: "cost", title: "Cost", width: "4rem", right: true, first: "-cost",
    value: (run) => run.summary.cost, cell: (run) => format.cost(run.summary.cost) },
];

// Returns the success of a run; of a part of it, how much that is.
function success({ pending, summary }) {
  if (pending) return h("span", { class: "dim", text: `so far: ${plural(summary.episodes, "episode")}, ${megabytes(pending)} left to read` });
  const span = summary.low === null ? ""
    : `${summary.solved} of ${summary.counted}; 95 % interval ${format.percent(summary.low)} to ${format.percent(summary.high)}`;
  const most = summary.upper_bound === undefined ? ""
    : ` (at most ${format.percent(summary.upper_bound)} had the ${plural(summary.errors, "error")} been solved)`;
  return h("span", { class: "success", title: span + most }, bar(summary),
    h("span", { text: format.percent(summary.success) + (most ? ` to ${format.percent(summary.upper_bound)}` : "") }),
    h("span", { class: "hidden", text: span + most }));
}

function pickCheckbox(run) {
  return h("input", {
    type: "checkbox", checked: picked.includes(run.number), tabindex: "-1",
    "aria-label": `Compare ${line(run.name)}`, on: { change: () => pick(run) },
  });
}

let afterPick = () => {};

function pick(run) {
  const at = picked.indexOf(run.number);
  if (at >= 0) picked.splice(at, 1);
  else picked.push(run.number);
  if (picked.length > 2) picked.shift();
  afterPick();
}

// Returns the columns with a value in some row, and those that are always shown.
function useful(columns, rows, always = []) {
  return columns.filter((c) => !c.value || always.includes(c.key)
    || rows.some((row) => !["", null, undefined].includes(c.value(row))));
}

// Returns the names without the parts that all of them have; as they are if that makes two alike.
function shortNames(names) {
  const parts = names.map((name) => name.split(/[-/]/));
  const short = parts.map((own) => own.filter((part) => !parts.every((other) => other.includes(part))).join("-"));
  return short.includes("") || new Set(short).size < names.length ? names : short;
}

function runsPage(query) {
  const sort = query.get("sort");
  const narrow = innerWidth < NARROW;
  const names = library.runs.map((run) => run.name);
  runNames = narrow ? shortNames(names) : names;
  const rank = (c) => (narrow ? ["pick", "name", "success"].indexOf(c.key) + 1 || 4 : 0);
  const columns = useful(RUN_COLUMNS, library.runs, ["name", "episodes", "success"])
    .filter((c) => c.key !== "pick" || library.runs.length > 1)
    .sort((a, b) => rank(a) - rank(b));
  const table = new Table({
    label: "Runs", columns, sort,
    open: (run) => go("list", { run: run.number }), keyOf: (run) => run.number,
    onSort: (next) => replace("runs", { sort: next }),
  });
  table.fill(sorted(library.runs, sort, columns));
  const compare = h("button", { type: "button", class: "main", on: { click: () => comparePicked() } });
  const comparePicked = () => {
    if (picked.length === 2) go(`compare/${picked[0]}/${picked[1]}`);
    else setStatus("Choose two runs with x first.");
  };
  afterPick = () => {
    const at = table.at;
    table.fill(table.rows, at);
    compare.textContent = picked.length === 2
      ? `Compare ${library.runs[picked[0]].name} with ${library.runs[picked[1]].name}` : "Compare two runs";
    compare.disabled = picked.length !== 2;
    if (table.element.isConnected) table.choose(at);
  };
  afterPick();
  const episodes = library.rows.length;
  return {
    title: "Runs",
    fixed: true,
    table,
    content: [
      h("div", { class: "lead" },
        h("h1", {}, plural(library.runs.length, "run"), h("small", { text: plural(episodes, "episode") })),
        h("span", { class: "grow" }),
        h("button", { type: "button", on: { click: () => go("list") }, text: "All episodes" }),
        library.runs.length > 1 ? h("button", { type: "button", on: { click: () => go("matrix") }, text: "Tasks \u00d7 runs" }) : null,
        library.runs.length > 1 ? compare : null),
      problems(library.runs),
      table.element,
    ],
    keys: [...table.keys(),
      [["a"], "all episodes", () => go("list")],
      ...(library.runs.length > 1 ? [
        [["x"], "choose the run for comparing", () => pick(table.rows[table.at])],
        [["c"], "compare the two chosen runs", comparePicked],
        [["t"], "tasks \u00d7 runs", () => go("matrix")],
      ] : [])],
    up: null,
  };
}

function problems(runs) {
  const found = runs.flatMap((run) => run.problems.map((text) => `${run.name}: ${text}`));
  if (!found.length) return null;
  return h("details", { class: "warning" },
    h("summary", { text: `${plural(found.length, "problem")} while reading` }),
    h("ul", {}, found.slice(0, 50).map((text) => h("li", { text: line(text) }))));
}

// The metadata of a run, as a list that unfolds.
function metadataList(run) {
  const rows = Object.entries(run.metadata).filter(([, value]) => value !== null && value !== "");
  return h("details", { class: "metadata" },
    h("summary", { text: "Metadata of this run" }),
    h("dl", {}, rows.map(([name, value]) => [
      h("dt", { text: line(name) }),
      h("dd", {}, typeof value === "object"
        ? h("pre", {}, visible(JSON.stringify(value, null, 1))) : line(value)),
    ])));
}

// Tasks × runs: which run of a dataset solves which task.

const SOLVED_BY = {
  none: { word: "by none", of: (row) => row.solved === 0 },
  some: { word: "by some", of: (row) => row.solved > 0 && row.solved < row.known },
  all: { word: "by all", of: (row) => row.solved > 0 && row.solved === row.known },
};

function columnName(n) {
  return (n >= 26 ? columnName(Math.floor(n / 26) - 1) : "") + String.fromCharCode(65 + (n % 26));
}

// Returns the runs of each dataset, those of the dataset with most runs first.
function datasets() {
  const found = new Map();
  for (const run of library.runs) {
    const name = String(run.metadata.dataset ?? "?");
    found.set(name, [...(found.get(name) ?? []), run]);
  }
  return [...found].sort(([, a], [, b]) => b.length - a.length);
}

// Returns a row for each task, with the episodes of each run.
function matrixRows(runs) {
  const sides = runs.map(sideRows);
  const tasks = new Map();
  for (const row of runs.flatMap(counted)) if (!tasks.has(row.task)) tasks.set(row.task, row);
  const rows = [...tasks.values()].map(({ task, index, query }) => {
    const cells = sides.map((side) => [...(side.get(task)?.values() ?? [])]);
    const shares = cells.map(share);
    return { task, index, query, cells, shares,
      known: shares.filter((value) => value !== null).length, solved: shares.filter((value) => value > 0).length };
  });
  return rows.sort((a, b) => a.index - b.index || a.task.localeCompare(b.task, "en", { numeric: true }));
}

function matrixCell(episodes) {
  if (!episodes.length) return h("span", { class: "dim", text: "\u00b7", title: "not played" });
  const solved = episodes.filter((row) => outcome(row) === "solved").length;
  const mixed = solved && solved < episodes.length;
  const sign = mixed ? h("span", { class: "badge", title: `${solved} of ${episodes.length} solved`, text: "\u25d0" })
    : badge(episodes.find((row) => outcome(row) === "missed") ?? episodes[0]);
  return h("a", { href: address(`episode/${episodes[0].run}/${episodes[0].at}`, { run: episodes[0].run }), tabindex: "-1" }, sign);
}

function matrixPage(chosen) {
  const groups = datasets();
  const [name, runs] = groups.find(([dataset]) => dataset === chosen.get("dataset")) ?? groups[0] ?? ["", []];
  const rows = matrixRows(runs);
  const only = Object.hasOwn(SOLVED_BY, chosen.get("only") ?? "") ? chosen.get("only") : "";
  const folder = commonFolder(rows.map((row) => row.task)).length;
  const columns = [
    { key: "task", title: "Task", width: "minmax(9rem, 2fr)", value: (row) => row.task,
      cell: (row) => h("span", { class: "name", title: `${line(row.task)}: ${line(row.query)}`, text: line(row.task.slice(folder)) }) },
    ...runs.map((run, n) => ({ key: `r${n}`, title: columnName(n), width: "2rem", first: `-r${n}`,
      hint: `${line(run.name)}: ${label(run)}`, value: (row) => row.shares[n], cell: (row) => matrixCell(row.cells[n]) })),
    { key: "solved", title: "Solved by", width: "4.6rem", right: true, first: "-solved", value: (row) => row.solved,
      cell: (row) => `${row.solved} of ${row.known}` },
  ];
  const change = (key, value) => {
    if (value) chosen.set(key, value);
    else chosen.delete(key);
    replace("matrix", chosen);
  };
  const table = new Table({
    label: "Tasks and runs", columns, sort: chosen.get("sort"), keyOf: (row) => row.task,
    open: (row) => { const [first] = row.cells.flat(); go(`episode/${first.run}/${first.at}`, { run: first.run }); },
    onSort: (sort) => change("sort", sort),
  });
  table.fill(sorted(rows.filter((row) => !only || SOLVED_BY[only].of(row)), chosen.get("sort"), columns));
  const tab = (kind, text) => h("button", { type: "button", "aria-pressed": String(only === kind), text, on: { click: () => change("only", kind) } });
  const picker = groups.length < 2 ? null : h("select", { data: { key: "dataset" }, "aria-label": "Dataset",
    on: { change: (event) => replace("matrix", { dataset: event.target.value }, "dataset") } },
  groups.map(([dataset, own]) => h("option", { value: dataset, selected: dataset === name, text: `${line(dataset)} (${plural(own.length, "run")})` })));
  return {
    title: "Tasks \u00d7 runs",
    fixed: true,
    table,
    content: [
      h("div", { class: "lead" }, h("h1", {}, plural(rows.length, "task"), h("small", { text: `${plural(runs.length, "run")} of ${line(name)}` })),
        h("span", { class: "grow" }), picker),
      h("details", { class: "metadata", open: runs.length < 6 }, h("summary", { text: "Runs" }),
        h("ul", { class: "legend" }, runs.map((run, n) => h("li", {}, h("b", { text: columnName(n) }), " ",
          h("a", { href: address("list", { run: run.number }), text: line(run.name) }), " ", h("span", { class: "dim", text: label(run) }), " ", success(run))))),
      h("div", { class: "tabs", role: "group", "aria-label": "Which tasks" }, tab("", `all ${rows.length}`),
        Object.entries(SOLVED_BY).map(([kind, { word, of }]) => tab(kind, `${word} ${rows.filter(of).length}`))),
      table.element,
    ],
    keys: table.keys(),
    up: library.runs.length > 1 ? () => go("runs") : null,
  };
}

// Compares two runs task by task.

const KINDS = {
  gained: { word: "gained", sign: "\u25b2", hint: "the second solves it more often" },
  lost: { word: "lost", sign: "\u25bc", hint: "the first solves it more often" },
  same: { word: "equal", sign: "=", hint: "both solve it equally often" },
  missing: { word: "in one only", sign: "?", hint: "one of them has no result for it" },
};

function sideRows(run) {
  const tasks = new Map();
  for (const row of counted(run)) {
    if (!tasks.has(row.task)) tasks.set(row.task, new Map());
    tasks.get(row.task).set(row.epoch, row); // the last one recorded counts
  }
  return tasks;
}

function share(rows) {
  return rows?.length ? rows.filter((row) => outcome(row) === "solved").length / rows.length : null;
}

// Returns a row for each task: the episodes of both sides, and how their results compare.
function pairs(a, b) {
  const [first, second] = [sideRows(a), sideRows(b)];
  return [...new Set([...first.keys(), ...second.keys()])].map((task) => {
    const [rowsA, rowsB] = [first, second].map((side) => [...(side.get(task)?.values() ?? [])]);
    const [x, y] = [share(rowsA), share(rowsB)];
    const kind = x === null || y === null ? "missing" : y > x ? "gained" : y < x ? "lost" : "same";
    const either = rowsA[0] ?? rowsB[0];
    return { task, a: rowsA, b: rowsB, x, y, kind, query: either.query, group: either.group, hardness: either.hardness };
  });
}

// Returns the conditions in which two runs differ and without which they should not be compared.
function mismatches(a, b) {
  const value = (run, names) => {
    const found = names.map((n) => run.metadata[n]).find((v) => v !== null && v !== undefined);
    return found === undefined ? "not recorded" : typeof found === "object" ? JSON.stringify(found) : String(found);
  };
  return Object.entries(library.conditions).map(([name, names]) => [name, value(a, names), value(b, names)])
    .filter(([, x, y]) => x !== y);
}

function warning(a, b) {
  const found = mismatches(a, b);
  if (!found.length) return null;
  return h("details", { class: "warning" },
    h("summary", { text: `Not the same conditions: ${found.map(([name]) => name).join(", ")}` }),
    h("table", {}, h("thead", {}, h("tr", {}, ["", "A", "B"].map((t) => h("th", { scope: "col", text: t })))),
      h("tbody", {}, found.map(([name, x, y]) => h("tr", {}, h("th", { scope: "row", text: line(name) }), h("td", { text: line(x) }), h("td", { text: line(y) }))))));
}

function resultCell(rows) {
  if (!rows.length) return h("span", { class: "dim", text: "none" });
  if (rows.length === 1) return [badge(rows[0]), h("span", { class: "dim", text: ` ${plural(rows[0].turns, "turn")}, ${format.short(rows[0].reward)}` })];
  const solved = rows.filter((row) => outcome(row) === "solved").length;
  const sign = solved && solved < rows.length ? h("span", { class: "badge", "aria-hidden": "true", text: "\u25d0" })
    : badge({ success: solved > 0, end: "" });
  return [sign, ` ${solved} of ${rows.length}`];
}

const PAIR_COLUMNS = [
  { key: "kind", title: "Change", width: "6.6rem", hint: "Sort by the change of the result",
    value: (pair) => Object.keys(KINDS).indexOf(pair.kind),
    cell: (pair) => h("span", { class: `kind ${pair.kind}`, title: KINDS[pair.kind].hint, text: `${KINDS[pair.kind].sign} ${KINDS[pair.kind].word}` }) },
  { key: "task", title: "Task", width: "minmax(9rem, 1.2fr)", value: (pair) => pair.task, cell: (pair) => h("span", { title: line(pair.task), text: line(pair.task.slice(pair.folder)) }) },
  { key: "query", title: "Query", width: "minmax(10rem, 3fr)", cell: (pair) => h("span", { class: "dim", text: line(pair.query).slice(0, 300) }) },
  { key: "group", title: "Group", width: "7rem", value: (pair) => pair.group, cell: (pair) => line(pair.group) },
  { key: "hardness", title: "Hardness", width: "5rem", value: (pair) => hardnessRank(pair.hardness), cell: (pair) => line(pair.hardness) },
  { key: "a", title: "A", width: "9rem", first: "-a", value: (pair) => pair.x, cell: (pair) => resultCell(pair.a) },
  { key: "b", title: "B", width: "9rem", first: "-b", value: (pair) => pair.y, cell: (pair) => resultCell(pair.b) },
];

// Describes the test of a difference in success that `intercode compare` makes.
function testText(test) {
  if (!test) return "";
  const p = test.p >= 0.001 ? test.p.toFixed(4) : test.p.toExponential(1);
  return `${test.method} of success over ${plural(test.tasks, "task")} in both: p = ${p}`;
}

async function comparePage(first, second, chosen) {
  const [a, b] = [library.runs[first], library.runs[second]];
  if (!a || !b) throw new Error("There is no such run.");
  const all = pairs(a, b);
  const folder = commonFolder(all.map((pair) => pair.task)).length;
  for (const pair of all) pair.folder = folder;
  const test = testText(await source.test(first, second));
  const counts = Object.fromEntries(Object.keys(KINDS).map((k) => [k, all.filter((p) => p.kind === k).length]));
  const only = chosen.get("only");
  const here = `compare/${first}/${second}`;
  const open = (pair) => {
    const rowA = pair.a[0];
    const rowB = pair.b.find((row) => row.epoch === rowA?.epoch) ?? pair.b[0];
    lastOpened = pair.task;
    if (rowA && rowB) go(`side-by-side/${rowA.run}/${rowA.at}/${rowB.run}/${rowB.at}`, chosen);
    else go(`episode/${(rowA ?? rowB).run}/${(rowA ?? rowB).at}`, { run: (rowA ?? rowB).run });
  };
  const columns = useful(PAIR_COLUMNS, all, ["kind", "task", "a", "b"]);
  const table = new Table({
    label: "Tasks of both runs", columns, sort: chosen.get("sort") ?? "kind", open, keyOf: (pair) => pair.task,
    onSort: (sort) => replace(here, { ...Object.fromEntries(chosen), sort }),
    rowClass: (pair) => `pair-${pair.kind}`,
  });
  const rows = sorted(all.filter((p) => !only || p.kind === only), chosen.get("sort") ?? "kind", columns);
  table.fill(rows, Math.max(0, rows.findIndex((p) => p.task === lastOpened)));
  const tab = (kind, text) => h("button", { type: "button", "aria-pressed": String((only ?? "") === kind), text,
    on: { click: () => replace(here, { ...(chosen.get("sort") ? { sort: chosen.get("sort") } : {}), ...(kind ? { only: kind } : {}) }) } });
  const side = (letter, run) => h("div", { class: "side" }, h("b", { text: letter }), h("span", { text: line(run.name) }),
    h("span", { class: "dim", text: label(run) }), success(run));
  return {
    title: `${line(a.name)} and ${line(b.name)}`,
    fixed: true,
    table,
    content: [
      h("div", { class: "lead sides" }, h("h1", { class: "hidden", text: "Two runs, task by task" }), side("A", a), side("B", b),
        h("button", { type: "button", text: "Swap", on: { click: () => replace(`compare/${second}/${first}`, chosen) } })),
      test ? h("p", { class: "test", title: "As in intercode compare, which also gives intervals", text: test }) : null,
      warning(a, b),
      h("div", { class: "tabs", role: "group", "aria-label": "Which tasks" }, tab("", `all ${all.length}`),
        Object.entries(KINDS).map(([kind, { sign, word }]) => tab(kind, `${sign} ${word} ${counts[kind]}`))),
      table.element,
    ],
    keys: table.keys(),
    up: () => go("runs"),
  };
}

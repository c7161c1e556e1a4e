// The list of episodes, filtered and sorted.

function hasSeveralValues(key) {
  let first;
  for (const row of library.rows) {
    if (first === undefined) first = row[key];
    else if (row[key] !== first) return true;
  }
  return false;
}

function marksOf(row) {
  const out = [];
  if (row.parent !== null) out.push(["branch", `branch of ${row.parent} after turn ${row.branched_at}`]);
  if (row.refused) out.push(["refused", plural(row.refused, "refused action")]);
  if (row.human) out.push(["human", `a human acted in ${plural(row.human, "turn")}`]);
  if (row.timed_out) out.push(["timed out", plural(row.timed_out, "action") + " ran too long"]);
  if (row.cut) out.push(["cut", `the model was not sent everything in ${plural(row.cut, "turn")}`]);
  if (row.attempts > 1) out.push([`attempt ${row.attempts}`, "earlier attempts ended in errors of the infrastructure"]);
  if (row.replaced) out.push(["retried", "a later attempt at this episode ended without an error"]);
  return out.map(([word, title]) => h("span", { class: "chip", title, text: word }));
}

// Returns by what hardness is sorted: easy to extra, everything else by name.
function hardnessRank(hardness) {
  const n = ["easy", "medium", "hard", "extra"].indexOf(hardness);
  return n < 0 ? hardness : `${n}`;
}

const right = (key, title, width, cell, value = (row) => row[key]) => (
  { key, title, width, right: true, first: `-${key}`, cell, value });

const LIST_COLUMNS = [
  { key: "success", title: "", width: "2.4rem", hint: "Sort by result", cell: (row) => badge(row),
    value: (row) => ["failed", "missed", "solved"].indexOf(outcome(row)) },
  { key: "task", title: "Task", width: "minmax(8rem, 1fr)", value: (row) => row.task,
    cell: (row) => taskCell(row) },
  { key: "query", title: "Query", width: "minmax(11rem, 3fr)",
    cell: (row) => [marksOf(row), h("span", { class: "dim", text: line(row.query).slice(0, 300) })] },
  { key: "run", title: "Run", width: "minmax(6rem, .8fr)", value: (row) => library.runs[row.run].name,
    cell: (row) => line(library.runs[row.run].name) },
  { key: "group", title: "Group", width: "4.5rem", value: (row) => row.group, cell: (row) => line(row.group) },
  { key: "hardness", title: "Hardness", width: "4.8rem", cell: (row) => line(row.hardness),
    value: (row) => hardnessRank(row.hardness) },
  right("epoch", "Epoch", "3.2rem", (row) => format.count(row.epoch)),
  { key: "end", title: "Ended", width: "6.4rem", value: (row) => row.end, cell: (row) => format.end(row.end) },
  right("reward", "Score", "3.6rem", (row) => (outcome(row) === "failed" ? "" : format.short(row.reward))),
  right("turns", "Turns", "3.2rem", (row) => format.count(row.turns)),
  right("invalid", "Errors", "3.4rem", (row) => (row.invalid ? format.count(row.invalid) : "")),
  right("tokens", "Tokens", "4.6rem",
    (row) => (row.prompt_tokens === null || row.completion_tokens === null
      ? "" : format.count(row.prompt_tokens + row.completion_tokens)),
    (row) => (row.prompt_tokens === null || row.completion_tokens === null
      ? null : row.prompt_tokens + row.completion_tokens)),
  right("cost", "Cost", "4rem", (row) => format.cost(row.cost)),
  right("seconds", "Time", "4rem", (row) => format.seconds(row.seconds)),
];

let listFolder = ""; // what the names of all listed tasks begin with, which rows leave out

function taskCell(row) {
  const name = h("span", { class: "name", title: line(row.task), text: line(row.task.slice(listFolder.length)) });
  if (row.depth) {
    name.classList.add("fork");
    name.style.setProperty("--depth", row.depth);
  }
  return name;
}

function listColumns(chosen) {
  return useful(LIST_COLUMNS, library.rows, ["success", "task"]).filter((c) => {
    if (c.key === "run") return hasSeveralValues("run") && !chosen.get("run");
    return !["invalid", "epoch"].includes(c.key) || library.rows.some((row) => row[c.key]);
  });
}

// Returns the rows of the list that an address describes, in its order.
function listed(chosen) {
  return sorted(filtered(chosen), chosen.get("sort"), LIST_COLUMNS);
}

function listPage(chosen) {
  const columns = listColumns(chosen);
  const count = h("h1");
  const run = runOf(chosen.get("run"));
  listFolder = commonFolder((run?.rows ?? library.rows).map((row) => row.task));
  const whole = run ? success(run) : null; // the figures of the run, not of a part of it
  const table = new Table({
    label: "Episodes", columns, sort: chosen.get("sort"), keyOf: (row) => `${row.run}/${row.at}`,
    open: (row) => openRow(row, chosen),
    onSort: (next) => change("sort", next),
    rowClass: (row) => `${outcome(row)} ${row.replaced ? "replaced" : ""}`,
  });
  const redraw = (at = 0) => {
    table.fill(listed(chosen), at);
    const solved = table.rows.filter((row) => outcome(row) === "solved").length;
    count.replaceChildren(plural(table.rows.length, "episode"),
      h("small", { text: `${format.count(solved)} solved` }));
    if (whole) whole.hidden = table.rows.length < run.rows.length;
    empty.hidden = table.rows.length > 0;
    table.element.hidden = !empty.hidden;
  };
  const change = (key, value) => {
    if (value === "" || value === null) chosen.delete(key);
    else chosen.set(key, value);
    if (key === "q") { // the field keeps the focus
      updateAddress("list", chosen);
      redraw();
      return;
    }
    replace("list", chosen, key);
  };
  const empty = h("p", { class: "empty", hidden: true },
    library.rows.length ? "No episode matches. " : "No episode has ended yet. ",
    h("button", { type: "button", text: "All episodes", on: { click: () => replace("list", {}) } }));
  redraw();
  const previous = table.rows.findIndex((row) => `${row.run}/${row.at}` === lastOpened);
  if (previous > 0) table.fill(table.rows, previous);
  return {
    title: run ? line(run.name) : "Episodes",
    fixed: true,
    table,
    content: [
      h("div", { class: "lead" }, count, h("span", { class: "grow" }), whole),
      problems(run ? [run] : library.runs),
      run ? metadataList(run) : null,
      filterBar(chosen, change), table.element, empty,
    ],
    keys: [...table.keys(), [["/"], "search", () => $("search").select()]],
    up: library.runs.length > 1 ? () => go("runs") : null,
  };
}

let lastOpened = null;

function openRow(row, chosen) {
  lastOpened = `${row.run}/${row.at}`;
  go(`episode/${row.run}/${row.at}`, chosen);
}

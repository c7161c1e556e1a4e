// The filters of the list. All choices are part of the address.

const CHOICES = [
  { key: "run", title: "Run", of: (row) => String(row.run), name: (v) => runOf(v)?.name ?? v },
  { key: "result", title: "Result", of: outcome, name: (v) => (Object.hasOwn(OUTCOMES, v) ? OUTCOMES[v].word : v) },
  { key: "end", title: "Ended", of: (row) => row.end, name: format.end },
  { key: "group", title: "Group", of: (row) => row.group },
  { key: "hardness", title: "Hardness", of: (row) => row.hardness },
  { key: "agent", title: "Agent", of: (row) => row.agent },
  { key: "model", title: "Model", of: (row) => row.model },
  { key: "tag", title: "Tag", of: (row) => row.tags },
];

const MARKS = [
  { key: "invalid", title: "with errors", of: (row) => row.invalid > 0,
    hint: "A turn's action failed, or held no code" },
  { key: "refused", title: "refused", of: (row) => row.refused > 0,
    hint: "A policy did not let an action through" },
  { key: "timed", title: "timed out", of: (row) => row.timed_out > 0, hint: "An action ran too long" },
  { key: "human", title: "human", of: (row) => row.human > 0, hint: "A human acted in some turn" },
  { key: "cut", title: "cut", of: (row) => row.cut > 0,
    hint: "The model was not sent the whole conversation in some turn" },
  { key: "branch", title: "branches", of: (row) => row.parent !== null,
    hint: "Continued from the middle of another episode" },
  { key: "replaced", title: "retried", of: (row) => row.replaced,
    hint: "Ended in an error, and a later attempt did not" },
];

function valuesOf(choice, row) {
  const value = choice.of(row);
  return Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];
}

// Returns the rows that match the chosen filters.
function filtered(chosen) {
  const choices = CHOICES.filter((c) => chosen.get(c.key));
  const marks = MARKS.filter((m) => chosen.get(m.key) === "1");
  const words = (chosen.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const deep = chosen.get("in") === "all" && search.text === chosen.get("q") ? search.found : null;
  return library.rows.filter((row) => choices.every((c) => valuesOf(c, row).includes(chosen.get(c.key)))
    && marks.every((m) => m.of(row))
    && (deep ? deep[row.run]?.has(row.at) : words.every((w) => searchText(row).includes(w))));
}

function searchText(row) {
  row.searchText ??= [row.task, row.query, row.id, row.error, ...row.tags].join("\n").toLowerCase();
  return row.searchText;
}

// The result of a search in whole episodes, which the source performs.
const search = { text: null, found: null };

async function searchAll(text) {
  setStatus("Searching …");
  const found = await source.search(text);
  search.text = text;
  search.found = found.map((positions) => new Set(positions));
  setStatus("");
}

// The bar of filters: a search field, a select for each column with several values, and checkboxes.
function filterBar(chosen, change) {
  const field = h("input", {
    type: "search", id: "search", data: { key: "q" }, placeholder: "Search tasks and queries", autocomplete: "off",
    "aria-label": "Search tasks and queries", value: chosen.get("q") ?? "",
    on: { input: () => {
      chosen.delete("in");
      everywhere.checked = false;
      change("q", field.value);
    } },
  });
  const everywhere = h("input", {
    type: "checkbox", checked: chosen.get("in") === "all", data: { key: "in" },
    on: { change: () => change("in", everywhere.checked ? "all" : "") },
  });
  return h("form", { class: "filters", role: "search", on: { submit: (event) => event.preventDefault() } },
    h("span", { class: "field" }, field, h("kbd", { text: "/", "aria-hidden": "true" })),
    h("label", { class: "mark", title: "Also in thoughts, actions, output, changed files and messages" },
      everywhere, "in whole episodes"),
    CHOICES.map((choice) => picker(choice, chosen, change)),
    MARKS.map((mark) => toggle(mark, chosen, change)));
}

// Returns the rows to choose from: those of the chosen run, except for the choice of the run.
function base(choice, chosen) {
  return (choice.key === "run" ? null : runOf(chosen.get("run"))?.rows) ?? library.rows;
}

function picker(choice, chosen, change) {
  const counts = new Map();
  for (const row of base(choice, chosen)) {
    for (const value of valuesOf(choice, row)) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const current = chosen.get(choice.key) ?? "";
  if (counts.size < 2 && !current) return null;
  if (current && !counts.has(current)) counts.set(current, 0);
  const name = choice.name ?? ((v) => v);
  const compare = (a, b) => String(a).localeCompare(String(b), "en", { numeric: true });
  const select = h("select", { data: { key: choice.key }, on: { change: () => change(choice.key, select.value) } },
    h("option", { value: "", text: `${choice.title}: any` }),
    [...counts.keys()].sort(compare).map((value) => h("option", {
      value, text: `${line(name(value))} (${format.count(counts.get(value))})`, selected: value === current,
    })));
  return h("label", { class: current ? "on" : "" },
    h("span", { class: "hidden", text: choice.title }), select);
}

function toggle(mark, chosen, change) {
  const count = base(mark, chosen).reduce((n, row) => n + mark.of(row), 0);
  if (!count && !chosen.get(mark.key)) return null;
  const checkbox = h("input", {
    type: "checkbox", checked: chosen.get(mark.key) === "1", data: { key: mark.key },
    on: { change: () => change(mark.key, checkbox.checked ? "1" : "") },
  });
  return h("label", { class: "mark", title: mark.hint }, checkbox, `${mark.title} (${format.count(count)})`);
}

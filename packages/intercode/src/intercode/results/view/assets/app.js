// Navigation: addresses, keyboard shortcuts and the current page. An address is #/page/numbers?choices.

let view = null;

function address(path, choices = {}) {
  const query = new URLSearchParams(choices instanceof URLSearchParams ? choices : Object.entries(choices)).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

function go(path, choices) {
  location.hash = address(path, choices);
}

// As go, without a new entry in the history. keep: the filter that keeps the focus.
function replace(path, choices, keep = null) {
  history.replaceState(null, "", address(path, choices));
  render(keep);
}

function updateAddress(path, choices) {
  history.replaceState(null, "", address(path, choices));
}

async function page(parts, query) {
  const [name, ...numbers] = parts;
  if (config.label) return labelPage(numbers[0]);
  const all = numbers.map(Number);
  const countIs = (n) => all.length === n && all.every((x) => Number.isInteger(x) && x >= 0);
  if (name === "list") {
    if (query.get("in") === "all" && query.get("q") && search.text !== query.get("q")) await searchAll(query.get("q"));
    return listPage(query);
  }
  if (name === "episode" && countIs(2)) return episodePage(...all, query);
  if (name === "compare" && countIs(2)) return comparePage(...all, query);
  if (name === "matrix") return matrixPage(query);
  if (name === "side-by-side" && countIs(4)) return sideBySidePage(...all, query);
  if (name === "runs" || library.runs.length !== 1) return runsPage(query);
  return listPage(query);
}

let requested = 0; // counts page requests: a page that is loaded too late is not shown

// keep: the filter that keeps the focus. place: where the reader of the same page is, from `whereIs`.
async function render(keep = null, place = null) {
  requested += 1;
  const current = requested;
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  let next;
  try {
    next = await page(path.split("/"), new URLSearchParams(query ?? ""));
  } catch (error) {
    next = { title: "Not found", content: [h("p", { class: "empty", text: line(error.message) })], keys: [], up: () => go("runs") };
  }
  if (current !== requested) return;
  view?.table?.close();
  view = next;
  setStatus("");
  document.title = `${view.title} \u2013 InterCode`;
  crumbs();
  const main = $("main");
  main.className = view.fixed ? "fixed" : "";
  main.replaceChildren(...view.content.filter(Boolean));
  main.scrollTop = place?.scrollTop ?? 0;
  const field = keep && main.querySelector(`[data-key="${keep}"]`);
  if (view.table && place) view.table.restore(place.table);
  else if (view.table) view.table.choose(view.table.at, !field);
  if (field) field.focus();
  else if (!place && !view.table?.rows.length) main.focus({ preventScroll: true });
}

function crumbs() {
  const first = library.runs.length > 1 ? "Runs" : "Episodes";
  const here = location.hash.replace(/^#\/?/, "");
  const steps = [h("li", {}, h("a", { href: "#/", text: "InterCode" }))];
  if (library.runs.length > 1 && here && !here.startsWith("runs")) steps.push(h("li", {}, h("a", { href: "#/runs", text: first })));
  const [path, query] = here.split("?");
  const run = path.startsWith("episode/") ? runOf(path.split("/")[1]) : undefined;
  if (run) steps.push(h("li", {}, h("a", { href: `#/list${query ? `?${query}` : ""}`, text: line(new URLSearchParams(query).get("run") ? run.name : "Episodes") })));
  steps.push(h("li", { "aria-current": "page", text: view.title }));
  $("crumbs").replaceChildren(...steps);
}

async function reload() {
  setStatus("Reading …");
  try {
    await (config.label ? loadLabels() : load());
    search.text = null;
    await render();
  } catch (error) {
    setStatus(line(error.message));
  }
}

const ALWAYS = [
  [["Escape"], "go back, or leave the field", () => view?.up?.()],
  [["r"], "load new episodes now", () => config.mode === "served" && reload()],
  [["?"], "show this help", () => help()],
];

const NAMES = { ArrowDown: "\u2193", ArrowUp: "\u2191", ArrowLeft: "\u2190", ArrowRight: "\u2192", Escape: "Esc", PageDown: "Page down", PageUp: "Page up" };

function help() {
  const rows = [...(view?.keys ?? []), ...ALWAYS.filter(([keys]) => keys[0] !== "r" || config.mode === "served")];
  $("help-list").replaceChildren(h("table", {}, h("tbody", {}, rows.map(([keys, text]) => h("tr", {},
    h("th", { scope: "row" }, keys.map((key) => [h("kbd", { text: NAMES[key] ?? key }), " "])), h("td", { text }))))));
  $("help").showModal();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const inField = event.target.closest?.("input[type=search], select, textarea");
  if (inField) {
    if (event.key === "Escape" || (event.key === "Enter" && event.target.matches("input"))) {
      event.preventDefault();
      if (view?.table?.rows.length) view.table.choose(view.table.at);
      else event.target.blur();
    }
    return;
  }
  if (["Enter", " "].includes(event.key) && event.target.closest?.("button, a, summary, input")) return;
  const found = [...(view?.keys ?? []), ...ALWAYS].find(([keys]) => keys.includes(event.key));
  if (!found) return;
  event.preventDefault();
  found[2]();
}

addEventListener("keydown", onKey);
addEventListener("hashchange", () => render());
$("keys").addEventListener("click", help);
$("reload").addEventListener("click", reload);
$("reload").hidden = config.mode !== "served";
reload();

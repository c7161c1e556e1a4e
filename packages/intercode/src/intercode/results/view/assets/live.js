// Loads new episodes while a run goes on. A list changes in place; an episode that is read stays as it is.

const POLL = 2000; // milliseconds between two questions to the server
const PAUSE = 5000; // after a key or a press in a field, before the page changes under it
let touched = -PAUSE;
let timer;

// Returns where the reader is: what is selected, in sight and unfolded.
function whereIs() {
  const main = $("main");
  const active = document.activeElement;
  const selection = active?.matches?.("input[type=search]") ? [active.selectionStart, active.selectionEnd] : null;
  const unfolded = [...main.querySelectorAll("details")].map((details) => details.open);
  return { key: active?.dataset?.key ?? null, selection, unfolded, scrollTop: main.scrollTop, table: view.table.place() };
}

async function update() {
  const before = library.rows.length;
  await load();
  search.text = null;
  if (view?.table) {
    const place = whereIs();
    await render(place.key, place);
    const details = [...$("main").querySelectorAll("details")];
    if (details.length === place.unfolded.length) details.forEach((element, n) => { element.open = place.unfolded[n]; });
    if (place.selection) document.activeElement.setSelectionRange?.(...place.selection);
  }
  if (library.rows.length > before) setStatus(plural(library.rows.length - before, "new episode"));
}

function isBusy() {
  const inField = document.activeElement?.matches?.("input[type=search], select");
  return $("help").open || (inField && performance.now() - touched < PAUSE);
}

// Returns whether the server has more than is shown. While it reads a large run, twice as much counts.
function isMore(state) {
  return state.version !== library.version && (!state.pending || state.episodes > 2 * library.rows.length);
}

async function watch() {
  const began = performance.now();
  let pending = 0;
  try {
    const isAsleep = document.hidden && !library.runs.some((run) => run.pending);
    if (!isAsleep && !isBusy() && library.version) {
      const state = await source.state();
      pending = state.pending;
      if (isMore(state) && !isBusy()) await update();
      if (pending) setStatus(`Reading: ${plural(state.episodes, "episode")}, ${megabytes(pending)} left`);
    }
  } catch {
    // the server has ended, or is being asked too much: the next action of the reader says so
  }
  watchAfter(pending ? 0 : Math.max(POLL, 10 * (performance.now() - began)));
}

function watchAfter(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(watch, milliseconds);
}

for (const event of ["keydown", "pointerdown"]) addEventListener(event, () => { touched = performance.now(); }, true);
if (config.mode === "served") {
  addEventListener("visibilitychange", () => { if (!document.hidden) watchAfter(0); }, true);
  watchAfter(POLL);
}

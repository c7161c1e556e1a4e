// An episode, turn by turn.

const seen = { messages: false }; // what stays chosen from episode to episode

function environmentOf(episode, run) {
  return episode.run.environment ?? run.facts.environment;
}

function fact(name, value) {
  return value === "" || value === null || value === undefined ? null
    : h("div", {}, h("dt", { text: name }), h("dd", {}, value));
}

function heading(episode, row, run) {
  return [
    h("h1", {}, badge(row, true), " ", h("span", { class: "name", text: line(episode.task) }),
      episode.epoch ? h("small", { text: `epoch ${episode.epoch}` }) : null, marksOf(row)),
    h("div", { class: "query" }, block(episode.query, "said", "query")),
    episode.error ? h("div", { class: "warning", role: "note" }, h("b", { text: "Ended in an error: " }), shown(episode.error)) : null,
    h("dl", { class: "about" },
      fact("reward", outcome(row) === "failed" ? "none: not a result" : show.reward(row.reward)),
      fact("turns", show.count(row.turns)), fact("ended", show.end(episode.end)),
      fact("agent", line(row.agent)), fact("model", line(row.model)),
      fact("group", line(episode.group)), fact("hardness", line(episode.hardness)), fact("tags", line(episode.tags.join(", "))),
      fact("tokens", show.tokens(row.prompt_tokens, row.completion_tokens)), fact("cost", show.cost(row.cost)),
      fact("time", show.seconds(row.seconds)), fact("seed", episode.seed === null ? "" : String(episode.seed)),
      fact("id", line(episode.id)), library.runs.length > 1 ? fact("run", line(run.name)) : null),
  ];
}

// The tree that an episode belongs to: what it branched off from, and what branched off from it.
function family(row, chosen) {
  const rows = library.runs[row.run].rows;
  const byId = new Map(rows.filter((r) => r.id).map((r) => [r.id, r]));
  let root = row;
  const met = new Set();
  while (root.parent && byId.has(root.parent) && !met.has(root)) {
    met.add(root);
    root = byId.get(root.parent);
  }
  const drawn = new Set();
  const node = (r) => {
    drawn.add(r);
    const children = r.id ? rows.filter((c) => c.parent === r.id && !drawn.has(c)) : [];
    const name = r.parent === null ? line(r.task) : `branch after turn ${r.branched_at}`;
    const said = `${name}, ${plural(r.turns, "turn")}, reward ${show.reward(r.reward)}`;
    return h("li", {}, badge(r), " ", r === row ? h("b", { "aria-current": "true", text: said })
      : h("a", { href: address(`episode/${r.run}/${r.at}`, chosen), text: said }),
    children.length ? h("ul", {}, children.map(node)) : null);
  };
  const tree = node(root);
  return drawn.size > 1 ? h("section", { class: "family" }, h("h2", { text: `Forks: ${plural(drawn.size, "episode")} of one tree` }), h("ul", {}, tree)) : null;
}

// Other episodes of the same task, to set beside this one.
function others(row) {
  const found = library.rows.filter((r) => r.task === row.task && r !== row && r.parent === null && !r.replaced);
  if (!found.length) return null;
  const select = h("select", { "aria-label": "Set beside another episode of this task", on: { change: () => {
    if (select.value) go(`beside/${row.run}/${row.at}/${select.value}`);
  } } }, h("option", { value: "", text: `Beside \u2026 (${found.length})` }), found.map((r) => h("option", {
    value: `${r.run}/${r.at}`,
    text: `${OUTCOMES[outcome(r)].sign} ${line(library.runs[r.run].name)}${r.epoch || r.run === row.run ? `, epoch ${r.epoch}` : ""}`,
  })));
  return select;
}

function nearest(row) {
  return library.rows.find((r) => r.task === row.task && r.run !== row.run && r.parent === null && !r.replaced)
    ?? library.rows.find((r) => r.task === row.task && r !== row && r.parent === null);
}

async function episodePage(run, at, chosen) {
  const row = rowOf(run, at);
  if (!row) throw new Error("There is no such episode.");
  const episode = await source.episode(run, at);
  const place = library.runs[run];
  const environment = environmentOf(episode, place);
  const turns = episode.steps.map((_, n) => turn(episode, n + 1, environment));
  const list = listed(chosen);
  const here = list.indexOf(row);
  const step = (by) => () => {
    const next = list[here + by];
    if (next && here >= 0) { lastOpened = `${next.run}/${next.at}`; replace(`episode/${next.run}/${next.at}`, chosen); }
    else say(by > 0 ? "This is the last one of the list." : "This is the first one of the list.");
  };
  const press = (text, by) => h("button", { type: "button", disabled: here < 0 || !list[here + by], on: { click: step(by) }, text });
  const said = h("button", { type: "button", "aria-pressed": String(seen.messages), text: "Messages", title: "What the model was told and answered, in each turn",
    on: { click: () => flip() } });
  const body = h("div", { class: `episode ${seen.messages ? "with-messages" : ""}` });
  const flip = () => {
    seen.messages = !seen.messages;
    body.classList.toggle("with-messages", seen.messages);
    said.setAttribute("aria-pressed", String(seen.messages));
  };
  body.append(
    h("div", { class: "lead" }, h("span", { class: "dim", text: here < 0 ? "" : `${show.count(here + 1)} of ${show.count(list.length)}` }),
      press("\u2190 Before", -1), press("Next \u2192", 1), h("span", { class: "grow" }), others(row), said),
    ...heading(episode, row, place).filter(Boolean),
    ...[family(row, chosen)].filter(Boolean),
    ...(turns.length ? turns : [h("p", { class: "empty", text: "No turn was taken." })]));
  const beside = () => {
    const other = nearest(row);
    if (other) go(`beside/${row.run}/${row.at}/${other.run}/${other.at}`);
    else say("No other episode of this task is here.");
  };
  return {
    title: line(episode.task),
    content: [body],
    keys: [...turnKeys(turns),
      [["n", "ArrowRight"], "next episode of the list", step(1)],
      [["p", "ArrowLeft"], "episode before", step(-1)],
      [["m"], "messages with the model", flip],
      [["s"], "beside another episode of the task", beside]],
    up: () => go("list", chosen),
  };
}

function turnKeys(turns) {
  const move = (by) => () => {
    const at = turns.findIndex((t) => t.contains(document.activeElement));
    const next = turns[at < 0 ? (by > 0 ? 0 : turns.length - 1) : Math.max(0, Math.min(turns.length - 1, at + by))];
    next?.focus({ preventScroll: true });
    next?.scrollIntoView({ block: "start" });
  };
  const unfold = () => {
    const buttons = turns.flatMap((t) => [...t.querySelectorAll("button.unfold")]);
    const closed = buttons.filter((b) => b.getAttribute("aria-expanded") === "false");
    for (const button of closed.length ? closed : buttons) button.click();
  };
  const one = () => turns.find((t) => t.contains(document.activeElement))?.querySelector("button.unfold")?.click();
  return [
    [["j"], "next turn", move(1)], [["k"], "turn before", move(-1)],
    [["Enter"], "unfold the turn's long output", one],
    [["o"], "unfold everything, or fold it", unfold],
  ];
}

// Shows an episode turn by turn.

const options = { messages: false }; // choices that are kept from episode to episode

function environmentOf(episode, run) {
  return episode.run.environment ?? run.metadata.environment;
}

function property(name, value) {
  return value === "" || value === null || value === undefined ? null
    : h("div", {}, h("dt", { text: name }), h("dd", {}, value));
}

function heading(episode, row, run) {
  return [
    h("h1", {}, badge(row, true), " ", h("span", { class: "name", text: line(episode.task) }),
      episode.epoch ? h("small", { text: `epoch ${episode.epoch}` }) : null, marksOf(row)),
    h("div", { class: "query" }, block(episode.query, "prose", "query")),
    episode.error ? h("div", { class: "warning", role: "note" }, h("b", { text: "Ended in an error: " }), visible(episode.error)) : null,
    h("dl", { class: "about" },
      property("score", outcome(row) === "failed" ? "none: not a result" : format.reward(row.reward)),
      property("turns", format.count(row.turns)), property("ended", format.end(episode.end)),
      property("agent", line(row.agent)), property("model", line(row.model)),
      property("group", line(episode.group)), property("hardness", line(episode.hardness)), property("tags", line(episode.tags.join(", "))),
      property("tokens", format.tokens(row.prompt_tokens, row.completion_tokens)), property("cost", format.cost(row.cost)),
      property("time", format.seconds(row.seconds)), property("started", line(episode.started)), property("seed", episode.seed === null ? "" : String(episode.seed)),
      property("id", line(episode.id)), library.runs.length > 1 ? property("run", line(run.name)) : null),
  ];
}

// Shows the tree of an episode: the episode that it branched off from, and its own branches.
function family(row, chosen) {
  const rows = library.runs[row.run].rows;
  const byId = new Map(rows.filter((r) => r.id).map((r) => [r.id, r]));
  let root = row;
  const visited = new Set();
  while (root.parent && byId.has(root.parent) && !visited.has(root)) {
    visited.add(root);
    root = byId.get(root.parent);
  }
  const listedRows = new Set();
  const node = (r) => {
    listedRows.add(r);
    const children = r.id ? rows.filter((c) => c.parent === r.id && !listedRows.has(c)) : [];
    const name = r.parent === null ? line(r.task) : `branch after turn ${r.branched_at}`;
    const description = `${name}, ${plural(r.turns, "turn")}, score ${format.reward(r.reward)}`;
    return h("li", {}, badge(r), " ", r === row ? h("b", { "aria-current": "true", text: description })
      : h("a", { href: address(`episode/${r.run}/${r.at}`, chosen), text: description }),
    children.length ? h("ul", {}, children.map(node)) : null);
  };
  const tree = node(root);
  return listedRows.size > 1 ? h("section", { class: "family" }, h("h2", { text: `Forks: ${plural(listedRows.size, "episode")} of one tree` }), h("ul", {}, tree)) : null;
}

// A select of other episodes of the same task, to compare with this one.
function others(row) {
  const found = library.rows.filter((r) => r.task === row.task && r !== row && r.parent === null && !r.replaced);
  if (!found.length) return null;
  const select = h("select", { "aria-label": "Compare with another episode of this task", on: { change: () => {
    if (select.value) go(`side-by-side/${row.run}/${row.at}/${select.value}`);
  } } }, h("option", { value: "", text: `Compare with \u2026 (${found.length})` }), found.map((r) => h("option", {
    value: `${r.run}/${r.at}`,
    text: `${OUTCOMES[outcome(r)].sign} ${line(library.runs[r.run].name)}${r.epoch || r.run === row.run ? `, epoch ${r.epoch}` : ""}`,
  })));
  return select;
}

function nearest(row) {
  return library.rows.find((r) => r.task === row.task && r.run !== row.run && r.parent === null && !r.replaced)
    ?? library.rows.find((r) => r.task === row.task && r !== row && r.parent === null);
}

// A button that plays the episode again, and then shows the gold beside what the agent left.
function goldSection(row, environment) {
  const section = h("section", { class: "gold" });
  const show = async () => {
    button.disabled = true;
    button.textContent = "Playing the episode again \u2026";
    try {
      section.replaceChildren(...goldContent(await source.gold(row.run, row.at), environment));
    } catch (error) {
      button.disabled = false;
      button.textContent = "Show the gold";
      setStatus(error.message);
    }
  };
  const button = h("button", { type: "button", on: { click: show }, title: "Executes the actions again and compares with the gold", text: "Show the gold" });
  section.append(button);
  return section;
}

function goldContent(found, environment) {
  const side = (name, text) => h("div", {}, h("h4", { text: name }), block(text, "output", name));
  return [
    h("h2", { text: "Gold" }), ...found.golds.map((text) => block(text, "code", "gold", (code) => highlight(code, environment))),
    ...found.comparisons.flatMap(({ what, given, expected, is_equal: isEqual }) => (isEqual
      ? [h("h3", { text: `${what}: as expected` }), block(expected, "output", what)]
      : [h("h3", { text: what }), h("div", { class: "line" }, side("the agent's", given), side("expected", expected))])),
    ...found.notes.map((note) => h("p", { class: "warning", text: line(note) })),
  ];
}

async function episodePage(run, at, chosen) {
  await reach(run, at);
  const row = rowOf(run, at);
  const episode = await source.episode(run, at);
  const episodeRun = library.runs[run];
  const environment = environmentOf(episode, episodeRun);
  const turns = episode.steps.map((_, n) => turn(episode, n + 1, environment));
  const list = listed(chosen);
  const here = list.indexOf(row);
  const step = (by) => () => {
    const next = list[here + by];
    if (next && here >= 0) { lastOpened = `${next.run}/${next.at}`; replace(`episode/${next.run}/${next.at}`, chosen); }
    else setStatus(by > 0 ? "This is the last episode of the list." : "This is the first episode of the list.");
  };
  const press = (text, by) => h("button", { type: "button", disabled: here < 0 || !list[here + by], on: { click: step(by) }, text });
  const messagesButton = h("button", { type: "button", "aria-pressed": String(options.messages), text: "Messages", title: "The messages to and from the model in each turn",
    on: { click: () => flip() } });
  const body = h("div", { class: `episode ${options.messages ? "with-messages" : ""}` });
  const flip = () => {
    options.messages = !options.messages;
    body.classList.toggle("with-messages", options.messages);
    messagesButton.setAttribute("aria-pressed", String(options.messages));
  };
  body.append(
    h("div", { class: "lead" }, h("span", { class: "dim", text: here < 0 ? "" : `${format.count(here + 1)} of ${format.count(list.length)}` }),
      press("\u2190 Previous", -1), press("Next \u2192", 1), h("span", { class: "grow" }), others(row), messagesButton),
    ...heading(episode, row, episodeRun).filter(Boolean),
    ...[family(row, chosen), config.gold ? goldSection(row, environment) : null].filter(Boolean),
    ...(turns.length ? turns : [h("p", { class: "empty", text: "No turn was taken." })]));
  const compareNearest = () => {
    const other = nearest(row);
    if (other) go(`side-by-side/${row.run}/${row.at}/${other.run}/${other.at}`);
    else setStatus("There is no other episode of this task.");
  };
  return {
    title: line(episode.task),
    content: [body],
    keys: [...turnKeys(turns),
      [["n", "ArrowRight"], "next episode of the list", step(1)],
      [["p", "ArrowLeft"], "previous episode", step(-1)],
      [["m"], "messages with the model", flip],
      [["s"], "compare with another episode of the task", compareNearest]],
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
    [["j"], "next turn", move(1)], [["k"], "previous turn", move(-1)],
    [["Enter"], "unfold the turn's long output", one],
    [["o"], "unfold everything, or fold it", unfold],
  ];
}

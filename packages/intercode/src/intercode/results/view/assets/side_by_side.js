// Two episodes of one task side by side, turn beside turn.

function sameAction(a, b) {
  return a && b && a.action.trim() === b.action.trim();
}

// Returns the first turn, from 1, in which the actions of two episodes differ; null if there is none.
function firstDifference(a, b) {
  const most = Math.max(a.steps.length, b.steps.length);
  for (let n = 0; n < most; n += 1) if (!sameAction(a.steps[n], b.steps[n])) return n + 1;
  return null;
}

function sideHeader(letter, episode, row, chosen) {
  const run = library.runs[row.run];
  const samples = run.rows.filter((r) => r.task === row.task && r.parent === null && !r.replaced);
  const pickSample = samples.length < 2 ? null : h("select", { "aria-label": `Sample of ${letter}`, on: { change: (event) => chosen(Number(event.target.value)) } },
    samples.map((r) => h("option", { value: r.at, selected: r === row, text: `epoch ${r.epoch} ${OUTCOMES[outcome(r)].sign}` })));
  return h("div", { class: `head ${outcome(row)}` },
    h("h2", {}, h("b", { text: `${letter} ` }), badge(row, true), " ", pickSample),
    h("p", {}, h("a", { href: address(`episode/${row.run}/${row.at}`, { run: row.run }), text: line(run.name) }), " ",
      h("span", { class: "dim", text: [label(run), plural(row.turns, "turn"), `score ${format.reward(row.reward)}`, format.end(row.end),
        format.tokens(row.prompt_tokens, row.completion_tokens) && `${format.tokens(row.prompt_tokens, row.completion_tokens)} tokens`, format.cost(row.cost)].filter(Boolean).join(" \u00b7 ") })),
    episode.error ? h("div", { class: "warning" }, visible(episode.error)) : null);
}

async function sideBySidePage(runA, atA, runB, atB, chosen) {
  await reach(runA, atA);
  await reach(runB, atB);
  const rows = [rowOf(runA, atA), rowOf(runB, atB)];
  const [a, b] = await Promise.all([source.episode(runA, atA), source.episode(runB, atB)]);
  const different = firstDifference(a, b);
  const flipped = outcome(rows[0]) !== outcome(rows[1]);
  const to = (x, y) => replace(`side-by-side/${x.run}/${x.at}/${y.run}/${y.at}`, chosen);
  const environments = [a, b].map((episode, n) => environmentOf(episode, library.runs[rows[n].run]));
  const most = Math.max(a.steps.length, b.steps.length);
  const lines = Array.from({ length: most }, (_, n) => {
    const extra = () => (n + 1 === different ? [h("span", { class: "chip difference", text: "first difference" })] : []);
    return h("section", { class: `line ${n + 1 === different ? "difference" : ""}`, "aria-label": `Turn ${n + 1} of both`, tabindex: "-1" },
      [a, b].map((episode, side) => (episode.steps[n] ? turn(episode, n + 1, environments[side], extra())
        : h("p", { class: "turn none dim", text: n === episode.steps.length ? "ended" : "" }))));
  });
  const words = [flipped ? `Flipped: ${OUTCOMES[outcome(rows[0])].word} in A, ${OUTCOMES[outcome(rows[1])].word} in B.` : "Both have the same outcome.",
    different === null ? "Their actions are the same." : different === 1 ? "They differ from the first turn." : `Their actions are the same up to turn ${different - 1}.`];
  const body = h("div", { class: `episode side-by-side ${options.messages ? "with-messages" : ""}` },
    h("h1", {}, h("span", { class: "name", text: line(a.task) })),
    h("div", { class: "query" }, block(a.query, "prose", "query")),
    a.query === b.query ? null : h("div", { class: "warning", text: "The two episodes have different queries." }),
    h("p", { class: flipped ? "flip" : "dim", text: words.join(" ") }),
    runA === runB ? null : warning(library.runs[runA], library.runs[runB]),
    h("div", { class: "line heads" },
      sideHeader("A", a, rows[0], (at) => to({ run: runA, at }, rows[1])),
      sideHeader("B", b, rows[1], (at) => to(rows[0], { run: runB, at }))),
    lines);
  return {
    title: `${line(a.task)}: two episodes`,
    content: [body],
    keys: [...turnKeys(lines),
      [["m"], "messages with the model", () => { options.messages = !options.messages; body.classList.toggle("with-messages", options.messages); }],
      [["x"], "swap the sides", () => to(rows[1], rows[0])]],
    up: () => (runA === runB ? go("list", { run: runA }) : go(`compare/${runA}/${runB}`, chosen)),
  };
}

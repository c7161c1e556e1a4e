// Labels trajectories by hand. The page knows nothing of rewards until they are asked for.

const LABELS = [["1", "correct", "does what the query asks"], ["2", "incorrect", "does not"],
  ["3", "ambiguous", "the query can be read in two ways, or the outcome is debatable"]];

const labelling = { items: [], file: "", seen: new Set() }; // seen: numbers whose result was shown

async function loadLabels() {
  Object.assign(labelling, await source.request("labels"));
}

function labelAddress(number) {
  return `label/${number + 1}`;
}

// Returns the number of the next trajectory without a label after one, or -1.
function nextUnlabelled(after) {
  const order = [...labelling.items.keys()];
  return [...order.slice(after + 1), ...order.slice(0, after + 1)].find((n) => !labelling.items[n].label) ?? -1;
}

function resultText({ reward: value, parts, end }) {
  const each = Object.entries(parts).map(([name, part]) => `${line(name)} ${format.reward(part)}`).join(", ");
  return `The grader: score ${format.reward(value)}${each ? ` (${each})` : ""}, ended: ${format.end(end)}`;
}

async function labelPage(part) {
  const wanted = Number(part) - 1;
  const number = Number.isInteger(wanted) && wanted in labelling.items ? wanted : Math.max(0, nextUnlabelled(-1));
  const item = await source.request(`labels/${number}`);
  const reason = h("textarea", { rows: "2", "aria-label": "Reason", placeholder: "Reason (e)" });
  reason.value = item.reason;
  const result = h("p", { class: "result", role: "note" });
  const showResult = async () => {
    const found = await source.request(`result/${number}`);
    labelling.seen.add(number);
    result.replaceChildren(visible(resultText(found)));
  };
  const move = (to) => { location.hash = address(labelAddress(to)); };
  const step = (by) => () => {
    if (number + by in labelling.items) move(number + by);
    else setStatus(by > 0 ? "This is the last trajectory." : "This is the first trajectory.");
  };
  let stored = false; // a second key must not change what the first one stored
  const store = async (value) => {
    if (stored) return;
    stored = true;
    try {
      await source.request(`labels/${number}`, { method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ label: value, reason: reason.value, saw_result: labelling.seen.has(number) }) });
    } catch (error) {
      stored = false;
      setStatus(`Not stored: ${error.message}`);
      return;
    }
    labelling.items[number].label = value;
    const next = nextUnlabelled(number);
    if (next < 0 || next === number) {
      await render();
      setStatus("Every trajectory has a label.");
    } else move(next);
  };
  const done = labelling.items.filter((one) => one.label).length;
  const turns = item.steps.map((_, n) => turn(item, n + 1, item.environment));
  const body = h("div", { class: "episode" },
    h("div", { class: "lead" }, h("span", { class: "dim", text: `${number + 1} of ${labelling.items.length}, ${done} labelled in ${line(labelling.file)}` }),
      h("button", { type: "button", on: { click: step(-1) }, text: "\u2190 Previous" }),
      h("button", { type: "button", on: { click: step(1) }, text: "Next \u2192" })),
    h("h1", {}, h("span", { class: "name", text: line(item.task) })),
    h("div", { class: "query" }, block(item.query, "prose", "query")),
    ...turns,
    h("section", { class: "turn", "aria-label": "Final answer" }, h("header", {}, h("h2", { text: "Final answer" })),
      item.answer.trim() ? block(item.answer, "output", "answer") : h("p", { class: "dim", text: "no output" })),
    h("section", { class: "labelling", "aria-label": "Label" },
      LABELS.map(([key, value, title]) => h("button", { type: "button", title, "aria-pressed": String(item.label === value),
        on: { click: () => store(value) } }, value, " ", h("kbd", { text: key }))),
      reason, h("button", { type: "button", on: { click: showResult } }, "Show the grader's result ", h("kbd", { text: "g" })), result));
  return {
    title: line(item.task), content: [body],
    keys: [...LABELS.map(([key, value, text]) => [[key], `${value}: ${text}`, () => store(value)]),
      [["e"], "write the reason; Esc leaves it", () => reason.focus()],
      [["g"], "show the grader's result; the label says that it was seen", showResult],
      [["n", "ArrowRight"], "next trajectory", step(1)], [["p", "ArrowLeft"], "previous trajectory", step(-1)],
      ...turnKeys(turns)],
    up: () => {},
  };
}

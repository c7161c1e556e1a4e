// Shows one turn: actor, thought, action, observation and score.

const LONG = 24; // lines of output that are shown of a longer one
const LONG_TEXT = 4000; // characters of it

function labels(step, number, episode) {
  const out = [];
  if (step.actor !== "agent") out.push([step.actor, "human", "the actor of this turn"]);
  if (step.refused && /^\s*submit(\s|$)/.test(step.action)) out.push(["wrong answer", "bad", "the environment refused the answer"]);
  else if (step.refused) out.push(["refused", "bad", "refused by a policy"]);
  if (step.timed_out) out.push(["timed out", "bad", "the action ran too long"]);
  if (!step.executed) out.push(["no code", "bad", "nothing was executed in this turn"]);
  else if (step.valid === false && !step.refused && !step.timed_out) out.push(["error", "bad", "the action could not be executed"]);
  if (step.exit_code) out.push([`exit ${step.exit_code}`, "", "the exit status"]);
  if (episode.branched_at !== null && number <= episode.branched_at) {
    out.push(["shared with the parent", "", "taken before the branch"]);
  }
  if ((episode.restarts || []).includes(number - 1)) {
    out.push(["task begun again", "", "the environment was reset before this turn"]);
  }
  return out.map(([text, kind, title]) => h("span", { class: `chip ${kind}`, title, text: line(text) }));
}

function reward(step) {
  if (step.score === null) return null;
  const parts = Object.entries(step.parts);
  return h("div", { class: `reward ${step.score >= 1 - 1e-9 ? "solved" : ""}` },
    h("span", { class: "total" }, "score ", h("b", { text: format.reward(step.score) })),
    parts.length ? h("dl", { class: "parts" }, parts.map(([name, value]) => h("div", {},
      h("dt", { text: line(name) }), h("dd", { text: format.reward(value) })))) : null);
}

function usageSummary(usage) {
  if (!usage.requests && usage.prompt_tokens === 0) return h("span", { class: "usage", title: "nothing was paid; what the answer took is unknown", text: "answer from the cache" });
  const parts = [
    usage.prompt_tokens !== null && usage.completion_tokens !== null
      ? `${format.tokens(usage.prompt_tokens, usage.completion_tokens)} tokens` : "",
    usage.cached_tokens ? `${format.count(usage.cached_tokens)} cached` : "",
    usage.reasoning_tokens ? `${format.count(usage.reasoning_tokens)} reasoning` : "",
    format.cost(usage.cost), usage.seconds ? format.seconds(usage.seconds) : "",
  ].filter(Boolean);
  return parts.length ? h("span", { class: "usage", title: "usage of the model in this turn: prompt + answer", text: parts.join(" \u00b7 ") }) : null;
}

// Shows a text. A long one is folded to its head and its tail, with a button for the rest.
function block(text, kind, name, paint = visible) {
  const lines = text.replace(/\n+$/, "").split("\n");
  const body = h("pre", { class: kind, tabindex: "-1" });
  const whole = () => body.replaceChildren(paint(text.replace(/\n+$/, "")));
  if (lines.length <= LONG + 4 && text.length <= LONG_TEXT) {
    whole();
    return body;
  }
  const head = lines.slice(0, lines.length > LONG + 4 ? LONG * 2 / 3 : LONG).join("\n").slice(0, LONG_TEXT * 2 / 3);
  const tail = lines.length > LONG + 4 ? lines.slice(-LONG / 3).join("\n").slice(-LONG_TEXT / 3) : "";
  const folded = () => body.replaceChildren(visible(head),
    h("span", { class: "gap", text: `\n\u22ee ${plural(text.length - head.length - tail.length, "character")} not shown\n` }), visible(tail));
  const press = () => {
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "Fold" : `Show all ${plural(lines.length, "line")} of the ${name}`;
    (open ? whole : folded)();
  };
  const button = h("button", { type: "button", class: "unfold", on: { click: press } });
  button.setAttribute("aria-expanded", "true");
  press();
  return h("div", { class: "folded" }, body, button);
}

// Returns whether changed files were recorded after a turn. They are not after a submission.
function recordsChanges(step) {
  return step.executed && step.action.trim().split(/\s/)[0] !== "submit";
}

// Lists the paths that differ from the beginning of the episode, and how this turn changed the list.
function changes(step, before) {
  if (!recordsChanges(step)) return null;
  const had = new Set(before.findLast(recordsChanges)?.changes ?? []);
  const has = new Set(step.changes);
  const added = step.changes.filter((p) => !had.has(p));
  const gone = [...had].filter((p) => !has.has(p));
  const same = step.changes.filter((p) => had.has(p));
  if (!added.length && !gone.length && !same.length) return null;
  const item = (sign, word, kind) => (path) => h("li", { class: kind },
    h("span", { "aria-hidden": "true", text: `${sign} ` }), h("span", { class: "hidden", text: `${word}: ` }), visible(path));
  return h("details", { class: "changes", open: (added.length + gone.length > 0 && added.length + gone.length <= 8) || null },
    h("summary", { text: `${plural(step.changes.length, "path")} changed since the beginning`
      + (added.length ? `, ${added.length === step.changes.length ? "all" : added.length} in this turn` : "") + (gone.length ? `, ${gone.length} restored` : "") }),
    h("ul", {}, added.map(item("+", "changed in this turn", "added")), gone.map(item("\u2212", "restored", "gone")),
      same.map(item("\u00a0", "changed before", "same"))));
}

const SIGNS = { "+": ["ins", "added"], "-": ["del", "removed"], "@": ["span", "hunk"], "\\": ["span", "hunk"] };

// The first character of each line marks additions and removals, in addition to the colour.
function diffLines(text) {
  return text.split("\n").map((one) => {
    const [tag, kind] = SIGNS[one[0]] ?? ["span", ""];
    return h(tag, { class: `d ${kind}` }, visible(one));
  });
}

function diffs(step) {
  const paths = Object.entries(step.diffs);
  if (!paths.length) return null;
  const long = paths.reduce((sum, [, text]) => sum + text.split("\n").length, 0) > 3 * LONG;
  return h("div", { class: "diffs" }, paths.map(([path, text]) => {
    const body = h("pre", { class: "diff", tabindex: "-1" });
    const fill = () => body.firstChild || body.append(...diffLines(text));
    if (!long) fill();
    return h("details", { open: !long, on: { toggle: fill } }, h("summary", {}, visible(path)), body);
  }));
}

function context(step) {
  const rows = Object.entries(step.context);
  if (!rows.length) return null;
  return h("p", { class: "cut" }, h("b", { text: "Not sent to the model: " }),
    rows.map(([what, value], n) => [n ? "; " : "", `${line(what)} `, line(typeof value === "string" ? value : JSON.stringify(value))]));
}

function messageBlock(message) {
  const { role, content, reasoning, tool_calls: calls, tokens, ...rest } = message;
  const parts = Array.isArray(content) ? content : content === null || content === undefined ? [] : [content];
  return h("div", { class: "message", data: { role: line(role) } },
    h("h4", { text: line(role ?? "?") }),
    reasoning ? h("div", { class: "thought" }, block(typeof reasoning === "string" ? reasoning : JSON.stringify(reasoning, null, 1), "prose", "reasoning")) : null,
    parts.map((part) => block(typeof part === "string" ? part : part?.text ?? JSON.stringify(part, null, 1), "prose", "message")),
    (calls ?? []).map((call) => h("div", { class: "call" }, h("b", { text: `calls ${line(call?.function?.name ?? call?.name)}` }),
      block(String(call?.function?.arguments ?? JSON.stringify(call, null, 1)), "prose", "call"))),
    tokens ? h("p", { class: "dim", text: `${plural(tokens.ids?.length ?? 0, "token id")} recorded${tokens.logprobs?.length ? ", with log-probabilities" : ""}` }) : null,
    Object.keys(rest).length ? h("details", {}, h("summary", { text: Object.keys(rest).map(line).join(", ") }),
      h("pre", { class: "prose" }, visible(JSON.stringify(rest, null, 1)))) : null);
}

function messages(step) {
  const all = step.messages.length ? step.messages : step.message ? [{ role: step.actor, content: step.message }] : [];
  return all.length ? h("div", { class: "messages" },
    h("h3", { text: "Messages added in this turn" }), all.map(messageBlock)) : null;
}

// Shows a turn of an episode, counted from 1. extra: labels for its header.
function turn(episode, number, environment, extra = []) {
  const step = episode.steps[number - 1];
  const done = step.action.trim() ? block(step.action, "code", "code", (text) => highlight(text, environment)) : null;
  const solved = step.score !== null && step.score >= 1 - 1e-9;
  return h("article", { class: `turn ${solved ? "solved" : ""} ${step.valid === false ? "invalid" : ""}`, tabindex: "-1", "aria-label": `Turn ${number}` },
    h("header", {}, h("h2", { text: `Turn ${number}` }), labels(step, number, episode), extra,
      h("span", { class: "grow" }), step.seconds ? h("span", { class: "usage", title: "how long the action took", text: format.seconds(step.seconds) }) : null,
      usageSummary(step.usage)),
    step.thought.trim() ? h("div", { class: "thought" }, block(step.thought.trim(), "prose", "thought")) : null,
    done ?? h("p", { class: "dim", text: "no code" }),
    step.observation.trim() ? block(step.observation, "output", "output") : step.executed ? h("p", { class: "dim", text: "no output" }) : null,
    context(step), reward(step), changes(step, episode.steps.slice(0, number - 1)), diffs(step), messages(step));
}

// Where episodes come from: the server that sent this page, or the page itself.

const config = JSON.parse($("config").textContent);
const KEPT = 60; // episodes, or pieces, that are kept open

class Kept {
  constructor(most) {
    this.most = most;
    this.map = new Map();
  }

  get(key, make) {
    const had = this.map.get(key);
    const value = had ?? make();
    this.map.delete(key);
    this.map.set(key, value);
    if (this.map.size > this.most) this.map.delete(this.map.keys().next().value);
    if (!had) value.catch(() => this.map.delete(key));
    return value;
  }
}

class Served {
  constructor() {
    this.kept = new Kept(KEPT);
  }

  async ask(path) {
    let answer;
    try {
      answer = await fetch(path);
    } catch {
      throw new Error("The server does not answer: has `intercode view` ended?");
    }
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  index() {
    this.kept = new Kept(KEPT);
    return this.ask("index");
  }

  episode(run, at) {
    return this.kept.get(`${run}/${at}`, () => this.ask(`episode/${run}/${at}`));
  }

  search(text) {
    return this.ask(`search?q=${encodeURIComponent(text)}`);
  }
}

class Alone {
  constructor() {
    this.kept = new Kept(8);
  }

  async open(id) {
    if (!window.DecompressionStream) throw new Error("This file needs a browser of 2023 or later.");
    const packed = atob($(id).textContent);
    const bytes = new Uint8Array(packed.length);
    for (let n = 0; n < packed.length; n += 1) bytes[n] = packed.charCodeAt(n);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  async index() {
    const index = await this.open("index");
    this.places = index.places;
    this.pieces = index.pieces;
    return index;
  }

  async episode(run, at) {
    const piece = this.places[run]?.[at];
    if (piece === undefined) throw new Error("There is no such episode in this file.");
    const opened = await this.kept.get(piece, () => this.open(`piece-${piece}`));
    return opened[`${run}/${at}`];
  }

  async search(text) {
    const wanted = text.toLowerCase();
    const out = this.places.map(() => []);
    for (let piece = 0; piece < this.pieces; piece += 1) {
      say(`Searching: ${piece + 1} of ${this.pieces} pieces`);
      for (const [key, episode] of Object.entries(await this.open(`piece-${piece}`))) {
        const [run, at] = key.split("/").map(Number);
        if (searched(episode).includes(wanted)) out[run].push(at);
      }
    }
    return out;
  }
}

function searched(episode) {
  const said = [episode.task, episode.query, episode.error ?? "", ...episode.tags];
  for (const step of episode.steps) {
    said.push(step.thought, step.action, step.observation, ...step.changes, ...Object.values(step.diffs));
    if (step.messages.length) said.push(...step.messages.map((m) => JSON.stringify(m)));
    else said.push(step.message);
  }
  return said.join("\n").toLowerCase();
}

const source = config.mode === "served" ? new Served() : new Alone();

// What all pages work on: runs, with their rows as objects, and all rows in one list.
const library = { runs: [], rows: [], conditions: {} };

async function load() {
  const index = await source.index();
  const at = Object.fromEntries(index.fields.map((name, n) => [name, n]));
  library.conditions = index.conditions;
  library.runs = index.runs.map((run, number) => ({ ...run, number }));
  for (const run of library.runs) {
    run.rows = run.rows.map((values) => {
      const row = { run: run.number };
      for (const name of index.fields) row[name] = values[at[name]];
      return row;
    });
  }
  library.rows = library.runs.flatMap((run) => run.rows);
}

// The run that a number in an address means.
function runOf(text) {
  return /^\d+$/.test(text ?? "") ? library.runs[Number(text)] : undefined;
}

function rowOf(run, at) {
  return library.runs[run]?.rows.find((row) => row.at === at);
}

// An episode's samples that count: as in the report, without errors and branches.
function counted(run) {
  return run.rows.filter((row) => outcome(row) !== "failed" && row.parent === null && !row.replaced);
}

function label(run) {
  const { agent, model } = run.facts;
  return line([agent, model].filter(Boolean).join(", ") || run.name);
}

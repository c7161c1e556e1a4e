// Sources of episodes: the server that sent this page, or the page itself.

const config = JSON.parse($("config").textContent);
const MAX_CACHED = 60; // episodes, or chunks, that stay in memory

class LruCache {
  constructor(size) {
    this.size = size;
    this.map = new Map();
  }

  get(key, make) {
    const cached = this.map.get(key);
    const value = cached ?? make();
    this.map.delete(key);
    this.map.set(key, value);
    if (this.map.size > this.size) this.map.delete(this.map.keys().next().value);
    if (!cached) value.catch(() => this.map.delete(key));
    return value;
  }
}

class ServerSource {
  constructor() {
    this.cache = new LruCache(MAX_CACHED);
  }

  async request(path, options = {}) {
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error("The server does not respond: has `intercode view` ended?");
    }
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  index() {
    this.cache = new LruCache(MAX_CACHED);
    return this.request("index");
  }

  episode(run, at) {
    return this.cache.get(`${run}/${at}`, () => this.request(`episode/${run}/${at}`));
  }

  gold(run, at) {
    return this.cache.get(`gold/${run}/${at}`, () => this.request(`gold/${run}/${at}`));
  }

  // Returns the test of a difference in success between two runs; null if there is none.
  async test(first, second) {
    return (await this.request(`test/${first}/${second}`)).test;
  }

  state() {
    return this.request("version");
  }

  search(text) {
    return this.request(`search?q=${encodeURIComponent(text)}`);
  }
}

class FileSource {
  constructor() {
    this.cache = new LruCache(8);
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
    this.chunkOf = index.chunk_of;
    this.chunkCount = index.chunks;
    this.tests = index.tests;
    return index;
  }

  async episode(run, at) {
    const chunk = this.chunkOf[run]?.[at];
    if (chunk === undefined) throw new Error("There is no such episode in this file.");
    const opened = await this.cache.get(chunk, () => this.open(`chunk-${chunk}`));
    return opened[`${run}/${at}`];
  }

  async test(first, second) {
    return this.tests[`${Math.min(first, second)}/${Math.max(first, second)}`] ?? null;
  }

  async search(text) {
    const lower = text.toLowerCase();
    const out = this.chunkOf.map(() => []);
    for (let chunk = 0; chunk < this.chunkCount; chunk += 1) {
      setStatus(`Searching: ${chunk + 1} of ${this.chunkCount} chunks`);
      for (const [key, episode] of Object.entries(await this.open(`chunk-${chunk}`))) {
        const [run, at] = key.split("/").map(Number);
        if (searchableText(episode).includes(lower)) out[run].push(at);
      }
    }
    return out;
  }
}

function searchableText(episode) {
  const texts = [episode.task, episode.query, episode.error ?? "", ...episode.tags];
  for (const step of episode.steps) {
    texts.push(step.thought, step.action, step.observation, ...step.changes, ...Object.values(step.diffs));
    if (step.messages.length) texts.push(...step.messages.map((m) => JSON.stringify(m)));
    else texts.push(step.message);
  }
  return texts.join("\n").toLowerCase();
}

const source = config.mode === "served" ? new ServerSource() : new FileSource();

// The data of all pages: runs, with their rows as objects, and all rows in one list.
const library = { runs: [], rows: [], conditions: {}, version: "" };

async function load() {
  const index = await source.index();
  const at = Object.fromEntries(index.fields.map((name, n) => [name, n]));
  library.conditions = index.conditions;
  library.version = index.version;
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

// Returns the run with a number from an address.
function runOf(text) {
  return /^\d+$/.test(text ?? "") ? library.runs[Number(text)] : undefined;
}

function rowOf(run, at) {
  return library.runs[run]?.rows.find((row) => row.at === at);
}

// Makes the server read a run up to an episode. Raises an error if there is none.
async function reach(run, at) {
  if (!rowOf(run, at) && library.runs[run]?.pending) {
    await source.episode(run, at);
    await load();
  }
  if (!rowOf(run, at)) throw new Error("There is no such episode.");
}

// Returns the rows of a run that success is a share of: as in the report, without branches. An
// error of the infrastructure counts as not solved.
function counted(run) {
  return run.rows.filter((row) => row.parent === null && !row.replaced);
}

// Returns the first folder of the names of tasks, if all begin with it; otherwise an empty text.
function commonFolder(tasks) {
  const folders = new Set(tasks.map((task) => (task.includes("/") ? task.slice(0, task.indexOf("/") + 1) : "")));
  return folders.size === 1 ? [...folders][0] : "";
}

function label(run) {
  const { agent, model } = run.metadata;
  return line([agent, model].filter(Boolean).join(", ") || run.name);
}

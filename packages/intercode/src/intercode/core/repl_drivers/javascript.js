// Runs in the sandbox and answers requests on descriptor 3, one JSON object a line; see
// sessions/programs/repl.py. Code runs as at Node's prompt: a second declaration of a name
// replaces the first.
;(() => {
  'use strict'
  const { Session } = require('inspector')
  const { Socket } = require('net')
  const { inspect } = require('util')

  const link = new Socket({ fd: 3 })
  const { stringify, parse } = JSON
  const streams = [process.stdout, process.stderr].map(s => s.write.bind(s))
  const inspector = new Session()
  inspector.connect()
  const post = (method, options) => new Promise((resolve, reject) =>
    inspector.post(method, options, (error, result) => error ? reject(error) : resolve(result)))

  let held
  let hold // the inspector's name of a function that stores a value in `held`

  async function begin () {
    globalThis.hold = value => { held = value }
    hold = (await post('Runtime.evaluate', { expression: 'hold' })).result.objectId
    delete globalThis.hold
  }

  // The value with an inspector's name, wrapped in an object so that a promise is not awaited.
  async function valueOf (named) {
    if (named.unserializableValue !== undefined) return { value: special(named.unserializableValue) }
    if (!named.objectId) return { value: named.value }
    await post('Runtime.callFunctionOn', {
      functionDeclaration: '(value, hold) => { hold(value) }',
      objectId: named.objectId,
      arguments: [{ objectId: named.objectId }, { objectId: hold }]
    })
    return { value: held }
  }

  const special = text => /^-?\d+n$/.test(text) ? BigInt(text.slice(0, -1)) : Number(text)

  async function evaluate (expression) {
    const options = { expression, replMode: true, awaitPromise: true, objectGroup: 'action' }
    const { result, exceptionDetails: failed } = await post('Runtime.evaluate', options)
    return { threw: Boolean(failed), ...await valueOf(failed ? failed.exception || result : result) }
  }

  const flush = write => new Promise(resolve => write('', () => resolve()))

  // Values are shown without the stack lines of this program.
  const ownFrames = /\n\s+at .*(?:node:|\[eval\]).*(?:\n\s+at .*)*/g
  const shown = value => inspect(value).replace(ownFrames, '')
  const thrown = error => error instanceof Error ? String(error.stack || error).replace(ownFrames, '') : shown(error)

  function plain (value) {
    if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
    if (typeof value === 'number' && Number.isFinite(value)) return value
    if (Array.isArray(value)) return Array.from(value, item => plain(item))
    if (typeof value === 'object') {
      const prototype = Object.getPrototypeOf(value)
      if (prototype === Object.prototype || prototype === null) {
        const entries = Object.entries(value).filter(([, item]) => item !== undefined)
        return Object.fromEntries(entries.map(([key, item]) => [key, plain(item)]))
      }
    }
    throw new TypeError(`no plain value: ${inspect(value, { depth: 0 }).slice(0, 100)}`)
  }

  const answers = {
    async run ({ code }) {
      const { threw, value } = await evaluate(code)
      if (threw) streams[0](`Uncaught ${thrown(value)}\n`)
      else if (value !== undefined) streams[0](shown(value) + '\n')
      return { ok: !threw }
    },
    async call ({ entry, args }) {
      const { threw, value: called } = await evaluate(entry)
      if (threw || typeof called !== 'function') return { error: threw ? String(called) : `${entry} is no function` }
      try {
        return { value: stringify(plain(await called(...args))) }
      } catch (error) {
        return { error: String(error).slice(0, 500) }
      }
    },
    async chdir ({ path }) {
      process.chdir(path)
      return {}
    }
  }

  let buffer = ''
  async function receive (text) {
    buffer += text
    for (let end; (end = buffer.indexOf('\n')) >= 0;) {
      const request = parse(buffer.slice(0, end))
      buffer = buffer.slice(end + 1)
      let answer
      try {
        answer = await answers[request.do](request)
      } catch (error) {
        answer = { ok: false, error: String(error) }
      }
      await Promise.all(streams.map(flush))
      let cwd = '/'
      try { cwd = process.cwd() } catch {}
      link.write(stringify({ token: request.token, cwd, ...answer }) + '\n')
      post('Runtime.releaseObjectGroup', { objectGroup: 'action' })
    }
  }

  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, error => streams[0](`Uncaught ${thrown(error)}\n`))
  }
  begin().then(() => {
    link.setEncoding('utf8')
    link.on('data', receive)
    link.on('end', () => process.exit())
  })
})()

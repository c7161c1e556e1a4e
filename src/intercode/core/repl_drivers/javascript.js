// Runs in the box and is asked for things over descriptor 3, one JSON object a line; see
// ../repl.py. Code runs as at Node's prompt, and what is declared twice takes the newer value.
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
  let hold // the inspector's name of a function that hands a value over

  async function begin () {
    globalThis.hold = value => { held = value }
    hold = (await post('Runtime.evaluate', { expression: 'hold' })).result.objectId
    delete globalThis.hold
  }

  // The value that the inspector has a name for, in an object: a promise is not to be waited for.
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

  // How a value is shown: no line of a stack is this program's.
  const ours = /\n\s+at .*(?:node:|\[eval\]).*(?:\n\s+at .*)*/g
  const shown = value => inspect(value).replace(ours, '')
  const thrown = error => error instanceof Error ? String(error.stack || error).replace(ours, '') : shown(error)

  function plain (value) {
    if (value === null || typeof value === 'boolean' || typeof value === 'string') return value
    if (typeof value === 'number' && Number.isFinite(value)) return value
    if (Array.isArray(value)) return Array.from(value, item => plain(item))
    if (typeof value === 'object') {
      const above = Object.getPrototypeOf(value)
      if (above === Object.prototype || above === null) {
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

  let waiting = ''
  async function heard (text) {
    waiting += text
    for (let end; (end = waiting.indexOf('\n')) >= 0;) {
      const asked = parse(waiting.slice(0, end))
      waiting = waiting.slice(end + 1)
      let answer
      try {
        answer = await answers[asked.do](asked)
      } catch (error) {
        answer = { ok: false, error: String(error) }
      }
      await Promise.all(streams.map(flush))
      let cwd = '/'
      try { cwd = process.cwd() } catch {}
      link.write(stringify({ token: asked.token, cwd, ...answer }) + '\n')
      post('Runtime.releaseObjectGroup', { objectGroup: 'action' })
    }
  }

  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.on(event, error => streams[0](`Uncaught ${thrown(error)}\n`))
  }
  begin().then(() => {
    link.setEncoding('utf8')
    link.on('data', heard)
    link.on('end', () => process.exit())
  })
})()

// Shows which functions of the source one request runs through: `node tools/walk.ts [REQUEST]
// [--list | --json]`, where REQUEST is write, log-in, enroll or list; default: all four. `make
// walk` runs it, and test/walks.test.ts checks the counts.
//
// The program instruments each file of src in memory when it is loaded: every function reports when
// it is called. Each request gets a separate controller as in the API tests: the state machine and
// the HTTP pipeline are real, a log that commits immediately replaces consensus, and no sockets are
// used. A request of the same kind is sent once to warm up, then once to be counted.
//
// A walk contains everything that runs in the asynchronous context of the request until its
// response is complete. It does not contain timers, background tasks, threads, and the later write
// to the store. No caller waits for its share of the processor, because that would depend on the
// clock. This process issues certificates itself; a running controller has a separate thread for
// that.
// - calls: how many times functions were called. A generator counts when it is first advanced.
// - functions: the distinct functions called, without implicit constructors and initializers.
// - files, folders: locations of these functions.
// - rooms: the first folder below src of each file.
// - visits: the calls in order, where consecutive calls in the same file count once. A return from
//   a call is not a visit.
// - returns: visits to a file that was visited before.
import { AsyncLocalStorage } from 'node:async_hooks'
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { dirname, relative, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { parseAst } from 'rolldown/parseAst'
import type { TestController } from '../test/api/support/controller.ts'

const root = resolve(import.meta.dirname, '..')
const sources = new URL('../src/', import.meta.url).href
const management = '/edge/management/v1'
const client = '/edge/client/v1'

/** A function of the source; its number is its index in `functions`. */
interface SourceFunction {
  readonly file: string
  readonly name: string
}

const functions: SourceFunction[] = []

/** The numbers of the functions that a request has called, in order. */
type Walk = number[]

const walks = new AsyncLocalStorage<Walk>()

/** A node of an ESTree syntax tree. Each member is a value, a node, or a list. */
interface Tree {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

const isTree = (value: unknown): value is Tree =>
  typeof (value as Tree | null | undefined)?.type === 'string'

const functionTypes = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
])

/** @returns the source text with a report at the start of each function. */
function instrumented(file: string, text: string): string {
  const inserts: { readonly at: number; readonly text: string }[] = []
  const visit = (node: Tree, parent: Tree | null): void => {
    const { body } = node
    if (functionTypes.has(node.type) && isTree(body)) {
      const report = `${REPORT}(${functions.length})`
      functions.push({ file, name: nameOf(node, parent, text) })
      if (body.type === 'BlockStatement') inserts.push({ at: body.start + 1, text: `${report};` })
      else inserts.push({ at: body.start, text: `(${report},` }, { at: body.end, text: ')' })
    }
    for (const child of Object.values(node).flat().filter(isTree)) visit(child, node)
  }
  visit(parseAst(text, { lang: 'ts' }) as unknown as Tree, null)
  inserts.sort((a, b) => a.at - b.at)
  let made = ''
  let copied = 0
  for (const { at, text: inserted } of inserts) {
    made += text.slice(copied, at) + inserted
    copied = at
  }
  return made + text.slice(copied)
}

/**
 * @returns the function's own name, the name of the variable to which it is assigned, or its line.
 */
function nameOf(node: Tree, parent: Tree | null, text: string): string {
  for (const named of [node['id'], parent?.['value'] === node ? parent['key'] : parent?.['id']]) {
    if (isTree(named) && typeof named['name'] === 'string') return named['name']
  }
  return `line ${text.slice(0, node.start).split('\n').length}`
}

/** Name of the global function that instrumented code calls; the source contains no such name. */
const REPORT = '__entered'

Object.assign(globalThis, {
  [REPORT]: (number: number) => {
    walks.getStore()?.push(number)
  },
})

/** Excludes callbacks of timers from walks, because their times depend on the machine. */
const outsideOfWalks = <T extends typeof setTimeout | typeof setInterval>(set: T): T =>
  Object.assign(
    (run: () => void, delayMs?: number, ...args: []) =>
      walks.exit(() => set(run, delayMs, ...args)),
    set,
  ) as unknown as T
globalThis.setTimeout = outsideOfWalks(setTimeout)
globalThis.setInterval = outsideOfWalks(setInterval)

registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith(sources)) return nextLoad(url, context)
    const path = fileURLToPath(url)
    const source = instrumented(relative(root, path), readFileSync(path, 'utf8'))
    return { format: 'module-typescript', source, shortCircuit: true }
  },
})

// Imported dynamically, after the hooks are registered, so that these modules are instrumented.
const { admin, startController, user } = await import('../test/api/support/controller.ts')
const { raiseLevel } = await import('../test/api/support/raise-level.ts')
const { createCertificateRequest, generatePrivateKeyPem } =
  await import('../src/pki/authority/certificate-request.ts')

/** A request to the controller. The program ends if the response is not a success. */
interface Sent {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly body?: string | object
  readonly headers?: Readonly<Record<string, string>>
  /** True for the first request of a caller, which has no session. */
  readonly isFirst?: boolean
}

/** Sends a request. @returns the data of the response. */
type Send = (sent: Sent) => Promise<Readonly<Record<string, unknown>>>

interface Request {
  readonly title: string
  /** Creates the records that the request needs. @returns the request for this round. */
  readonly prepare: (send: Send, round: number) => Sent | Promise<Sent>
}

const createService = (name: string): Sent => ({
  method: 'POST',
  url: `${management}/services`,
  body: { name, encryptionRequired: true },
})

const requests: Readonly<Record<string, Request>> = {
  write: {
    title: 'POST /services',
    prepare: (_send, round) => createService(`service ${round}`),
  },
  'log-in': {
    title: 'log-in by password',
    prepare: () => ({
      method: 'POST',
      url: `${management}/authenticate?method=password`,
      body: user,
      isFirst: true,
    }),
  },
  enroll: {
    title: 'enrollment by one-time token',
    prepare: async (send, round) => ({
      method: 'POST',
      url: `${client}/enroll?method=ott&token=${await newToken(send, `device ${round}`)}`,
      body: await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'new' }),
      headers: { 'content-type': 'application/x-pem-file' },
      isFirst: true,
    }),
  },
  list: {
    title: 'GET /services?limit=2',
    prepare: async (send, round) => {
      for (const name of ['a', 'b', 'c']) await send(createService(`service ${round} ${name}`))
      const list = { method: 'GET', url: `${management}/services?limit=2` } as const
      // IDs are random, so it would depend on chance which of the listed rows have been formatted
      // before.
      await send(list)
      return list
    },
  },
}

/** @returns the one-time token of a new identity. */
async function newToken(send: Send, name: string): Promise<string> {
  const url = `${management}/identities`
  const body = { name, type: 'Device', isAdmin: false, enrollment: { ott: true } }
  const { id } = await send({ method: 'POST', url, body })
  const { enrollment } = await send({ method: 'GET', url: `${url}/${String(id)}` })
  return (enrollment as { readonly ott: { readonly token: string } }).ott.token
}

/** @returns a function that sends requests as the administrator, logged in by password. */
async function senderOf(controller: TestController): Promise<Send> {
  const url = `${management}/authenticate?method=password`
  const { token } = await sender(
    controller,
    '',
  )({ method: 'POST', url, body: admin, isFirst: true })
  return sender(controller, String(token))
}

function sender(controller: TestController, token: string): Send {
  return async ({ method, url, body, headers = {}, isFirst = false }) => {
    const answer = await controller.app.inject({
      method,
      url,
      headers: { ...(isFirst ? {} : { 'zt-session': token }), ...headers },
      ...(body === undefined ? {} : { payload: body }),
    })
    if (answer.statusCode >= 300) throw new Error(`${method} ${url}: ${answer.payload}`)
    return (JSON.parse(answer.payload) as { readonly data: Readonly<Record<string, unknown>> }).data
  }
}

async function walkOf({ prepare }: Request): Promise<Walk> {
  const controller = await startController({ processorBurstMs: 1e9, processorSliceMs: 1e9 })
  try {
    // Raises the cluster to the newest feature level, at which sessions store the API that opened
    // them. A new cluster starts there.
    await raiseLevel(controller)
    const send = await senderOf(controller)
    await send(await prepare(send, 1))
    const sent = await prepare(send, 2)
    await untilWritten(controller)
    const walk: Walk = []
    await walks.run(walk, () => send(sent))
    return [...walk]
  } finally {
    await controller.close()
  }
}

/**
 * Waits until no write to the store is in progress, so that the walk does not depend on the
 * machine.
 */
async function untilWritten({ machine }: TestController): Promise<void> {
  for (;;) {
    const { applied, persisted } = machine.progress()
    if (applied === persisted) return
    await sleep(10)
  }
}

interface Visit {
  readonly file: string
  /** Names of the called functions, in order. */
  readonly functions: string[]
}

function visitsOf(walk: Walk): Visit[] {
  const visits: Visit[] = []
  for (const number of walk) {
    const { file, name } = functionOf(number)
    const last = visits.at(-1)
    if (last?.file === file) last.functions.push(name)
    else visits.push({ file, functions: [name] })
  }
  return visits
}

function functionOf(number: number): SourceFunction {
  const found = functions[number]
  if (found === undefined) throw new Error(`no function has the number ${number}`)
  return found
}

function countsOf(walk: Walk): Readonly<Record<string, number>> {
  const files = new Set(walk.map((number) => functionOf(number).file))
  const visits = visitsOf(walk).length
  return {
    calls: walk.length,
    functions: new Set(walk).size,
    files: files.size,
    folders: new Set([...files].map((file) => dirname(file))).size,
    rooms: new Set([...files].map((file) => file.split('/')[1])).size,
    visits,
    returns: visits - files.size,
  }
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { list: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
})
const unknown = positionals.filter((name) => requests[name] === undefined)
if (unknown.length > 0) {
  console.error(
    `no such request: ${unknown.join(', ')}; there are ${Object.keys(requests).join(', ')}`,
  )
  process.exit(2)
}

const found: Record<string, { counts: Readonly<Record<string, number>>; visits: Visit[] }> = {}
for (const [name, request] of Object.entries(requests)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue
  const walk = await walkOf(request)
  const counts = countsOf(walk)
  const visits = visitsOf(walk)
  found[name] = { counts, visits }
  if (options.json) continue
  const figures = Object.entries(counts).map(([what, count]) => `${count} ${what}`)
  console.log(`${name} (${request.title}): ${figures.join(', ')}`)
  if (!options.list) continue
  for (const visit of visits) console.log(`  ${visit.file}: ${visit.functions.join(', ')}`)
}
if (options.json) console.log(JSON.stringify(found))

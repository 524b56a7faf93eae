import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Problem } from '../../src/lib/problems.ts'
import { SchemaWorker } from '../../src/threads/schema-worker.ts'

const limits = {
  schemaMsMax: 1000,
  schemaWaitMsMax: 60_000,
  schemaLateMsMax: 60_000,
  schemasWaitingMax: 8,
}
let worker: SchemaWorker | null = null

function start(changes: Partial<typeof limits> = {}): SchemaWorker {
  worker = new SchemaWorker({ ...limits, ...changes }, systemClock)
  return worker
}

afterEach(async () => {
  await worker?.close()
  worker = null
})

const port = { type: 'object', properties: { port: { type: 'integer' } } }
/** The letters can be split in 2^40 ways, none of which matches. */
const endless = { type: 'object', properties: { name: { type: 'string', pattern: '^(a+)+$' } } }
const bomb = { name: `${'a'.repeat(40)}!` }

test('JSON schemas and data are validated in a separate thread', async () => {
  const judge = start()
  expect(await judge.validateSchema(port, 'a')).toBeNull()
  expect(await judge.validateSchema({ type: 'array' }, 'a')).toMatchObject({ field: 'schema' })
  expect(await judge.validateData(port, { port: 1 }, 'a')).toBeNull()
  expect(await judge.validateData(port, { port: 'x' }, 'a')).toMatchObject({
    field: 'port',
    value: 'x',
  })
})

test('a regular expression with catastrophic backtracking is refused in time without blocking the main thread, and the next schema is validated', async () => {
  const judge = start()
  let turns = 0
  const timer = setInterval(() => (turns += 1), 5)
  const refused = judge.validateData(endless, bomb, 'a')
  const next = judge.validateData(port, { port: 2 }, 'a')
  expect(await refused).toMatchObject({ field: 'data', reason: expect.stringContaining('1000 ms') })
  expect(await next).toBeNull()
  clearInterval(timer)
  // The event loop of this thread kept running.
  expect(turns).toBeGreaterThan(20)
})

describe('schema validation on a machine with busy processors', () => {
  const spinners: Worker[] = []
  afterEach(async () => {
    await Promise.all(spinners.splice(0).map((spinner) => spinner.terminate()))
  })
  /** A validator whose thread competes with other threads for the processor. */
  async function busy(changes: Partial<typeof limits>): Promise<SchemaWorker> {
    const judge = start(changes)
    expect(await judge.validateData(port, {}, 'a')).toBeNull()
    const spin = (): Worker => new Worker('for (;;) {}', { eval: true })
    spinners.push(...Array.from({ length: 3 * availableParallelism() }, spin))
    return judge
  }
  const letters = (count: number) => ({ name: `${'a'.repeat(count)}!` })

  test('completes for an expression that needs little processor time', async () => {
    const judge = await busy({ schemaMsMax: 1000 })
    expect(await judge.validateData(endless, letters(23), 'a')).toMatchObject({ field: 'name' })
  })

  test('does not report an invalid schema if the schema got no processor time', async () => {
    const judge = await busy({ schemaMsMax: 1000, schemaLateMsMax: 1 })
    await expect(judge.validateData(endless, bomb, 'a')).rejects.toMatchObject({
      code: 'TIMEOUT',
      retryAfterSeconds: 1,
    })
  })
})

test('a schema that needs too much memory stops its thread, but not the process', async () => {
  const judge = start({ schemaMsMax: 30_000 })
  const properties: Record<string, JsonObject> = {}
  for (let i = 0; i < 6000; i += 1) {
    const anyOf = Array.from({ length: 20 }, () => ({ pattern: 'x', minLength: i }))
    properties[`p${i}`] = { anyOf }
  }
  const fault = await judge.validateSchema({ type: 'object', properties }, 'a')
  expect(fault).toMatchObject({ field: 'schema', reason: expect.stringContaining('MiB') })
  expect(await judge.validateData(port, { port: 2 }, 'a')).toBeNull()
})

test('a full queue refuses JSON schemas, and a schema that waits too long in this queue is refused', async () => {
  const judge = start({ schemasWaitingMax: 1, schemaWaitMsMax: 200 })
  const first = judge.validateData(endless, bomb, 'a')
  const second = judge.validateData(port, { port: 2 }, 'a')
  await expect(judge.validateData(port, {}, 'a')).rejects.toMatchObject({
    code: 'SERVER_TOO_MANY_REQUESTS',
  })
  await expect(second).rejects.toBeInstanceOf(Problem)
  expect(await first).toMatchObject({ field: 'data' })
})

test('closing the schema worker rejects the queued schemas, and then no schema is validated', async () => {
  const judge = start()
  const waiting = [judge.validateData(endless, bomb, 'a'), judge.validateData(port, {}, 'a')]
  const ends = Promise.allSettled(waiting)
  await judge.close()
  for (const end of await ends) expect(end.status).toBe('rejected')
  await expect(judge.validateSchema({}, 'a')).rejects.toMatchObject({
    code: 'SERVER_TOO_MANY_REQUESTS',
  })
})

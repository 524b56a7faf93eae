import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { SchemaWorker } from '../../src/threads/schema-worker.ts'

// The attack: schemas of users are evaluated one at a time. A caller who sends one endless
// evaluation after another would occupy the thread, and no other caller could write a config.
const limits = {
  schemaMsMax: 300,
  schemaWaitMsMax: 60_000,
  schemaLateMsMax: 60_000,
  schemasWaitingMax: 16,
}
const endless = { type: 'object', properties: { name: { type: 'string', pattern: '^(a+)+$' } } }
const bomb = { name: `${'a'.repeat(40)}!` }
const port = { type: 'object', properties: { port: { type: 'integer' } } }
const judge = new SchemaWorker(limits, systemClock)

afterEach(() => judge.close())

test('a caller who submits many slow schemas does not delay the validation for another caller', async () => {
  let ended = 0
  for (let i = 0; i < 20; i += 1) {
    judge.validateData(endless, bomb, 'eve').then(
      () => (ended += 1),
      () => undefined,
    )
  }
  expect(await judge.validateData(port, { port: 1 }, 'alice')).toBeNull()
  // Alice waited for the evaluation that was running when her request came, and for one more of
  // Eve's, although Eve has twelve in the queue.
  expect(ended).toBeLessThanOrEqual(2)
})

test('an evaluation that does not end in time on a busy processor fails with TIMEOUT', async () => {
  const busy = new SchemaWorker({ ...limits, schemaMsMax: 1000, schemaLateMsMax: 1 }, systemClock)
  expect(await busy.validateData(port, {}, 'alice')).toBeNull()
  const spinners = Array.from(
    { length: 3 * availableParallelism() },
    () => new Worker('for (;;) {}', { eval: true }),
  )
  try {
    await expect(busy.validateData(endless, bomb, 'alice')).rejects.toMatchObject({
      code: 'TIMEOUT',
    })
  } finally {
    await Promise.all([busy.close(), ...spinners.map((spinner) => spinner.terminate())])
  }
})

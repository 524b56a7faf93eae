import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { SchemaWorker } from '../../src/threads/schema-worker.ts'

// Schemas of users are judged one at a time. Whoever sends one judgement without end after another would have the thread
// for itself, and nobody else could write a config.
const limits = { schemaMsMax: 300, schemaWaitMsMax: 60_000, schemasWaitingMax: 16 }
const endless = { type: 'object', properties: { name: { type: 'string', pattern: '^(a+)+$' } } }
const bomb = { name: `${'a'.repeat(40)}!` }
const port = { type: 'object', properties: { port: { type: 'integer' } } }
const judge = new SchemaWorker(limits, systemClock)

afterEach(() => judge.close())

test('one caller keeps no other from having a schema judged', async () => {
  let ended = 0
  for (let i = 0; i < 20; i += 1) {
    judge.judgeData(endless, bomb, 'eve').then(
      () => (ended += 1),
      () => undefined,
    )
  }
  expect(await judge.judgeData(port, { port: 1 }, 'alice')).toBeNull()
  // Alice waited for what was at work when she came, and for one more of Eve's, who has a line of twelve.
  expect(ended).toBeLessThanOrEqual(2)
})

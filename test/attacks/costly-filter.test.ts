import { expect, test } from 'vitest'

import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { makeManyIdentities } from '../api/support/many.ts'

// A filter of a thousand terms over thousands of records takes a second of processor time. An attacker who is no administrator
// gets a small part of that, and even an administrator's filter leaves turns to others.

const { controller, root, sessionOf } = await controllerForFile({ processorSliceMs: 1 })
makeManyIdentities(controller, 2000)
const terms = Array.from({ length: 500 }, (_, at) => `name contains "z${at}"`)
const filter = encodeURIComponent(terms.join(' or '))
const path = `${management}/identities?filter=${filter}`

test('the filter of an administrator is worked on in turns', async () => {
  let turns = 0
  let next = setImmediate(function turn() {
    turns += 1
    next = setImmediate(turn)
  })
  const reply = await root.get(path)
  clearImmediate(next)
  expect([reply.status, reply.body.meta?.pagination]).toMatchObject([200, { totalCount: 0 }])
  expect(turns).toBeGreaterThan(10)
})

test('the filter of anybody else is refused when it costs too much, and told so', async () => {
  const alice = await root.call('PATCH', `${management}/identities/alice-id`, {
    permissions: ['identity.read'],
  })
  expect(alice.status).toBe(200)
  const reader = sessionOf('alice-id')
  const refused = await reader.get(path)
  expect([refused.status, refused.body.error?.code]).toEqual([400, 'INVALID_FILTER'])
  const few = encodeURIComponent(terms.slice(0, 10).join(' or '))
  expect((await reader.get(`${management}/identities?filter=${few}`)).status).toBe(200)
})

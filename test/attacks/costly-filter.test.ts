import { expect, test } from 'vitest'

import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { makeManyIdentities } from '../api/support/many.ts'

// The attack: a filter of a thousand terms over thousands of records takes a second of processor
// time. An attacker who is not an administrator gets a small part of that time, and even an
// administrator's filter lets other requests run.

const { controller, root, sessionOf } = await controllerForFile({ processorSliceMs: 1 })
makeManyIdentities(controller, 4000)
const terms = Array.from({ length: 500 }, (_, at) => `name contains "z${at}"`)
const pathOf = (count: number): string => {
  const filter = encodeURIComponent(terms.slice(0, count).join(' or '))
  return `${management}/identities?filter=${filter}`
}

test('the filter of an administrator is evaluated in several event loop turns, so that other requests are served in between', async () => {
  let turns = 0
  let next = setImmediate(function turn() {
    turns += 1
    next = setImmediate(turn)
  })
  const reply = await root.get(pathOf(500))
  clearImmediate(next)
  expect([reply.status, reply.body.meta?.pagination]).toMatchObject([200, { totalCount: 0 }])
  expect(turns).toBeGreaterThan(10)
})

test('an expensive filter of a caller who is not an administrator is refused, and the error contains the reason', async () => {
  const alice = await root.call('PATCH', `${management}/identities/alice-id`, {
    permissions: ['identity.read'],
  })
  expect(alice.status).toBe(200)
  const reader = sessionOf('alice-id')
  const refused = await reader.get(pathOf(150))
  expect([refused.status, refused.body.error?.cause?.['message']]).toEqual([
    400,
    'the filter costs too much on so many records: ask for less at once',
  ])
  expect((await reader.get(pathOf(10))).status).toBe(200)
})

test('a filter of more than 4,096 characters is refused for a caller who is not an administrator', async () => {
  const refused = await sessionOf('alice-id').get(pathOf(500))
  expect([refused.status, refused.body.error?.cause?.['message']]).toEqual([
    400,
    'the filter is longer than 4096 characters',
  ])
})

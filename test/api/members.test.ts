import { beforeEach, expect, test } from 'vitest'

import { Problem } from '../../src/lib/problems.ts'
import { fabric } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

const { controller, root } = await controllerForFile()

beforeEach(() => {
  controller.members.changes.length = 0
  controller.members.refusal = null
})

const at = (name: string): string => `${fabric}/cluster/${name}`

test('an OpenZiti client’s request to add a member, by its address or its id, makes it a voter or a learner', async () => {
  const asked = [
    { address: 'tls:localhost:1481', isVoter: true },
    { address: 'ctrl2', isVoter: false },
    { address: 'https://localhost:1281' },
  ]
  for (const body of asked)
    expect((await root.call('POST', at('add-member'), body)).status).toBe(200)
  expect(controller.members.changes).toEqual([
    { change: { verb: 'promote', id: 'ctrl2' }, confirmation: null },
    { change: { verb: 'demote', id: 'ctrl2' }, confirmation: null },
    { change: { verb: 'promote', id: 'ctrl2' }, confirmation: null },
  ])
})

test('an OpenZiti client’s request to add an unknown controller is refused with the hint that joining requires a ticket', async () => {
  const reply = await root.call('POST', at('add-member'), { address: 'far:1', isVoter: true })
  expect(reply.status).toBe(400)
  expect(reply.body.error?.cause).toMatchObject({
    field: 'address',
    reason: expect.stringContaining('flotilla cluster invite') as string,
  })
  expect(controller.members.changes).toEqual([])
})

test('each membership change passes the caller’s confirmation to the cluster; promotions, demotions and replacements return the plan', async () => {
  const confirmation = 'remove ctrl3 and tolerate 0 failures'
  const asked: [string, object][] = [
    ['remove-member', { id: 'ctrl3', confirmation }],
    ['remove-member', { id: 'ctrl3', isCompromised: true, confirmation }],
    ['promote-member', { id: 'ctrl4' }],
    ['demote-member', { id: 'ctrl4', confirmation: null }],
    ['replace-member', { oldId: 'ctrl3', newId: 'ctrl4' }],
  ]
  for (const [name, body] of asked) {
    const reply = await root.call('POST', at(name), body)
    expect(reply.status, name).toBe(200)
    if (name !== 'remove-member') expect(reply.body.data).toMatchObject({ toleranceAfter: 0 })
  }
  expect(controller.members.changes).toEqual([
    { change: { verb: 'remove', id: 'ctrl3', isCompromised: false }, confirmation },
    { change: { verb: 'remove', id: 'ctrl3', isCompromised: true }, confirmation },
    { change: { verb: 'promote', id: 'ctrl4' }, confirmation: null },
    { change: { verb: 'demote', id: 'ctrl4' }, confirmation: null },
    { change: { verb: 'replace', oldId: 'ctrl3', newId: 'ctrl4' }, confirmation: null },
  ])
})

test('the plan for a membership change changes nothing, and contains the confirmation that the change requires', async () => {
  const reply = await root.call('POST', at('plan'), { verb: 'remove', id: 'ctrl3', why: 'old' })
  expect(reply.status).toBe(200)
  expect(reply.body.data).toMatchObject({
    change: { verb: 'remove', id: 'ctrl3', isCompromised: false },
    confirmation: 'remove ctrl3 and tolerate 0 failures',
  })
  expect(reply.body.meta?.ignoredFields).toEqual(['why'])
  expect(controller.members.changes).toEqual([])
})

test('a membership change with an incomplete body is refused with the name of the field', async () => {
  const wrong: [string, object, string][] = [
    ['plan', { verb: 'promote' }, 'id'],
    ['plan', { verb: 'replace', oldId: 'ctrl1' }, 'newId'],
    ['plan', { verb: 'erase', id: 'ctrl1' }, 'verb'],
    ['remove-member', { id: 7 }, 'id'],
    ['replace-member', { newId: 'ctrl1' }, 'oldId'],
    ['promote-member', { id: 'x'.repeat(65) }, 'id'],
  ]
  for (const [name, body, field] of wrong) {
    const reply = await root.call('POST', at(name), body)
    expect(reply.status, name).toBe(400)
    expect(reply.body.error?.cause).toMatchObject({ field })
  }
  expect(controller.members.changes).toEqual([])
})

test('a membership change that the cluster refuses returns the cluster’s error code and message', async () => {
  const refusals: [ConstructorParameters<typeof Problem>[0], number][] = [
    ['MEMBERSHIP_BUSY', 409],
    ['TOLERANCE_REFUSED', 409],
    ['MEMBERSHIP_REFUSED', 409],
    ['NOT_FOUND', 404],
    ['CLUSTER_NO_LEADER', 503],
    ['PEER_UNREACHABLE', 503],
  ]
  for (const [code, status] of refusals) {
    controller.members.refusal = new Problem(code, { detail: 'remove ctrl2 is under way' })
    const reply = await root.call('POST', at('remove-member'), { id: 'ctrl3' })
    expect(reply.status).toBe(status)
    expect(reply.body.error).toMatchObject({
      code,
      cause: { message: 'remove ctrl2 is under way' },
    })
  }
})

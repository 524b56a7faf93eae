import { randomBytes } from 'node:crypto'

import { expect, test } from 'vitest'

import type { Identity } from '../../src/entities/kinds/identity.ts'
import { REQUEST_ID_OFFSET_AFTER_RESET_MS, newRequestId } from '../../src/client/request-id.ts'
import { CallerOf, fabric, management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { newIdentity, shown } from './support/network.ts'
import { raiseLevel } from './support/raise-level.ts'

// Goal: if the clocks of a majority jump, every user can still log in, and an operator can correct
// the log time.

const HOUR_MS = 60 * 60_000
const JUMP_MS = 48 * HOUR_MS
const { controller, root } = await controllerForFile()
const operator = new CallerOf(controller)
operator.isAtSocket = true
const resetLogTime = (by: CallerOf): Promise<Reply> =>
  by.call('POST', `${fabric}/cluster/reset-log-time`)

test('a reset of log time changes nothing and writes no log entry if log time is not ahead', async () => {
  await raiseLevel(controller)
  const before = controller.machine.appliedIndex
  const reply = await resetLogTime(operator)
  expect(reply.status, reply.text).toBe(200)
  expect(reply.body.data).toMatchObject({ aheadMs: 0 })
  expect(controller.machine.appliedIndex).toBe(before)
})

test('a reset of log time is refused while the clocks of a majority are unknown', async () => {
  controller.cluster.clockMs = null
  expect((await resetLogTime(operator)).body.error?.code).toBe('PEER_UNREACHABLE')
  controller.cluster.clockMs = undefined
})

test('while log time is ahead, a new enrollment gets an expiry later than log time, and a router can be created', async () => {
  controller.cluster.aheadMs = JUMP_MS
  const id = await newIdentity(root, 'late')
  const disable = `${management}/identities/${id}/disable`
  expect((await root.call('POST', disable, { durationMinutes: 5 })).status).toBe(200)
  controller.cluster.aheadMs = 0
  const enrolled = await newIdentity(root, 'enrolled', { enrollment: { ott: true } })
  const { enrollment } = await shown(root, `${management}/identities/${enrolled}`)
  const { ott } = enrollment as { readonly ott: { readonly expiresAt: string } }
  expect(Date.parse(ott.expiresAt)).toBeGreaterThan(controller.machine.logTimeMs)
  expect((await root.call('POST', `${management}/edge-routers`, { name: 'edge' })).status).toBe(201)
})

test('a reset of log time is allowed only to the host user of a controller, corrects the time at which a disabled identity is enabled again, and appears in the audit log', async () => {
  const aheadMs = controller.machine.logTimeMs - controller.clock.nowMs()
  expect(aheadMs).toBe(JUMP_MS)
  expect((await resetLogTime(root)).body.error?.code).toBe('ADMIN_SOCKET_ONLY')
  const reply = await resetLogTime(operator)
  expect(reply.body.data).toEqual({
    aheadMs,
    logTime: new Date(controller.clock.nowMs()).toISOString(),
  })
  expect(controller.machine.logTimeMs).toBe(controller.clock.nowMs())
  const [late] = controller.machine.list('identity', { filter: 'name = "late"' }).records
  expect((late as Identity).disabledUntil).toBe(controller.clock.nowMs() + 5 * 60_000)
  const filter = encodeURIComponent('action = "log-time-reset"')
  const rows = (await root.get(`${fabric}/audit?filter=${filter}`)).body.data
  expect(rows).toMatchObject([{ actor: { name: 'uid:1000 (op)' }, outcome: 'done' }])
})

test('for five minutes after a reset, a new write is refused if its request ID contains the current time; a few seconds after the reset, a request ID whose time is almost five minutes ahead is accepted', async () => {
  controller.cluster.aheadMs = JUMP_MS
  await newIdentity(root, 'later still')
  controller.cluster.aheadMs = 0
  expect((await resetLogTime(operator)).status).toBe(200)
  const create = async (name: string, laterMs: number): Promise<string> => {
    const id = newRequestId(controller.clock.nowMs() + laterMs, randomBytes(16))
    const headers = { 'net-request-id': id }
    const reply = await root.call('POST', `${management}/edge-routers`, { name }, headers)
    return reply.body.error?.code ?? String(reply.status)
  }
  expect(await create('one', 0)).toBe('REQUEST_ID_EXPIRED')
  expect(await create('one', REQUEST_ID_OFFSET_AFTER_RESET_MS)).toBe('REQUEST_ID_EXPIRED')
  controller.clock.advance(3000)
  expect(await create('one', 0)).toBe('REQUEST_ID_EXPIRED')
  expect(await create('one', REQUEST_ID_OFFSET_AFTER_RESET_MS)).toBe('201')
  controller.clock.advance(5 * 60_000)
  expect(await create('two', 0)).toBe('201')
})

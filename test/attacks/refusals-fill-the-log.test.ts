import { expect, test } from 'vitest'

import { refusedWriteLogLimits } from '../../src/api/http/refused-write-log-quota.ts'
import { CallerOf } from '../api/support/caller.ts'
import { admin, startController } from '../api/support/controller.ts'
import { newIdentity } from '../api/support/network.ts'

// The attack: somebody with or without a session causes many refused writes, each of which adds a
// line to the audit log.

test('a caller whose writes are rejected repeatedly causes a limited number of log lines per minute, counted separately for each caller', async () => {
  const controller = await startController()
  const told: string[] = []
  controller.cluster.audit = {
    applied: () => undefined,
    refused: ({ actor }) => told.push(actor),
    answered: () => undefined,
  }
  const refusedFor = async (identityId: string, times: number): Promise<void> => {
    const headers = { 'net-session': controller.openSession(identityId) }
    const payload = { name: 'x', encryptionRequired: true }
    for (let at = 0; at < times; at += 1) {
      const url = '/edge/management/v1/services'
      const reply = await controller.app.inject({ method: 'POST', url, headers, payload })
      expect(reply.statusCode).toBe(401)
    }
  }
  try {
    const { linesOfOneMax, windowMs } = refusedWriteLogLimits
    await refusedFor('alice-id', linesOfOneMax + 20)
    expect(told).toHaveLength(linesOfOneMax)
    const other = new CallerOf(controller)
    await other.logIn(admin)
    const helper = await newIdentity(other, 'helper')
    await refusedFor(helper, 3)
    const count = (identityId: string): number =>
      told.filter((actor) => actor === identityId).length
    expect([count('alice-id'), count(helper)]).toEqual([linesOfOneMax, 3])
    controller.clock.advance(windowMs)
    await refusedFor('alice-id', 1)
    expect([count('alice-id'), count(helper)]).toEqual([linesOfOneMax + 1, 3])
  } finally {
    await controller.close()
  }
})

import { expect, test } from 'vitest'

import { Joining } from '../fsm/support/joining.ts'

// The attack: a ticket was stolen, its owner noticed this and revoked it, and a holder of a copy
// tries to join with it.

test('a copy of a revoked ticket admits no controller', () => {
  const cluster = new Joining()
  expect(cluster.invite('ticket-a').ok).toBe(true)
  expect(cluster.revoke('ticket-a').ok).toBe(true)
  const thief = { nodeId: 'ctrl9', key: 'key-ctrl9', store: 'ctrl9' }
  expect(cluster.redeem('ticket-a', thief)).toMatchObject({ ok: false, code: 'TICKET_REFUSED' })
  expect(cluster.admission('ctrl9')).toBeUndefined()
})

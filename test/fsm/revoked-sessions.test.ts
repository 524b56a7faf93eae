import { expect, test } from 'vitest'

import { defaultApiLimits } from '../../src/api/limits.ts'
import type { WriteConsequences } from '../../src/fsm/apply/command-context.ts'
import { revocationLimits, revokeSession } from '../../src/fsm/sessions/revocation-rules.ts'

// Goal: ended sessions never fill the table of revocations permanently, and no access token
// outlives the revocation of its session, which routers store.

const { sessionRevocationsMax, sessionRevocationMs } = revocationLimits

/** Only the table of revocations, at a given log time. */
function tableAt(clock: { logTimeMs: number }) {
  const rows = new Map<string, { id: string; expiresAt: number }>()
  const consequences = {
    state: {
      table: () => ({ rows, ids: rows.keys() }),
      get: (_kind: string, id: string) => rows.get(id),
    },
    context: clock,
    put: (_kind: string, id: string, fields: { expiresAt: number }) =>
      rows.set(id, { id, ...fields }),
    remove: (_kind: string, id: string) => rows.delete(id),
  } as unknown as WriteConsequences
  return { rows, revoke: (id: string) => revokeSession(id, consequences) }
}

test('a table that is full of revoked sessions accepts the next one once the earlier revocations have expired', () => {
  const clock = { logTimeMs: 0 }
  const { rows, revoke } = tableAt(clock)
  for (let at = 0; at < sessionRevocationsMax; at += 1) {
    rows.set(`s${at}`, { id: `s${at}`, expiresAt: sessionRevocationMs })
  }
  revoke('one more')
  expect(rows.size).toBe(sessionRevocationsMax)
  clock.logTimeMs = sessionRevocationMs
  revoke('later')
  expect([...rows.keys()]).toEqual(['later'])
})

test('expired revocations of sessions are removed before the table becomes full', () => {
  const clock = { logTimeMs: 0 }
  const { rows, revoke } = tableAt(clock)
  for (let at = 0; at < 1000; at += 1) revoke(`s${at}`)
  clock.logTimeMs = sessionRevocationMs
  for (let at = 0; at < 300; at += 1) revoke(`t${at}`)
  expect(rows.size).toBeLessThanOrEqual(300)
})

test('routers keep the revocation of a session longer than the access tokens of the session are valid', () => {
  expect(sessionRevocationMs).toBeGreaterThan(defaultApiLimits.accessTokenMs)
})

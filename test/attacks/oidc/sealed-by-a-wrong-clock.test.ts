import { expect, test } from 'vitest'

import { FlowStateEncryption } from '../../../src/auth/oidc/flow-state-encryption.ts'
import { twoControllers } from './support.ts'

// The attack: a controller whose clock is a day ahead encrypts the statement that somebody has
// logged in, or a controller whose clock is a day behind receives such a statement. The statement
// would then be accepted long after the session that it opened has ended and is forgotten.

const { controller } = await twoControllers()
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

const flow = {
  clientId: 'native',
  scopes: ['openid'],
  challenge: '',
  redirectUri: 'http://127.0.0.1/done',
  state: '',
  nonce: '',
  configTypes: [],
  issuer: 'https://localhost:1280/oidc',
  sessionId: 'session',
}

/** Encrypts statements as a controller whose clock is this far ahead of the others. */
function sealsOf(aheadMs: number): FlowStateEncryption {
  const { clock, keys } = controller
  const own = { nowMs: () => clock.nowMs() + aheadMs, monotonicMs: () => clock.monotonicMs() }
  return new FlowStateEncryption({
    keys,
    clock: own,
    cluster: { quorumClockMs: () => clock.nowMs() },
  })
}

test.each([
  ['encrypted by a controller whose clock is ahead', DAY_MS, 0],
  ['decrypted by a controller whose clock is behind', 0, -DAY_MS],
])(
  'a value that is %s is valid for no longer than its lifetime',
  async (_what, sealsAheadMs, opensAheadMs) => {
    const passed = { flow, proof: null }
    const text = await sealsOf(sealsAheadMs).seal('code', passed, MINUTE_MS)
    const opens = sealsOf(opensAheadMs)
    expect(await opens.open('code', text)).toEqual(passed)
    controller.clock.advance(MINUTE_MS)
    expect(await opens.open('code', text)).toBeNull()
  },
)

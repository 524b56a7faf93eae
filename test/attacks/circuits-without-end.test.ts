import { afterEach, expect, test } from 'vitest'

import { terminatorDialers } from '../../src/router/dial/dialers.ts'
import { TargetSocketLimiter } from '../../src/overlay/sockets/target-socket-limiter.ts'
import { dialErrorCodes } from '../../src/channel/messages/dial-error.ts'
import { ALL_DIALERS, configured, dialTo, TestTarget } from '../router/dial/support.ts'
import { JoinedCircuits } from '../router/joined-circuits.ts'

// The attack: the address of a terminator is a listener of the router that dials it, so that each
// connection creates another circuit.

const targets: TestTarget[] = []
afterEach(async () => {
  for (const target of targets.splice(0)) await target.close()
})

test('a router dials its own listeners neither by IP address nor by host name', async () => {
  const listener = await TestTarget.open()
  const other = await TestTarget.open()
  targets.push(listener, other)
  const circuits = new JoinedCircuits()
  const dialer = terminatorDialers({
    config: configured(ALL_DIALERS).dialers,
    circuits,
    caPem: () => '',
    ownPorts: () => new Set([listener.port]),
    sockets: new TargetSocketLimiter(),
  }).get('transport')
  const { signal } = new AbortController()
  for (const host of ['127.0.0.1', 'localhost']) {
    await expect(
      dialer?.dial(dialTo(`tcp:${host}:${listener.port}`), signal),
    ).rejects.toMatchObject({
      code: dialErrorCodes.portNotAllowed,
    })
  }
  expect(circuits.ends.size).toBe(0)
  await dialer?.dial(dialTo(other.address), signal)
  expect(circuits.ends.size).toBe(1)
})

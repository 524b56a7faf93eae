import { createSocket } from 'node:dgram'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { terminatorDialers } from '../../src/router/dial/dialers.ts'
import { TargetSocketLimiter } from '../../src/overlay/sockets/target-socket-limiter.ts'
import type { TerminatorDialer } from '../../src/overlay/circuits/circuit-endpoint.ts'
import { xgressOptions } from '../../src/overlay/circuits/xgress-options.ts'
import { parseHostConfig } from '../../src/overlay/services/host-config.ts'
import { TunnelDialer } from '../../src/overlay/services/tunnel-dialer.ts'
import { ALL_DIALERS, configured, dialTo, FarEnd, TestTarget } from '../router/dial/support.ts'
import { JoinedCircuits } from '../router/joined-circuits.ts'
import { eventually } from '../router/support.ts'
import { dialErrorCodes } from '../../src/channel/messages/dial-error.ts'

// The attack: a client dials and closes circuits faster than the targets of the service close their
// connections, until the router of the host has no file descriptor left.

const SOCKETS = 8
/** Maximum number of sockets of one dialing client while no other client has sockets. */
const OWN = 6

let circuits: JoinedCircuits
let sockets: TargetSocketLimiter
let target: TestTarget
beforeEach(async () => {
  circuits = new JoinedCircuits()
  sockets = new TargetSocketLimiter(SOCKETS)
  target = await TestTarget.open()
})
afterEach(() => target.close())

function dialer(binding: 'transport' | 'tunnel', protocol: string, port: number): TerminatorDialer {
  if (binding === 'transport') {
    const dialers = terminatorDialers({
      config: configured(ALL_DIALERS).dialers,
      circuits,
      sockets,
      caPem: () => '',
      ownPorts: () => new Set(),
    })
    return dialers.get(binding) as TerminatorDialer
  }
  const [terms] = parseHostConfig(
    'host.v1',
    JSON.stringify({ protocol, address: '127.0.0.1', port }),
  )
  if (terms === undefined) throw new Error('no terms')
  const terminator = { terms, isEncrypted: false, hold: () => () => undefined }
  return new TunnelDialer({
    circuits,
    sockets,
    flow: xgressOptions(),
    terminator: () => terminator,
    datagramsIdleMs: 60_000,
  })
}

test.each(['transport', 'tunnel'] as const)(
  'Sockets of the binding %s count toward the limit until they are closed, and the dialing identities share the limit fairly',
  async (binding) => {
    const to = dialer(binding, 'tcp', target.port)
    const { signal } = new AbortController()
    const dial = async (id: string, dialedBy: string): Promise<FarEnd> => {
      await to.dial({ ...dialTo(target.address, 20_000, id), dialedBy }, signal)
      return new FarEnd(circuits, id)
    }
    for (let at = 0; at < OWN; at += 1) {
      const far = await dial(`c${at}`, 'client mallory')
      // The target neither reads nor closes the connection, so the router waits for it.
      far.send('unread'.repeat(100_000))
      far.end.close('hung up')
    }
    await expect(dial('one more', 'client mallory')).rejects.toMatchObject({
      code: dialErrorCodes.outOfResources,
    })
    await dial('of ann', 'client ann')
    await eventually(() => target.sockets.length).toBe(OWN + 1)
    for (const socket of target.sockets) socket.destroy()
    await eventually(() =>
      dial('again', 'client mallory').then(
        () => true,
        () => false,
      ),
    ).toBe(true)
  },
)

test('Sockets that are still connecting count toward the limit, and sockets of failed dials do not', async () => {
  const { port } = target
  await target.close()
  const to = dialer('transport', 'tcp', port)
  const { signal } = new AbortController()
  const dials = Array.from({ length: 3 * SOCKETS }, (_, at) =>
    to.dial(dialTo(`tcp:127.0.0.1:${port}`, 20_000, `c${at}`), signal),
  )
  const codes = await Promise.all(
    dials.map((each) => each.catch((error: { code: number }) => error.code)),
  )
  expect(codes.filter((code) => code === dialErrorCodes.refused)).toHaveLength(OWN)
  expect(codes.filter((code) => code === dialErrorCodes.outOfResources)).toHaveLength(
    3 * SOCKETS - OWN,
  )
  await eventually(() =>
    to.dial(dialTo(`tcp:127.0.0.1:${port}`), signal).then(
      () => 0,
      (error: { code: number }) => error.code,
    ),
  ).toBe(dialErrorCodes.refused)
  target = await TestTarget.open()
})

test.each(['transport', 'tunnel'] as const)(
  'UDP sockets of the binding %s count toward the limit of sockets',
  async (binding) => {
    const server = createSocket('udp4')
    await new Promise<void>((done) => server.bind(0, '127.0.0.1', done))
    const { port } = server.address()
    const to = dialer(binding, 'udp', port)
    const { signal } = new AbortController()
    const dial = (id: string) => to.dial(dialTo(`udp:127.0.0.1:${port}`, 20_000, id), signal)
    for (let at = 0; at < OWN; at += 1) await dial(`c${at}`)
    await expect(dial('one more')).rejects.toMatchObject({ code: dialErrorCodes.outOfResources })
    for (let at = 0; at < OWN; at += 1) new FarEnd(circuits, `c${at}`).end.close('over')
    await eventually(() =>
      dial('again').then(
        () => true,
        () => false,
      ),
    ).toBe(true)
    server.close()
  },
)

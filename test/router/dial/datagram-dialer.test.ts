import { createSocket, type Socket } from 'node:dgram'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { DatagramDialer } from '../../../src/router/dial/datagram-dialer.ts'
import { TargetSocketLimiter } from '../../../src/overlay/sockets/target-socket-limiter.ts'
import type { DialFailure } from '../../../src/overlay/circuits/circuit-endpoint.ts'
import { xgressOptions } from '../../../src/overlay/circuits/xgress-options.ts'
import { JoinedCircuits } from '../joined-circuits.ts'
import { eventually } from '../support.ts'
import { dialTo, FarEnd } from './support.ts'
import { dialErrorCodes } from '../../../src/channel/messages/dial-error.ts'

let circuits: JoinedCircuits
let server: Socket
let heard: { text: string; port: number }[]
beforeEach(async () => {
  circuits = new JoinedCircuits()
  heard = []
  server = createSocket('udp4')
  server.on('message', (body, { port }) => heard.push({ text: body.toString(), port }))
  await new Promise<void>((done) => server.bind(0, '127.0.0.1', done))
})
afterEach(() => server.close())

const dial = (destination: string, idleMs = 60_000) =>
  new DatagramDialer({
    circuits,
    idleMs,
    flow: xgressOptions(),
    sockets: new TargetSocketLimiter(),
  }).dial(dialTo(destination), new AbortController().signal)

describe('A dialed UDP target', () => {
  test.each(['udp', 'udp4'])(
    'at a %s address receives each piece of data as one datagram, and the client receives each reply as one piece of data',
    async (protocol) => {
      await dial(`${protocol}:127.0.0.1:${server.address().port}`)
      const far = new FarEnd(circuits)
      for (const text of ['one', 'two', 'three']) far.send(text)
      await eventually(() => heard.map(({ text }) => text)).toEqual(['one', 'two', 'three'])
      const port = heard[0]?.port ?? 0
      for (const text of ['a', 'b'.repeat(20_000)]) server.send(text, port, '127.0.0.1')
      await eventually(() => far.sizes).toEqual([1, 20_000])
      far.end.close('done')
      await eventually(() => far.closedFor).toBe('done')
    },
  )

  test('ends its circuit if it sends nothing for too long', async () => {
    await dial(`udp:127.0.0.1:${server.address().port}`, 50)
    const far = new FarEnd(circuits)
    await eventually(() => far.closedFor).toBe('silent for too long')
  })

  test('ends its circuit if its port is closed', async () => {
    const gone = createSocket('udp4')
    await new Promise<void>((done) => gone.bind(0, '127.0.0.1', done))
    const { port } = gone.address()
    gone.close()
    await dial(`udp:127.0.0.1:${port}`)
    const far = new FarEnd(circuits)
    await eventually(() => {
      far.send('hello?')
      return far.closedFor
    }).toMatch(/ECONNREFUSED/)
  })

  test.each([
    ['udp:no-such-host.invalid:53', dialErrorCodes.unknownName],
    ['unixgram:/tmp/socket', dialErrorCodes.misconfiguredTerminator],
    ['tcp:127.0.0.1:53', dialErrorCodes.misconfiguredTerminator],
    ['udp:127.0.0.1:0', dialErrorCodes.misconfiguredTerminator],
  ])('is refused if its address is %s', async (destination, code) => {
    const error = await dial(destination).catch((thrown: unknown) => thrown as DialFailure)
    expect(error).toMatchObject({ code })
  })
})

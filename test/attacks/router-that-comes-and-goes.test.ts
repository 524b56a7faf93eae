import { once } from 'node:events'
import { connect } from 'node:tls'
import { afterAll, expect, test } from 'vitest'

import { listenerTlsOptions } from '../../src/api/http/transport/tls.ts'
import { encodeText } from '../../src/channel/headers.ts'
import { FairShare } from '../../src/lib/bounds/fair-share.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { RouterListener } from '../../src/fabric/router-listener.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { frameOf } from '../channel/pipe.ts'
import { onLoopback } from '../fabric/loopback.ts'
import { RouterStage } from '../fabric/stage.ts'
import { memberLeaf } from '../support/member-leaf.ts'

// The attack: a router opens and closes its channel as fast as it can, and each time causes work on
// all controllers.

// The clock does not advance by itself, so the budget does not grow during the test.
const clock = new ManualClock()
const { channels } = new RouterStage()
const listener = await RouterListener.open(
  { channels, clock, tls: listenerTlsOptions, room: new FairShare(1000) },
  await memberLeaf('ctrl1'),
  onLoopback,
)
afterAll(() => listener.close())
const restless = await memberLeaf('restless')
const other = await memberLeaf('other')

/** @returns whether the listener accepted the hello; it answers every hello. */
async function comesAndGoes({ certificatePem, privateKeyPem }: typeof other): Promise<boolean> {
  const socket = connect({
    host: '127.0.0.1',
    port: listener.port,
    rejectUnauthorized: false,
    cert: certificatePem,
    key: privateKeyPem,
    ALPNProtocols: ['ziti-ctrl'],
  })
  socket.on('error', () => undefined)
  const headers = new Map([[4, encodeText('v2.0.3|r|d|linux|amd64')]])
  socket.write(frameOf({ contentType: 0, sequence: -1, headers, body: encodeText('restless') }))
  const closed = new Promise<'closed'>((resolve) => socket.once('close', () => resolve('closed')))
  const first = await Promise.race([once(socket, 'data'), closed])
  socket.destroy()
  return first !== 'closed'
}

test('a router that reconnects too often is disconnected before its hello is read, and other routers can connect', async () => {
  const { routerConnectsBurst, routerConnectsPerSecond } = routerLimits
  for (let at = 0; at < routerConnectsBurst; at += 1) {
    expect(await comesAndGoes(restless)).toBe(true)
  }
  expect(await comesAndGoes(restless)).toBe(false)
  expect(await comesAndGoes(other)).toBe(true)
  clock.advance(1000 / routerConnectsPerSecond)
  expect(await comesAndGoes(restless)).toBe(true)
  expect(await comesAndGoes(restless)).toBe(false)
})

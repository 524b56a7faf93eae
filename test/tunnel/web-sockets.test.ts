import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'

import { echoServer } from '../router/tunnel/support.ts'
import { freePort } from '../support/ports.ts'
import { eventually, TunnelStage } from './support.ts'

// Goal: a host and a client exchange data over WebSockets, completely and in both directions.
// Method: two tunnels and a whole router whose only listener has a `wss:` address; the test plays
// the controller and its API.

const MEGABYTES = 3

const closing: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

test('Data between two clients of a wss listener arrives completely while both directions are busy', async () => {
  const stage = await TunnelStage.create('wss')
  closing.push(() => stage.close())
  const target = await echoServer()
  closing.push(target.close)
  const port = await freePort()
  const offered = { id: 's1', encryptionRequired: true }
  const config = { 'host.v1': { protocol: 'tcp', address: '127.0.0.1', port: target.port } }
  const host = await stage.tunnel('host1', [{ ...offered, permissions: ['Bind'], config }])
  const client = await stage.tunnel(
    'ann',
    [{ ...offered, permissions: ['Dial'], config: {} }],
    [{ name: 'name of s1', port, protocol: 'tcp' }],
  )
  await host.tunnel.start()
  await client.tunnel.start()
  await eventually(() => stage.terminators.size).toBe(1)
  await eventually(() => stage.logged('service offered').length).toBe(1)
  const data = randomBytes(MEGABYTES * 1_000_000)
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  closing.push(() => {
    socket.destroy()
  })
  const back = createHash('sha256')
  let bytes = 0
  socket.on('data', (part: Buffer) => {
    bytes += part.length
    back.update(part)
  })
  socket.end(data)
  await once(socket, 'end')
  const sha256 = createHash('sha256').update(data).digest('hex')
  expect({ bytes, sha256: back.digest('hex') }).toEqual({ bytes: data.length, sha256 })
})

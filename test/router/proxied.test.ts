import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { PeerState, PeerStateChangesSchema } from '../../proto/gen/router_pb.ts'
import { ConnectProxy } from '../support/connect-proxy.ts'
import { freePort } from '../support/ports.ts'
import { eventually, TestNetwork } from './support.ts'

// Goal: a router behind a proxy reaches controllers and other routers only through the proxy.
// Method: real routers and a real proxy, which records the addresses to which it connects.

describe('A router with an HTTP proxy', () => {
  let proxy: ConnectProxy
  let network: TestNetwork
  let other: TestNetwork
  beforeEach(async () => {
    proxy = await ConnectProxy.open()
    network = await TestNetwork.create()
    other = await TestNetwork.create(network, 'router2')
  })
  afterEach(async () => {
    await network.close()
    await other.close()
    await proxy[Symbol.asyncDispose]()
  })

  const section = (more = ''): string =>
    `proxy: {type: http, address: "127.0.0.1:${proxy.port}"${more}}`

  test('reaches controllers and other routers through the proxy', async () => {
    const [controller, theirs] = [await network.controller('a'), await other.controller('b')]
    const port = await freePort()
    const listener = `{binding: transport, bind: "tls:127.0.0.1:${port}", advertise: "127.0.0.1:${port}"}`
    await other.running([theirs.address], `link: {listeners: [${listener}]}`)
    await network.running(
      [controller.address],
      `${section()}\nlink: {dialers: [{binding: transport}]}`,
    )
    await eventually(() => controller.isConnected && theirs.isConnected).toBe(true)
    const listeners = [{ address: `tls:127.0.0.1:${port}`, protocol: 'tls', groups: [] }]
    const change = { id: 'router2', version: 'v2.0.0', state: PeerState.HEALTHY, listeners }
    const message = create(PeerStateChangesSchema, { changes: [change] })
    controller.send({ contentType: 1050, body: toBinary(PeerStateChangesSchema, message) })
    await eventually(() => other.logged('link established').length).toBe(1)
    expect([...new Set(proxy.servers)]).toEqual([
      `127.0.0.1:${controller.port}`,
      `127.0.0.1:${port}`,
    ])
    // The other router uses no proxy.
    expect(proxy.servers).not.toContain(`127.0.0.1:${theirs.port}`)
    expect(controller.sockets).toBe(
      proxy.servers.filter((one) => one.endsWith(`:${controller.port}`)).length,
    )
  })

  test('authenticates to the proxy with the configured user name and password', async () => {
    const controller = await network.controller('a')
    await network.running([controller.address], section(', username: gate, password: "s:e"'))
    await eventually(() => controller.isConnected).toBe(true)
    const basic = `Basic ${Buffer.from('gate:s:e').toString('base64')}`
    expect(new Set(proxy.authorizations)).toEqual(new Set([basic]))
  })

  test('verifies the controller in the same way as without a proxy', async () => {
    const stranger = await TestNetwork.create()
    const controller = await stranger.controller('a')
    await network.running([controller.address], section())
    await eventually(() => network.logged('cannot reach a controller').length).toBeGreaterThan(0)
    expect(proxy.servers).not.toEqual([])
    expect(controller.hellos).toEqual([])
    await stranger.close()
  })

  test('does not dial directly when the proxy does not respond', async () => {
    const controller = await network.controller('a')
    const closed = await freePort()
    await network.running(
      [controller.address],
      `proxy: {type: http, address: "127.0.0.1:${closed}", username: u, password: secret}`,
    )
    await eventually(() => network.logged('cannot reach a controller').length).toBeGreaterThan(0)
    expect(controller.sockets).toBe(0)
    expect(JSON.stringify(network.lines)).toContain(`proxy 127.0.0.1:${closed}`)
    expect(JSON.stringify(network.lines)).not.toContain('secret')
  })
})

import { connect, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { Channel } from '../../src/channel/channel.ts'
import type { ChannelMessage } from '../../src/channel/frame.ts'
import { readFlag } from '../../src/channel/headers.ts'
import { channelLimits } from '../../src/channel/limits.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { linkLimits } from '../../src/router/links/limits.ts'
import {
  readLinkGroup,
  type LinkGroup,
  linkHelloMessage,
  type LinkSocketType,
} from '../../src/channel/messages/links.ts'
import { eventually, type ScriptedController, TestNetwork } from '../router/support.ts'
import { freePort } from '../support/ports.ts'

// The attack: another router adds a socket to a link, and sends and receives its traffic; or the
// router of the link adds so many sockets that no other router can connect.

let network: TestNetwork
let controller: ScriptedController
let port: number
const channels: Channel[] = []
beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('a')
  port = await freePort()
  const listener = `{binding: transport, bind: "tls:127.0.0.1:${port}", advertise: "127.0.0.1:${port}"}`
  await network.running([controller.address], `link: {listeners: [${listener}]}\n`)
  await eventually(() => controller.isConnected).toBe(true)
})
afterEach(async () => {
  for (const channel of channels.splice(0)) channel.close('over')
  await network.close()
})

interface Dial {
  readonly key: CertificateWithKey
  readonly routerId: string
  readonly group: 'first' | { readonly of: LinkGroup; readonly type: LinkSocketType }
}

/** @returns the answer to the hello; null if the router refuses the hello. */
async function dial({ key, routerId, group }: Dial): Promise<ChannelMessage | null> {
  const socket: TLSSocket = connect({
    host: '127.0.0.1',
    port,
    cert: key.certificatePem,
    key: key.privateKeyPem,
    ca: network.root.certificatePem,
    ALPNProtocols: ['ziti-link'],
  })
  const { promise, resolve } = Promise.withResolvers<ChannelMessage | null>()
  const ids = { linkId: `link of ${routerId}`, routerId, dialedId: 'router1', iteration: 1 }
  const channel: Channel = new Channel({
    socket,
    limits: channelLimits,
    clock: systemClock,
    hello: linkHelloMessage({ ...ids, dialedVersion: 'v2.0.0', group }),
    onHello: (answer) => {
      resolve(readFlag(answer.headers, 2) ? answer : null)
      channel.open(null)
    },
    onMessage: () => null,
    onClose: () => resolve(null),
  })
  channels.push(channel)
  return await promise
}

/** A link of router2. */
async function linkOf(key: CertificateWithKey): Promise<LinkGroup> {
  const answer = await dial({ key, routerId: 'router2', group: 'first' })
  const group = readLinkGroup(answer?.headers ?? new Map())
  if (group === null) throw new Error('no group')
  return group
}

const certificateOf = (routerId: string): Promise<CertificateWithKey> =>
  network.leaf(routerId, [], [])
const refusals = () => network.logged('link refused').map(({ fields }) => fields['reason'])

test('the router that owns a link can add a socket to the link with the link secret, and not without it', async () => {
  const key = await certificateOf('router2')
  const of = await linkOf(key)
  const join = (secret: Uint8Array) =>
    dial({ key, routerId: 'router2', group: { of: { ...of, secret }, type: 'link.ack' } })
  expect(await join(of.secret)).not.toBeNull()
  const wrong = Uint8Array.from(of.secret, (byte, at) => (at === 0 ? byte ^ 1 : byte))
  expect(await join(wrong)).toBeNull()
  expect(await join(of.secret.subarray(1))).toBeNull()
  expect(await join(new Uint8Array(0))).toBeNull()
  expect(new Set(refusals())).toEqual(new Set(['the secret of the group is another']))
})

test('another router cannot add a socket to a link, even if it knows the ID and the secret of the link', async () => {
  const of = await linkOf(await certificateOf('router2'))
  const key = await certificateOf('router3')
  const group = { of, type: 'link.default' } as const
  expect(await dial({ key, routerId: 'router3', group })).toBeNull()
  expect(await dial({ key, routerId: 'router2', group })).toBeNull()
  expect(refusals()).toEqual([
    'the router has no link of this group',
    'the certificate belongs to another router',
  ])
})

test('a router whose certificate the controllers have stopped accepting cannot add a socket to a link', async () => {
  const key = await certificateOf('router2')
  const of = await linkOf(key)
  controller.verifies = false
  expect(await dial({ key, routerId: 'router2', group: { of, type: 'link.default' } })).toBeNull()
})

test('a socket cannot be added to a link that has ended', async () => {
  const key = await certificateOf('router2')
  const of = await linkOf(key)
  channels[0]?.close('over')
  await eventually(() => network.logged('link lost')).toHaveLength(1)
  expect(await dial({ key, routerId: 'router2', group: { of, type: 'link.default' } })).toBeNull()
})

test('a router can have a limited number of sockets per link', async () => {
  const key = await certificateOf('router2')
  const of = await linkOf(key)
  let accepted = 0
  for (let count = 0; count < linkLimits.linkSocketsMax + 4; count += 1) {
    const group = { of, type: 'link.default' } as const
    if ((await dial({ key, routerId: 'router2', group })) !== null) accepted += 1
  }
  expect(accepted).toBe(linkLimits.linkSocketsMax - 1)
})

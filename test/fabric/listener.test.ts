import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, EntityWriteSchema } from '../../proto/gen/command_pb.ts'
import { peerCertificateChain } from '../../src/api/http/transport/peer-certificate-chain.ts'
import { listenerTlsOptions } from '../../src/api/http/transport/tls.ts'
import { type ChannelMessage, FrameDecoder } from '../../src/channel/frame.ts'
import { encodeBitMask, encodeText } from '../../src/channel/headers.ts'
import { CertificateAdoption } from '../../src/auth/certificates/certificate-adoption.ts'
import { createRouterAdmitter } from '../../src/controller/service/router-admitter.ts'
import { defaultApiLimits } from '../../src/api/limits.ts'
import { ProcessorShare } from '../../src/lib/bounds/processor-share.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { FairShare } from '../../src/lib/bounds/fair-share.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import type { RouterStatus } from '../../proto/gen/soft_pb.ts'
import { RouterChannels } from '../../src/fabric/router-channels.ts'
import { RouterListener } from '../../src/fabric/router-listener.ts'
import { RouterStatusTopic } from '../../src/fabric/router-status-topic.ts'
import { frameOf } from '../channel/pipe.ts'
import { CallerOf, client, fabric, management } from '../api/support/caller.ts'
import { admin, startController, type TestController } from '../api/support/controller.ts'
import { LocalTopic } from '../api/support/local-topic.ts'
import { listed, made, shown } from '../api/support/network.ts'
import { commandData } from '../support/commands.ts'
import { onLoopback } from './loopback.ts'
import { clientKey, serverKey, TlsListener } from '../api/support/tls.ts'

// Goal: the APIs list exactly the routers that are connected, which TLS and the records of a real
// state admit; all other routers are refused.

const edgeRouters = `${management}/edge-routers`

let controller: TestController
let https: TlsListener
let listener: RouterListener
let root: CallerOf
let isOutOfService = false
let isReady = true
beforeAll(async () => {
  controller = await startController()
  https = await TlsListener.open(controller)
  root = new CallerOf(controller)
  await root.logIn(admin)
  const { machine, authorities } = controller
  const statuses = new RouterStatusTopic(
    'ctrl1',
    new LocalTopic<RouterStatus>('ctrl1'),
    systemClock,
  )
  machine.routers = statuses
  const channels = new RouterChannels({
    identity: {
      id: 'ctrl1',
      clusterId: 'c',
      version: { version: 'v2.0.0', revision: 'r', buildDate: 'd', os: 'o', arch: 'a' },
    },
    gate: createRouterAdmitter({ machine, authorities, isOutOfService: () => isOutOfService }),
    cluster: { addresses: () => null, leaderIndex: () => null, unreachable: () => [] },
    statuses,
    feed: machine,
    clock: systemClock,
    processor: new ProcessorShare(defaultApiLimits, systemClock),
    log: { info: () => undefined, warn: () => undefined },
  })
  const adoption = new CertificateAdoption(controller.parts)
  const limits = {
    routerConnectionsPerSourceMax: 4,
    routerConnectionsPerSourceBurst: 200,
    routerConnectsBurst: 100,
  }
  const parts = {
    channels,
    limits,
    tls: listenerTlsOptions,
    clock: systemClock,
    room: new FairShare(100),
    isReady: () => isReady,
    adopt: (socket: TLSSocket) => {
      const chain = peerCertificateChain(socket)
      return chain === null ? null : adoption.ofRouter(chain, socket.remoteAddress ?? '')
    },
  }
  const own = await serverKey(controller)
  listener = await RouterListener.open(parts, own, onLoopback)
})
afterAll(async () => {
  await listener.close()
  await https.close()
  await controller.close()
})

interface Enrolled {
  readonly id: string
  readonly key: CertificateWithKey
}

async function enrolled(name: string): Promise<Enrolled> {
  const id = await made(root, edgeRouters, { name })
  const { enrollmentToken } = await shown(root, `${edgeRouters}/${id}`)
  const privateKeyPem = generatePrivateKeyPem()
  const body = {
    certCsr: await createCertificateRequest({ privateKeyPem, id }),
    serverCertCsr: await createCertificateRequest({
      privateKeyPem: generatePrivateKeyPem(),
      id: 'gate.test',
    }),
  }
  const path = `${client}/enroll?method=erott&token=${String(enrollmentToken)}`
  const reply = await https.call({ path, body })
  expect(reply.status, reply.text).toBe(200)
  const { cert } = reply.body.data as { cert: string }
  return { id, key: { certificatePem: cert, privateKeyPem } }
}

interface Dialed {
  readonly socket: TLSSocket
  /** Null when the socket closes without an answer. */
  readonly answer: ChannelMessage | null
}

async function dial(
  id: string,
  key: CertificateWithKey | null,
  options: ConnectionOptions = {},
): Promise<Dialed> {
  const socket = connect({
    host: '127.0.0.1',
    port: listener.port,
    rejectUnauthorized: false,
    ALPNProtocols: ['ziti-ctrl'],
    ...(key === null ? {} : { cert: key.certificatePem, key: key.privateKeyPem }),
    ...options,
  })
  const limits = { frameHeadersBytesMax: 65_536, frameHeadersMax: 99, frameBodyBytesMax: 65_536 }
  const decoder = new FrameDecoder(limits)
  const answer = new Promise<ChannelMessage | null>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      const [first] = decoder.push(chunk).messages
      if (first !== undefined) resolve(first)
    })
    socket.on('close', () => resolve(null))
    socket.on('error', () => resolve(null))
  })
  const headers = new Map([
    [4, encodeText('v2.0.3|r|d|linux|amd64')],
    [1002, encodeBitMask([1, 2, 6, 20, 62])],
  ])
  socket.write(frameOf({ contentType: 0, sequence: -1, headers, body: encodeText(id) }))
  return { socket, answer: await answer }
}

const isAccepted = ({ answer }: Dialed): boolean => answer?.headers.get(2)?.[0] === 1
const reasonOf = ({ answer }: Dialed): string | null =>
  answer === null ? null : Buffer.from(answer.body).toString()
const closed = (socket: TLSSocket): Promise<void> =>
  new Promise((resolve) => (socket.destroyed ? resolve() : socket.once('close', () => resolve())))

async function close(dialed: Dialed): Promise<void> {
  dialed.socket.destroy()
  await closed(dialed.socket)
}

/** A router of a migrated network, whose record contains only the SHA-1 of its certificate. */
async function migrated(name: string): Promise<Enrolled> {
  const router = await enrolled(name)
  const { fingerprint } = await shown(root, `${edgeRouters}/${router.id}`)
  const fields = { certPem: null, adoptableFingerprint: String(fingerprint) }
  const json = new TextEncoder().encode(canonicalJson(fields))
  const message = create(EntityWriteSchema, { entity: 'edgeRouter', id: router.id, json })
  const payload = toBinary(EntityWriteSchema, message)
  const { outcome } = controller.cluster.apply(commandData(CommandKind.ENTITY_PATCH, payload))
  expect(outcome).toEqual({ ok: true, id: router.id })
  return router
}

describe('a migrated router at its first connection', () => {
  test('is admitted once the log entry with its certificate is applied', async () => {
    const { id, key } = await migrated('migrated')
    const { cluster } = controller
    const { propose } = cluster
    const { promise: held, resolve: proceed } = Promise.withResolvers<void>()
    const { promise: proposed, resolve: onProposed } = Promise.withResolvers<void>()
    cluster.propose = async (input) => {
      cluster.propose = propose
      onProposed()
      await held
      return await propose.call(cluster, input)
    }
    const both = [dial(id, key), dial(id, key)]
    await proposed
    expect(await shown(root, `${edgeRouters}/${id}`)).toMatchObject({ isOnline: false })
    proceed()
    const dialed = await Promise.all(both)
    expect(dialed.map(isAccepted)).toEqual([true, true])
    const record = await shown(root, `${edgeRouters}/${id}`)
    expect([record['adoptableFingerprint'], typeof record['certPem']]).toEqual([
      undefined,
      'string',
    ])
    for (const one of dialed) await close(one)
    await root.call('DELETE', `${edgeRouters}/${id}`)
  })

  test('gets no response while no leader can store its certificate, and is admitted later', async () => {
    const { id, key } = await migrated('without a leader')
    controller.cluster.hasLeader = false
    const dialed = await dial(id, key)
    controller.cluster.hasLeader = true
    expect(dialed.answer).toBeNull()
    const again = await dial(id, key)
    expect(isAccepted(again)).toBe(true)
    await close(again)
    await root.call('DELETE', `${edgeRouters}/${id}`)
  })
})

describe('an enrolled router', () => {
  test('is shown as online by every API while it is connected, and lists can be filtered by this', async () => {
    const { id, key } = await enrolled('online')
    const dialed = await dial(id, key)
    expect(isAccepted(dialed)).toBe(true)
    const versionInfo = {
      version: 'v2.0.3',
      revision: 'r',
      buildDate: 'd',
      os: 'linux',
      arch: 'amd64',
    }
    expect(await shown(root, `${edgeRouters}/${id}`)).toMatchObject({
      isOnline: true,
      version: 'v2.0.3',
      versionInfo,
      capabilities: ['MULTI_CHANNEL', 'CONNECT_V2', 'BIND_SUCCESS'],
      // A JSON number above 2^53 is not exact, so higher bits are omitted.
      capabilitiesMask: 2 + 4 + 64 + 2 ** 20,
    })
    expect(await shown(root, `${management}/routers/${id}`)).toMatchObject({ isOnline: true })
    expect(await shown(root, `${fabric}/routers/${id}`)).toMatchObject({ connected: true })
    await made(root, edgeRouters, { name: 'another' })
    const named = async (query: string): Promise<unknown[]> =>
      (await listed(root, `${edgeRouters}?${query}`)).map(({ name }) => name)
    expect(await named('filter=online%3Dtrue')).toEqual(['online'])
    expect(await named('filter=connected%3Dfalse')).toEqual(['another'])
    expect(await named('sort=online%20desc')).toEqual(['online', 'another'])
    await close(dialed)
    await expect.poll(() => named('filter=online%3Dtrue')).toEqual([])
    expect(await shown(root, `${edgeRouters}/${id}`)).toMatchObject({ isOnline: false })
  })

  test('is disconnected and then refused when it is disabled, is deleted or must enroll again', async () => {
    for (const [name, method, path, body, reason] of [
      ['disabled', 'PATCH', '', { disabled: true }, 'the router is disabled'],
      ['deleted', 'DELETE', '', undefined, 'the certificate belongs to no router'],
      ['again', 'POST', '/re-enroll', {}, 'the certificate belongs to no router'],
    ] as const) {
      const { id, key } = await enrolled(name)
      const { socket } = await dial(id, key)
      const reply = await root.call(method, `${edgeRouters}/${id}${path}`, body)
      expect(reply.status, reply.text).toBe(200)
      await closed(socket)
      const refused = await dial(id, key)
      expect(reasonOf(refused)).toBe(reason)
      await close(refused)
    }
  })

  test('is refused by a controller that is out of service', async () => {
    const { id, key } = await enrolled('out')
    isOutOfService = true
    const refused = await dial(id, key)
    isOutOfService = false
    expect(reasonOf(refused)).toBe('this controller is out of service')
    await close(refused)
  })

  test('gets no response from a controller that has not yet received its state', async () => {
    const { id, key } = await enrolled('early')
    isReady = false
    const closed = await dial(id, key)
    isReady = true
    expect(closed.answer).toBe(null)
    await close(closed)
  })
})

describe('a controller refuses a router’s connection that is made', () => {
  test('without a certificate, or with a certificate of the network that is not a router certificate', async () => {
    const { id } = await enrolled('victim')
    const none = await dial(id, null)
    expect(reasonOf(none)).toBe('no certificate was presented')
    await close(none)
    const { issuing } = controller.authorities
    const other = await dial(id, await clientKey(issuing, id, controller.clock.nowMs()))
    expect(reasonOf(other)).toBe('the certificate belongs to no router')
    await close(other)
  })

  test('with the certificate of a router other than the one in the hello', async () => {
    const { id } = await enrolled('victim 2')
    const { key } = await enrolled('attacker')
    const refused = await dial(id, key)
    expect(reasonOf(refused)).toBe('the certificate belongs to another router')
    await close(refused)
  })

  test('with an unexpected application protocol, without one, or with TLS 1.1', async () => {
    const { id, key } = await enrolled('h2')
    expect((await dial(id, key, { ALPNProtocols: ['h2'] })).answer).toBeNull()
    expect((await dial(id, key, { ALPNProtocols: [] })).answer).toBeNull()
    expect((await dial(id, key, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1' })).answer).toBeNull()
  })

  test('above the maximum number of connections from one source', async () => {
    const { id, key } = await enrolled('many')
    const held = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const socket = connect({
          host: '127.0.0.1',
          port: listener.port,
          rejectUnauthorized: false,
          ALPNProtocols: ['ziti-ctrl'],
        })
        await new Promise((resolve) => socket.once('secureConnect', resolve))
        return socket
      }),
    )
    expect((await dial(id, key)).answer).toBeNull()
    for (const socket of held) {
      socket.destroy()
      await closed(socket)
    }
    // The listener notices a little later that these sockets have closed.
    await expect
      .poll(async () => {
        const dialed = await dial(id, key)
        await close(dialed)
        return isAccepted(dialed)
      })
      .toBe(true)
  })
})

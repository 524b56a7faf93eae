import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createApi } from '../../src/api/server.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  issueControllerCertificate,
  issueLeaf,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { externalSpiffeId } from '../../src/pki/spiffe.ts'
import { client, fabric, management } from '../api/support/caller.ts'
import { startController, type TestController } from '../api/support/controller.ts'
import { newCa } from '../support/authorities.ts'

// The attack: somebody reads the metrics, or more, with a certificate that was not issued for
// monitoring: a self-signed one, one of a controller or an identity of the network, a server
// certificate, or an expired one.

const DAY_MS = 24 * 60 * 60_000
const MONITOR = externalSpiffeId('test.internal')

let controller: TestController
let listener: ReturnType<ReturnType<typeof createApi>['listener']>
let port = 0

beforeAll(async () => {
  controller = await startController()
  const own = await leaf(controller.authorities.issuing, [], ['server'])
  listener = createApi(controller.parts).listener({
    apis: ['client', 'management', 'fabric', 'host'],
    https: {
      cert: own.certificatePem,
      key: own.privateKeyPem,
      requestCert: true,
      rejectUnauthorized: false,
    },
  })
  await listener.listen({ port: 0, host: '127.0.0.1' })
  port = (listener.server.address() as AddressInfo).port
  // Generating keys and certificates is slow on a busy machine.
})
afterAll(async () => {
  await listener.close()
  await controller.close()
})

function leaf(
  issuer: CertificateWithKey,
  uris: readonly string[],
  usages: readonly ('client' | 'server')[] = ['client'],
  fromMs = controller.clock.nowMs(),
): Promise<CertificateWithKey> {
  const validity = validityStartingAt(fromMs, DAY_MS)
  return issueLeaf({ issuer, commonName: 'prometheus', uris, hosts: [], usages, validity })
}

function statusOf(
  path: string,
  shown: CertificateWithKey | null,
  { method = 'GET', agent = false }: { method?: string; agent?: Agent | false } = {},
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent,
      rejectUnauthorized: false,
      ...(shown === null ? {} : { cert: shown.certificatePem, key: shown.privateKeyPem }),
    })
    asked.on('response', (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    asked.on('error', reject)
    asked.end()
  })
}

interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly 'x-permission': string }>>>
  >
}

test('a monitoring certificate gives access to metrics and health, and to no API operation that is not public', async () => {
  const shown = await leaf(controller.authorities.issuing, [MONITOR])
  expect(await statusOf('/metrics', shown)).toBe(200)
  expect(await statusOf('/health-checks', shown)).toBe(200)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let asked = 0
  for (const base of [client, management, fabric]) {
    const { payload } = await controller.app.inject(`${base}/openapi.json`)
    const { paths } = JSON.parse(payload) as Document
    for (const [path, item] of Object.entries(paths)) {
      for (const [method, described] of Object.entries(item)) {
        if (described['x-permission'] === 'public') continue
        const url = base + path.replaceAll(/\{\w+\}/g, 'default')
        const status = await statusOf(url, shown, { method: method.toUpperCase(), agent })
        expect([method, url, status]).toEqual([method, url, 401])
        asked += 1
      }
    }
  }
  agent.destroy()
  expect(asked).toBeGreaterThan(200)
  expect(await statusOf('/metrics', null)).toBe(401)
})

test('a monitoring certificate continues to give access after the issuing authority was replaced', async () => {
  const { root } = controller.authorities
  const validity = validityStartingAt(controller.clock.nowMs(), DAY_MS)
  const former = await createIssuingAuthority({ commonName: 'network issuing', root, validity })
  expect(await statusOf('/metrics', await leaf(former, [MONITOR]))).toBe(200)
  const foreign = await newCa('network root', controller.clock.nowMs())
  const other = await createIssuingAuthority({
    commonName: 'network issuing',
    root: foreign,
    validity,
  })
  expect(await statusOf('/metrics', await leaf(other, [MONITOR]))).toBe(401)
})

test('a self-signed certificate gives no access to metrics', async () => {
  const own = await newCa('network root', controller.clock.nowMs())
  expect(await statusOf('/metrics', await leaf(own, [MONITOR]))).toBe(401)
})

test('a monitoring certificate that is expired or not yet valid gives no access to metrics', async () => {
  const { issuing } = controller.authorities
  for (const fromMs of [-3 * DAY_MS, 3 * DAY_MS]) {
    const shown = await leaf(issuing, [MONITOR], ['client'], controller.clock.nowMs() + fromMs)
    expect(await statusOf('/metrics', shown)).toBe(401)
  }
})

test('certificates of controllers, identities and servers of the network give no access to metrics', async () => {
  const { issuing } = controller.authorities
  const member = await issueControllerCertificate({
    issuer: issuing,
    trustDomain: 'test.internal',
    id: 'ctrl9',
    hosts: ['localhost'],
    validity: validityStartingAt(controller.clock.nowMs(), DAY_MS),
  })
  const others = [
    member,
    await leaf(issuing, []),
    await leaf(issuing, ['spiffe://test.internal/identity/alice']),
    await leaf(issuing, [MONITOR, 'spiffe://test.internal/identity/alice']),
    await leaf(issuing, [MONITOR], ['server']),
  ]
  for (const shown of others) expect(await statusOf('/metrics', shown)).toBe(401)
})

test.each(['NODE_QUARANTINED', 'CLUSTER_NO_LEADER'] as const)(
  'if the state is unusable (%s), only a monitoring certificate gives access to metrics',
  async (refusal) => {
    const monitor = await leaf(controller.authorities.issuing, [MONITOR])
    const other = await leaf(controller.authorities.issuing, [])
    controller.refusal = refusal
    try {
      expect(await statusOf('/metrics', monitor)).toBe(200)
      expect(await statusOf('/metrics', other)).toBe(503)
      expect(await statusOf('/metrics', null)).toBe(503)
      expect(await statusOf('/edge/management/v1/services', monitor)).toBe(503)
    } finally {
      controller.refusal = null
    }
  },
)

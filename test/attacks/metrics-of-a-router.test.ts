import { request } from 'node:https'
import { afterEach, beforeEach, expect, test } from 'vitest'

import {
  type CertificateWithKey,
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { externalSpiffeId } from '../../src/pki/spiffe.ts'
import { eventually, type ScriptedController, TestNetwork } from '../router/support.ts'
import { newCa } from '../support/authorities.ts'
import { expectOnMetricsPage } from '../support/metrics-page.ts'
import { freePort } from '../support/ports.ts'

// The attack: somebody reads the metrics of a router without a certificate from `flotilla pki
// issue`: without a certificate, with one of another network, or with one of a router, an identity
// or a controller.

let network: TestNetwork
let controller: ScriptedController
let port: number
beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('a')
  port = await freePort()
})
afterEach(() => network.close())

async function serve(apis: string): Promise<void> {
  const points = `bindPoints: [{interface: "127.0.0.1:${port}", address: "r.test:${port}"}]`
  await network.running([controller.address], `web: [{name: w, ${points}, apis: [${apis}]}]\n`)
  await eventually(() => controller.isConnected).toBe(true)
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
}

function get(path: string, key: CertificateWithKey | null = null): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const shown = key === null ? {} : { cert: key.certificatePem, key: key.privateKeyPem }
    const ca = network.root.certificatePem
    const asked = request({ host: '127.0.0.1', port, path, ca, agent: false, ...shown })
    asked.on('error', reject)
    asked.on('response', (answer) => {
      let text = ''
      answer.on('data', (chunk: Buffer) => (text += chunk.toString()))
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          type: answer.headers['content-type'] ?? '',
          text,
        }),
      )
    })
    asked.end()
  })
}

const MONITOR = externalSpiffeId('net.example')
const BOTH = '{binding: health-checks}, {binding: metrics}'

function leafOf(issuer: CertificateWithKey, uris: readonly string[]): Promise<CertificateWithKey> {
  return issueLeaf({
    issuer,
    commonName: 'prometheus',
    uris,
    hosts: [],
    usages: ['client'],
    validity: validityStartingAt(Date.now(), LEAF_LIFETIME_MS),
  })
}

test('A holder of a monitoring certificate can read a router’s metrics in the Prometheus format', async () => {
  await serve(BOTH)
  const { status, type, text } = await get('/metrics', await leafOf(network.root, [MONITOR]))
  expect([status, type]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  for (const line of [
    'flotilla_router_build_info{id="router1",version="v2.0.0"} 1',
    'flotilla_router_controllers_connected 1',
    'flotilla_router_links 0',
    'flotilla_router_circuits 0',
    'flotilla_router_client_connections 0',
    'flotilla_router_client_circuits 0',
    'flotilla_router_hosted_terminators 0',
    'flotilla_router_api_sessions 0',
    'flotilla_router_forwarded_bytes_total 0',
    'flotilla_router_traffic_bytes_total{side="ingress",direction="rx"} 0',
  ]) {
    expect(text).toContain(`${line}\n`)
  }
  expect(text).toMatch(
    /^flotilla_router_own_certificate_not_after_timestamp_seconds\{certificate="client"\} \d+$/m,
  )
})

test('docs/reference/metrics.md lists every metric of a router (FLOTILLA_RECORD=1 records it)', async () => {
  await serve(BOTH)
  const { text } = await get('/metrics', await leafOf(network.root, [MONITOR]))
  expectOnMetricsPage('Routers', text)
})

test('A router’s metrics cannot be read without a monitoring certificate of the network', async () => {
  await serve(BOTH)
  const stranger = await newCa('another network', Date.now())
  const refused = await Promise.all([
    get('/metrics'),
    get('/metrics', await leafOf(stranger, [MONITOR])),
    get('/metrics', await leafOf(network.root, [])),
    get('/metrics', await leafOf(network.root, ['spiffe://net.example/identity/ann'])),
    get('/metrics', await leafOf(network.root, ['spiffe://net.example/controller/ctrl1'])),
    get('/metrics?x=1', await leafOf(network.root, [MONITOR, MONITOR])),
  ])
  expect(refused.map(({ status, text }) => [status, text.includes('flotilla_router')])).toEqual(
    refused.map(() => [401, false]),
  )
  expect((await get('/health-checks')).status).toBe(200)
})

test('A web server of a router serves only the APIs in its configuration', async () => {
  await serve('{binding: metrics}')
  expect((await get('/health-checks')).status).toBe(404)
})

test('If a web listener serves only health checks, its metrics path shows health checks as well', async () => {
  await serve('{binding: health-checks}')
  const { type, text } = await get('/metrics', await leafOf(network.root, [MONITOR]))
  expect([type, text.includes('flotilla_router')]).toEqual(['application/json', false])
})

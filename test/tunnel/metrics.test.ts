import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { readIdentityFile } from '../../src/cli/tunnel/identity-file.ts'
import { formatPrometheusMetrics } from '../../src/overlay/monitoring/prometheus-metrics.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { LogInRefusedError, SessionEndedError } from '../../src/tunnel/controller-api.ts'
import { ServiceCounts } from '../../src/tunnel/tunnel-counts.ts'
import type { IdentityTunnel } from '../../src/tunnel/identity-tunnel.ts'
import { tunnelLimits } from '../../src/tunnel/limits.ts'
import { tunnelMetrics } from '../../src/tunnel/tunnel-metrics.ts'
import { echoServer } from '../router/tunnel/support.ts'
import { expectOnMetricsPage } from '../support/metrics-page.ts'
import { freePort } from '../support/ports.ts'
import { eventually, TunnelStage } from './support.ts'

// Goal: the metrics of a tunnel show its sessions, edge routers, services and circuits. Method: the
// tunnels and one of our routers over real channels; the test plays the controllers and their API.

let stage: TunnelStage
const closing: (() => void)[] = []
beforeEach(async () => {
  stage = await TunnelStage.create()
})
afterEach(async () => {
  for (const close of closing.splice(0)) close()
  await stage.close()
})

async function textOf(tunnel: IdentityTunnel): Promise<string> {
  const measured = { file: 'ann.json', figures: tunnel.figures }
  return await formatPrometheusMetrics(
    tunnelMetrics({ mode: 'proxy', version: 'v1.2.3' }, [measured]),
  )
}

/** Our series, without those that depend on time. */
async function seriesOf(tunnel: IdentityTunnel): Promise<Readonly<Record<string, number>>> {
  const found = [...(await textOf(tunnel)).matchAll(/^flotilla_tunnel_(.+) (\S+)$/gm)]
  return Object.fromEntries(
    found
      .map(([, name = '', value]) => [name.replace('file="ann.json",', ''), Number(value)] as const)
      .filter(([name]) => !name.includes('latency')),
  )
}

/** A host and a client of service s1, which sends received data back. */
async function hostAndClient() {
  const target = await echoServer()
  closing.push(target.close)
  const port = await freePort()
  const about = { id: 's1', encryptionRequired: false } as const
  const config = { 'host.v1': { protocol: 'tcp', address: '127.0.0.1', port: target.port } }
  const host = await stage.tunnel('host1', [{ ...about, permissions: ['Bind'], config }])
  const client = await stage.tunnel(
    'ann',
    [{ ...about, permissions: ['Dial'], config: {} }],
    [{ name: 'name of s1', port, protocol: 'tcp' }],
  )
  return { host, client, port, target }
}

test('every metric counter of a tunnel has the value zero before the tunnel starts', async () => {
  const { client } = await hostAndClient()
  const { certificatePem } = readIdentityFile(stage.network.path('ann.json'))
  const { notAfterMs } = parseCertificate(certificatePem)
  expect(await seriesOf(client.tunnel)).toEqual({
    'build_info{mode="proxy",version="v1.2.3"}': 1,
    'certificate_not_after_timestamp_seconds{file="ann.json"}': notAfterMs / 1000,
    'session_open{file="ann.json"}': 0,
    'controllers_known{file="ann.json"}': 0,
    'log_ins_total{result="success"}': 0,
    'log_ins_total{result="refused"}': 0,
    'log_ins_total{result="failed"}': 0,
    'controller_polls_total{result="success"}': 0,
    'controller_polls_total{result="refused"}': 0,
    'controller_polls_total{result="failed"}': 0,
    'edge_routers_known{file="ann.json"}': 0,
    'edge_routers_connected{file="ann.json"}': 0,
    'edge_router_dials_total{result="success"}': 0,
    'edge_router_dials_total{result="refused"}': 0,
    'edge_router_dials_total{result="failed"}': 0,
    'edge_routers_lost_total{file="ann.json"}': 0,
    'services{permission="Dial"}': 0,
    'services{permission="Bind"}': 0,
    'dials_total{service="",result="success"}': 0,
    'dials_total{service="",result="refused"}': 0,
    'dials_total{service="",result="failed"}': 0,
    'hosted_dials_total{service="",result="success"}': 0,
    'hosted_dials_total{service="",result="refused"}': 0,
    'hosted_dials_total{service="",result="failed"}': 0,
    'circuits{file="ann.json"}': 0,
    'circuit_bytes_total{direction="rx"}': 0,
    'circuit_bytes_total{direction="tx"}': 0,
  })
})

test('a hosting tunnel and a dialing tunnel each count the circuits, bytes and dials of a service by result', async () => {
  const { host, client, port, target } = await hostAndClient()
  await host.tunnel.start()
  await client.tunnel.start()
  await eventually(() => stage.terminators.size).toBe(1)
  await eventually(() => stage.logged('service offered').length).toBe(1)
  expect(await seriesOf(client.tunnel)).toMatchObject({
    'session_open{file="ann.json"}': 1,
    'controllers_known{file="ann.json"}': 1,
    'log_ins_total{result="success"}': 1,
    'services{permission="Dial"}': 1,
    'dials_total{service="name of s1",result="success"}': 0,
  })
  const socket = connect({ port, host: '127.0.0.1' })
  closing.push(() => socket.destroy())
  socket.write('hello')
  const [read] = (await once(socket, 'data')) as [Buffer]
  expect(read.toString()).toBe('hello')
  expect(await seriesOf(client.tunnel)).toMatchObject({
    'edge_routers_known{file="ann.json"}': 1,
    'edge_routers_connected{file="ann.json"}': 1,
    'edge_router_dials_total{result="success"}': 1,
    'dials_total{service="name of s1",result="success"}': 1,
    'circuits{file="ann.json"}': 1,
    'circuit_bytes_total{direction="rx"}': 5,
    'circuit_bytes_total{direction="tx"}': 5,
  })
  expect(await seriesOf(host.tunnel)).toMatchObject({
    'hosted_terminators{service="name of s1"}': 1,
    'hosted_dials_total{service="name of s1",result="success"}': 1,
    'circuits{file="ann.json"}': 1,
    'circuit_bytes_total{direction="rx"}': 5,
    'circuit_bytes_total{direction="tx"}': 5,
  })
  expect(await textOf(client.tunnel)).toMatch(
    /^flotilla_tunnel_edge_router_latency_seconds\{file="ann.json",router="[^"]+"\} [\d.e-]+$/m,
  )
  socket.destroy()
  await eventually(async () => (await seriesOf(host.tunnel))['circuits{file="ann.json"}']).toBe(0)

  target.close()
  const refused = connect({ port, host: '127.0.0.1' })
  refused.on('error', () => undefined)
  await once(refused, 'close')
  expect([await seriesOf(client.tunnel), await seriesOf(host.tunnel)]).toMatchObject([
    { 'dials_total{service="name of s1",result="refused"}': 1 },
    { 'hosted_dials_total{service="name of s1",result="failed"}': 1 },
  ])
})

test('a tunnel counts its log-ins and polls by result', async () => {
  const { client } = await hostAndClient()
  client.api.faults.push(new Error('connection refused'))
  await client.tunnel.start()
  await eventually(async () => await seriesOf(client.tunnel)).toMatchObject({
    'log_ins_total{result="success"}': 1,
    'log_ins_total{result="failed"}': 1,
    'controller_polls_total{result="success"}': 1,
  })
  client.api.faults.push(new SessionEndedError('the session has ended'))
  await eventually(async () => await seriesOf(client.tunnel)).toMatchObject({
    'controller_polls_total{result="refused"}': 1,
    'log_ins_total{result="success"}': 2,
  })
  const other = await stage.tunnel('eve', [])
  other.api.faults.push(new LogInRefusedError('log-in refused'))
  await expect(other.tunnel.start()).rejects.toThrow('log-in refused')
  expect(await seriesOf(other.tunnel)).toMatchObject({
    'session_open{file="ann.json"}': 0,
    'log_ins_total{result="refused"}': 1,
  })
})

test('a tunnel counts the first services separately, and all others together', () => {
  const counts = new ServiceCounts()
  const { measuredServicesMax } = tunnelLimits
  for (let at = 0; at < measuredServicesMax + 3; at += 1) counts.add(`s${at}`, 'success')
  expect(counts.values.size).toBe(measuredServicesMax + 1)
  expect(counts.values.get('')?.values.get('success')).toBe(3)
})

test('docs/reference/metrics.md lists every metric of a tunnel (FLOTILLA_RECORD=1 records it)', async () => {
  const { client } = await hostAndClient()
  expectOnMetricsPage('Tunnels', await textOf(client.tunnel))
})

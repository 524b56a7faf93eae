import { request } from 'node:http'
import { afterEach, expect, test } from 'vitest'

import { runTunnel } from '../../src/cli/tunnel/run.ts'
import type { MonitoringServer } from '../../src/overlay/monitoring/monitoring-server.ts'
import { ServiceCounts } from '../../src/tunnel/tunnel-counts.ts'
import { tunnelLimits } from '../../src/tunnel/limits.ts'
import { startMetricsServer } from '../../src/tunnel/metrics-server.ts'

// The attacks: a web page in a browser on the host has a name that its owner resolves to loopback,
// and reads the metrics of the tunnel, which contain the names of the user's services; every
// network of the host can read the metrics; an unlimited number of services fills the memory.

let server: MonitoringServer | null = null
afterEach(async () => {
  await server?.stop()
  server = null
})

const ONE = { type: 'gauge', name: 'flotilla_tunnel_circuits', help: 'x', samples: [{ value: 7 }] }
const log = { info: () => undefined, warn: () => undefined, error: () => undefined }

function get(port: number, host: string, path = '/metrics', method = 'GET'): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({
      host: '127.0.0.1',
      port,
      path,
      method,
      headers: { host },
      agent: false,
    })
    asked.on('error', reject)
    asked.on('response', (answer) => {
      let text = ''
      answer.on('data', (chunk: Buffer) => (text += chunk.toString()))
      answer.on('end', () => resolve(`${answer.statusCode} ${/tunnel_circuits 7$/m.test(text)}`))
    })
    asked.end()
  })
}

test('A tunnel’s metrics can be read at the loopback interface by IP address and as localhost, but under no other host name', async () => {
  const metrics = () => [ONE] as never
  server = await startMetricsServer({ host: '127.0.0.1', port: 0 }, { metrics, log })
  const { port } = server
  expect(await get(port, `127.0.0.1:${port}`)).toBe('200 true')
  expect(await get(port, `localhost:${port}`)).toBe('200 true')
  expect(await get(port, `[::1]:${port}`)).toBe('200 true')
  for (const host of [
    `attacker.example:${port}`,
    'attacker.example',
    '127.0.0.1.attacker.example',
    'localhost.',
  ]) {
    expect(await get(port, host), host).toBe('421 false')
  }
  expect(await get(port, '127.0.0.1', '/')).toBe('404 false')
  expect(await get(port, '127.0.0.1', '/metrics', 'POST')).toBe('404 false')
})

test('A tunnel refuses to serve metrics at an unspecified address, which every network of the host reaches', async () => {
  const options = {
    identity: ['missing.json'],
    bind: '127.0.0.1',
    resolver: 'udp://127.0.0.1:53',
    dnsRange: '100.64.0.1/10',
    logLevel: 'info',
  }
  for (const metrics of ['0.0.0.0:9101', '[::]:9101', '[0:0::0]:9101', '[::ffff:0.0.0.0]:9101']) {
    await expect(runTunnel({ ...options, metrics }), metrics).rejects.toThrow(
      `--metrics: exposes the metrics on every address of this host (${metrics}); name a private address`,
    )
  }
  for (const metrics of ['host.example.net:9101', '0:9101', '9101:', '70000', '']) {
    await expect(runTunnel({ ...options, metrics }), metrics).rejects.toThrow(
      `--metrics: expected PORT, or ADDRESS:PORT with an address of this host, found ${JSON.stringify(metrics)}`,
    )
  }
})

test('A tunnel with any number of services stores separate metrics only for the first ones', () => {
  const counts = new ServiceCounts()
  const { measuredServicesMax } = tunnelLimits
  for (let at = 0; at < 4 * measuredServicesMax; at += 1) counts.add(`s${at}`, 'failed')
  expect(counts.values.size).toBe(measuredServicesMax + 1)
})

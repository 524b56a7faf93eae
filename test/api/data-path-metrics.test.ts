import { Registry } from 'prom-client'
import { expect, test } from 'vitest'

import { DataPathCounts } from '../../src/api/metrics/data-path-counts.ts'
import {
  addDataPathMetrics,
  type DataPathMetricsSources,
  type MeasuredService,
} from '../../src/api/metrics/data-path-metrics.ts'
import { metricsLimits } from '../../src/api/metrics/limits.ts'
import type { LiveLink } from '../../src/ports/live-table.ts'

const link = (state: LiveLink['state'], isDown = false): LiveLink =>
  ({ id: 'l', state, isDown }) as LiveLink

const nothing: DataPathMetricsSources = {
  counts: new DataPathCounts(),
  routers: () => [],
  services: () => [],
  circuits: { size: 0 },
  channels: { size: 0 },
  links: { list: () => [] },
}

async function textOf(changes: Partial<DataPathMetricsSources> = {}): Promise<string> {
  const registry = new Registry()
  addDataPathMetrics(registry, { ...nothing, counts: new DataPathCounts(), ...changes })
  const text = await registry.metrics()
  return text.replaceAll(/^#.*\n|^\n/gm, '')
}

test('every counter of circuits and dials starts at 0 for each result and cause', async () => {
  const text = await textOf()
  const counters = text.split('\n').filter((line) => line.includes('_total'))
  expect(counters).toEqual([
    'flotilla_circuits_created_total 0',
    'flotilla_circuits_rerouted_total 0',
    ...[
      'ROUTER_ERR_GENERIC',
      'ROUTER_ERR_INVALID_TERMINATOR',
      'ROUTER_ERR_MISCONFIGURED_TERMINATOR',
      'ROUTER_ERR_DIAL_TIMED_OUT',
      'ROUTER_ERR_CONN_REFUSED',
      'ROUTER_ERR_REJECTED_BY_APPLICATION',
      'ROUTER_ERR_DNS_RESOLUTION_FAILED',
      'ROUTER_ERR_PORT_NOT_ALLOWED',
      'ROUTER_ERR_INVALID_LINK_DESTINATION',
      'ROUTER_ERR_RESOURCES_NOT_AVAILABLE',
      'NO_ONLINE_TERMINATORS',
      'ROUTER_RESPONSE_TIMEOUT',
      'OTHER',
    ].map((cause) => `flotilla_circuits_failed_total{cause="${cause}"} 0`),
    ...[
      'success',
      'fail',
      'timeout',
      'other',
      'terminatorTimeout',
      'terminatorRefused',
      'terminatorInvalid',
      'terminatorMisconfigured',
    ].map((result) => `flotilla_dials_total{result="${result}"} 0`),
  ])
})

test('the metrics count routers, links, circuits and services', async () => {
  const counts = new DataPathCounts()
  const dial = { kind: 'dial', serviceId: 's', terminatorId: 't' } as const
  counts.note({ ...dial, result: 'success' })
  counts.note({ ...dial, result: 'success' })
  const ids = { circuitId: 'c', clientId: 'a', sessionId: '', serviceId: 's', instanceId: '' }
  const failed = { ...ids, layMs: 1 }
  counts.note({ kind: 'circuitFailed', cause: 'ROUTER_ERR_CONN_REFUSED', ...failed })
  counts.note({ kind: 'circuitFailed', cause: 'NEW_CAUSE' as 'ROUTER_ERR_GENERIC', ...failed })
  const circuit = { kind: 'circuit', circuit: {}, cost: 1, hostId: '', instanceId: '' } as never
  for (const type of ['created', 'pathUpdated', 'deleted'] as const) {
    counts.note(Object.assign({}, circuit, { type }))
  }
  const text = await textOf({
    counts,
    routers: () => [
      { id: '1', name: 'one "quoted"', isOnline: true, notAfterMs: 1_700_000_000_999 },
      { id: '2', name: 'two', isOnline: false, notAfterMs: null },
    ],
    services: () => [{ id: 's', name: 'wiki', terminatorCount: 2 }],
    circuits: { size: 3 },
    channels: { size: 4 },
    links: { list: () => [link('Connected'), link('Connected'), link('Connected', true)] },
  })
  const isZero = /_total\{.*\} 0$/
  expect(text.split('\n').filter((line) => line !== '' && !isZero.test(line))).toEqual([
    'flotilla_router_online{router="one \\"quoted\\"",id="1"} 1',
    'flotilla_router_online{router="two",id="2"} 0',
    'flotilla_router_certificate_not_after_timestamp_seconds{router="one \\"quoted\\"",id="1"} 1700000000',
    'flotilla_router_channels 4',
    'flotilla_links{state="Connected"} 2',
    'flotilla_links{state="Pending"} 0',
    'flotilla_links{state="Down"} 1',
    'flotilla_circuits 3',
    'flotilla_circuits_created_total 1',
    'flotilla_circuits_rerouted_total 1',
    'flotilla_circuits_failed_total{cause="ROUTER_ERR_CONN_REFUSED"} 1',
    'flotilla_circuits_failed_total{cause="OTHER"} 1',
    'flotilla_dials_total{result="success"} 2',
    'flotilla_service_terminators{service="wiki",id="s"} 2',
  ])
})

test('if a network has more services than the maximum number of metric series, only the first services are exported', async () => {
  let readCount = 0
  function* services(): Generator<MeasuredService> {
    for (;;) {
      readCount += 1
      yield { id: `${readCount}`, name: `service ${readCount}`, terminatorCount: 0 }
    }
  }
  const text = await textOf({ services })
  const { measuredServicesMax } = metricsLimits
  expect(text.match(/^flotilla_service_terminators/gm)).toHaveLength(measuredServicesMax)
  expect(readCount).toBe(measuredServicesMax + 1)
})

test('a metric series is labeled with the current name of its record, and is removed with the record', async () => {
  let services: readonly MeasuredService[] = [
    { id: '1', name: 'wiki', terminatorCount: 1 },
    { id: '2', name: 'shop', terminatorCount: 1 },
  ]
  const registry = new Registry()
  addDataPathMetrics(registry, { ...nothing, services: () => services })
  const lines = async () =>
    (await registry.metrics()).match(/^flotilla_service_terminators\{.*$/gm) ?? []
  expect(await lines()).toEqual([
    'flotilla_service_terminators{service="wiki",id="1"} 1',
    'flotilla_service_terminators{service="shop",id="2"} 1',
  ])
  services = [{ id: '1', name: 'a "wiki"', terminatorCount: 0 }]
  expect(await lines()).toEqual(['flotilla_service_terminators{service="a \\"wiki\\"",id="1"} 0'])
})

import { afterAll, beforeAll, expect, test } from 'vitest'

import { createApi } from '../../src/api/server.ts'
import { expectOnMetricsPage } from '../support/metrics-page.ts'
import { admin, startController, type TestController } from './support/controller.ts'

// Goal: the metrics follow the conventions of Prometheus.

let controller: TestController
let text = ''
beforeAll(async () => {
  controller = await startController()
  const logIn = async (password: string) =>
    await controller.app.inject({
      method: 'POST',
      url: '/edge/client/v1/authenticate?method=password',
      payload: { username: admin.username, password },
    })
  expect((await logIn('a wrong one')).statusCode).toBe(401)
  expect((await logIn(admin.password)).statusCode).toBe(200)
  const headers = { 'net-session': controller.openSession('admin-id') }
  text = (await controller.app.inject({ url: '/metrics', headers })).body
})
afterAll(async () => {
  await controller.close()
})

/** Names, types and series of the Prometheus text format. */
function families(): Map<string, { type: string; series: string[] }> {
  const found = new Map<string, { type: string; series: string[] }>()
  for (const [, name = '', type = '', body = ''] of text.matchAll(
    /^# TYPE (\S+) (\S+)\n((?:[^#\n][^\n]*\n?)*)/gm,
  )) {
    found.set(name, { type, series: body.split('\n').filter(Boolean) })
  }
  return found
}

test('the name of a Flotilla metric contains no other time unit than seconds, and ends with _total if it is a counter', () => {
  const names = [...families().keys()].filter((name) => name.startsWith('flotilla_'))
  expect(names.length).toBeGreaterThan(30)
  expect(names.filter((name) => /_(ms|millis|minutes)(_|$)/.test(name))).toEqual([])
  for (const [name, { type }] of families()) {
    if (name.startsWith('flotilla_')) {
      expect(name.endsWith('_total'), `${name} is a ${type}`).toBe(type === 'counter')
    }
  }
})

test('durations are exported as histograms: cumulative buckets, a sum and a count', () => {
  for (const name of [
    'flotilla_http_request_duration_seconds',
    'flotilla_wal_fsync_duration_seconds',
  ]) {
    const { type, series } = families().get(name) ?? { type: '', series: [] }
    expect(type).toBe('histogram')
    expect(series.some((line) => line.startsWith(`${name}_sum`))).toBe(true)
    const of = (pattern: RegExp): number[] =>
      series.flatMap((line) => (pattern.test(line) ? Number(line.split(' ').at(-1)) : []))
    const only = name.includes('http') ? '.*operation="authenticate".*' : '.*'
    const buckets = of(new RegExp(`_bucket${only}le=`))
    const [count = 0] = of(new RegExp(`_count${only}`))
    expect(buckets.length).toBeGreaterThan(10)
    expect(buckets).toEqual([...buckets].sort((a, b) => a - b))
    expect([buckets.at(-1), count]).toEqual([2, 2])
  }
})

test('the metrics include versions, the size of the network, alarms and expiry times', () => {
  expect(text).toContain(
    'flotilla_build_info{version="v1.2.3",revision="0123456789ab",runtime="node test"} 1\n',
  )
  expect(text).toContain('flotilla_entities{kind="identity"} 3\n')
  // The session of the log-in, and the session that reads the metrics.
  expect(text).toContain('flotilla_entities{kind="apiSession"} 2\n')
  expect(text).toContain('flotilla_alarms{code="CLOCK_SKEW",critical="false"} 1\n')
  expect(text).toContain('flotilla_log_in_failures_total{status="401"} 1\n')
  const end = /^flotilla_certificate_not_after_timestamp_seconds\{certificate="issuing"\} (\d+)$/m
  expect(Number(end.exec(text)?.[1]) * 1000).toBeGreaterThan(controller.clock.nowMs())
  expect(text).toContain('certificate="server console.example.org"} 2000000000\n')
  expect(text).toMatch(/^flotilla_member_lag_entries\{member="ctrl2"\} 40$/m)
  expect(text).toMatch(/^flotilla_member_last_contact_seconds\{member="ctrl2"\} 1.5$/m)
  expect(text).toMatch(/^flotilla_member_connected\{member="ctrl2"\} 0$/m)
})

test('a metrics listener serves only metrics and a health check without details, both without authentication', async () => {
  const app = createApi(controller.parts).listener({ apis: [], hasOpenMetrics: true, https: null })
  const headers = { 'net-session': controller.openSession('admin-id') }
  try {
    const shown = await app.inject('/metrics')
    expect(shown.statusCode).toBe(200)
    expect(shown.body).toContain('flotilla_build_info')
    // The health checks ignore sessions, even invalid ones.
    const health = await app.inject({ url: '/health-checks', headers })
    expect(health.statusCode).toBe(200)
    expect(health.json<{ data: unknown }>().data).not.toHaveProperty('node')
    for (const url of [
      '/edge/client/v1/version',
      '/edge/management/v1/services',
      '/fabric/v1/audit',
    ]) {
      expect((await app.inject({ url, headers })).statusCode, url).toBe(404)
    }
    expect((await app.inject({ method: 'POST', url: '/metrics' })).statusCode).toBe(405)
  } finally {
    await app.close()
  }
})

test('the time of the newest backup is exported only where scheduled backups are configured', async () => {
  const line = /^flotilla_backup_last_success_timestamp_seconds (\d+)$/m
  expect(text).not.toMatch(line)
  for (const [takenMs, seconds] of [
    [1_700_000_000_000, '1700000000'],
    [0, '0'],
  ] as const) {
    const api = createApi({ ...controller.parts, lastBackupMs: () => takenMs })
    const app = api.listener({ apis: [], hasOpenMetrics: true, https: null })
    try {
      expect(line.exec((await app.inject('/metrics')).body)?.[1]).toBe(seconds)
    } finally {
      await app.close()
    }
  }
})

test('docs/reference/metrics.md lists every metric of a controller (FLOTILLA_RECORD=1 records it)', () => {
  expectOnMetricsPage('Controllers', text)
})

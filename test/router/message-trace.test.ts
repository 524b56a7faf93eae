import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { circuitRequestMessage } from '../../src/channel/messages/circuit-requests.ts'
import { reportLimits } from '../../src/router/reports/limits.ts'
import { MessageTrace } from '../../src/router/reports/message-trace.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { FillingDisk } from '../support/filling-disk.ts'

const folder = mkdtempSync(join(tmpdir(), 'flotilla-trace-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test.each([
  ['a service session', undefined],
  ['a service ID', 'a service ID'],
])(
  'a trace contains a circuit request with %s, but not the tokens of the client',
  (_, serviceId) => {
    const path = join(folder, `${serviceId ?? 'session'}.log`)
    const trace = new MessageTrace(path, new ManualClock())
    const { contentType, headers = new Map() } = circuitRequestMessage({
      identityId: 'an identity ID',
      serviceId,
      instanceId: 'an instance',
      peerData: new Map(),
      sessionToken: 'secret-of-the-session',
      apiSessionToken: 'secret-of-the-api-session',
      fingerprint: 'ab'.repeat(20),
    })
    trace.write('ctrl1', 'out', { contentType, headers, sequence: 1, body: new Uint8Array() })
    trace.close()
    const written = readFileSync(path, 'utf8')
    expect(written).toMatch(/"name":"createCircuitV[23]"/)
    expect(written).toContain('an instance')
    expect(written).toContain('"14":"(25 bytes)"')
    expect(written).not.toContain('secret')
  },
)

const message = { contentType: 1, headers: new Map(), sequence: 1, body: new Uint8Array() }
const sequencesIn = (path: string): unknown[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { sequence?: unknown }).sequence)

test('the size of a trace includes what an earlier run of the router wrote, and a trace file above the limit is renamed', () => {
  const path = join(folder, 'earlier.log')
  writeFileSync(path, '')
  // A sparse file of this size occupies no disk space.
  truncateSync(path, reportLimits.traceBytesMax)
  const trace = new MessageTrace(path, new ManualClock())
  trace.write('ctrl1', 'in', message)
  expect(statSync(`${path}.1`).size).toBe(reportLimits.traceBytesMax)
  expect(sequencesIn(path)).toEqual([1])
  rmSync(`${path}.1`)
  trace.write('ctrl1', 'in', message)
  trace.close()
  expect(existsSync(`${path}.1`)).toBe(false)
})

test('a trace on a full disk damages no other line, and counts the lost lines', () => {
  const path = join(folder, 'full.log')
  const disk = new FillingDisk()
  const trace = new MessageTrace(path, new ManualClock(), disk)
  trace.write('ctrl1', 'in', message)
  disk.room = 10
  for (const sequence of [2, 3]) trace.write('ctrl1', 'in', { ...message, sequence })
  disk.room = Infinity
  for (const sequence of [4, 5]) trace.write('ctrl1', 'in', { ...message, sequence })
  trace.close()
  const [first = '', torn, dropped = '', ...others] = readFileSync(path, 'utf8').split('\n')
  expect(torn).toHaveLength(10)
  expect(JSON.parse(dropped)).toEqual({ at: '2026-01-02T03:04:05.670Z', dropped: 2 })
  const whole = [first, ...others.slice(0, -1)]
  expect(whole.map((line) => JSON.parse(line) as object)).toMatchObject([
    { sequence: 1 },
    { sequence: 4 },
    { sequence: 5 },
  ])
})

test('a trace continues on a new line if an earlier run of the router left a torn line', () => {
  const path = join(folder, 'torn.log')
  writeFileSync(path, '{"at":"20')
  const trace = new MessageTrace(path, new ManualClock())
  trace.write('ctrl1', 'in', message)
  trace.close()
  const [, line = ''] = readFileSync(path, 'utf8').split('\n')
  expect(JSON.parse(line)).toMatchObject({ sequence: 1 })
})

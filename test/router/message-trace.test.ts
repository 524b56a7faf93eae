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

test('the size of a trace includes what an earlier run of the router wrote, and a trace file above the limit is renamed', () => {
  const path = join(folder, 'earlier.log')
  writeFileSync(path, '')
  // A sparse file of this size occupies no disk space.
  truncateSync(path, reportLimits.traceBytesMax)
  const trace = new MessageTrace(path, new ManualClock())
  const message = { contentType: 1, headers: new Map(), sequence: 1, body: new Uint8Array() }
  trace.write('ctrl1', 'in', message)
  expect(statSync(`${path}.1`).size).toBeGreaterThan(reportLimits.traceBytesMax)
  expect(statSync(path).size).toBe(0)
  rmSync(`${path}.1`)
  trace.write('ctrl1', 'in', message)
  trace.close()
  expect(existsSync(`${path}.1`)).toBe(false)
})

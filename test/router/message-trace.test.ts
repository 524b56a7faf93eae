import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

import { circuitRequestMessage } from '../../src/channel/messages/circuit-requests.ts'
import { MessageTrace } from '../../src/router/reports/message-trace.ts'
import { ManualClock } from '../api/support/manual-time.ts'

const folder = mkdtempSync(join(tmpdir(), 'flotilla-trace-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test.each([
  ['of a service session', undefined],
  ['that names the service', 'a service ID'],
])(
  'a trace contains the request for a circuit %s without the tokens of the client',
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

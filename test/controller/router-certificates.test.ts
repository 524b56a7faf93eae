import { beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { type Alarm, alarmTable } from '../../src/cluster/alarm-table.ts'
import { Alarms } from '../../src/cluster/health/alarms.ts'
import { RouterCertificateWatch } from '../../src/controller/service/router-certificates.ts'
import type { Router } from '../../src/entities/kinds/router.ts'
import {
  CONNECT_BY_SERVICE,
  MULTI_CHANNEL,
  RENEWS_WITH_A_THIRD_LEFT,
} from '../../src/lib/router-capabilities.ts'
import { type CertificateWithKey, issueLeaf } from '../../src/pki/authority/authority.ts'
import { newCa } from '../support/authorities.ts'
import { RecordedLog } from '../cluster/mesh-fixture.ts'

const DAY_MS = 24 * 60 * 60_000
const notAfterMs = Date.UTC(2030, 0, 1)
const openZiti = [MULTI_CHANNEL, CONNECT_BY_SERVICE]
const flotilla = [...openZiti, RENEWS_WITH_A_THIRD_LEFT]

let nowMs = 0
const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
let year: string
let nextYear: string
let tenDays: string
let routers: Map<string, Partial<Router>>
let online: Map<string, readonly number[]>
let alarms: Alarms
let watch: RouterCertificateWatch

beforeAll(async () => {
  const issuer = await newCa('a network', notAfterMs - 400 * DAY_MS)
  year = await certificate(issuer, notAfterMs - 365 * DAY_MS, notAfterMs)
  nextYear = await certificate(issuer, notAfterMs - 60 * DAY_MS, notAfterMs + 300 * DAY_MS)
  tenDays = await certificate(issuer, notAfterMs - 10 * DAY_MS, notAfterMs)
})
beforeEach(() => {
  routers = new Map()
  online = new Map()
  alarms = new Alarms(clock, new RecordedLog().log)
  watch = new RouterCertificateWatch({
    alarms,
    clock,
    routers: {
      ids: () => routers.keys(),
      get: (_kind, id) => routers.get(id) as Router | undefined,
    },
    statuses: {
      of: (id) => {
        const capabilities = online.get(id)
        const none = { hostname: '', protocols: {}, linkListeners: [], interfaces: [] }
        const version = { version: '', revision: '', buildDate: '', os: '', arch: '' }
        return capabilities === undefined ? null : { ...none, version, capabilities }
      },
    },
  })
})

async function certificate(issuer: CertificateWithKey, notBeforeMs: number, endMs: number) {
  const { certificatePem } = await issueLeaf({
    issuer,
    commonName: 'router',
    uris: [],
    hosts: [],
    usages: ['client'],
    validity: { notBeforeMs, notAfterMs: endMs },
  })
  return certificatePem
}

function add(name: string, certPem: string, capabilities: readonly number[] | null): void {
  routers.set(name, { id: name, name, certPem, isVerified: true, disabled: false })
  if (capabilities !== null) online.set(name, capabilities)
}

async function alarmsAt(daysLeft: number): Promise<readonly Alarm['text'][]> {
  nowMs = notAfterMs - daysLeft * DAY_MS
  await watch.look()
  return alarms.list().map(({ code, text }) => `${code}: ${text}`)
}

const textOf = (...names: readonly string[]): string =>
  `ROUTER_CERTIFICATE_EXPIRES: ${alarmTable.ROUTER_CERTIFICATE_EXPIRES.text({
    routers: names.map((name) => ({ name, notAfterMs })),
  })}`

describe('The alarm about router certificates', () => {
  test('lists a Flotilla router if it has not renewed its certificate 30 days before the expiry', async () => {
    add('edge1', year, flotilla)
    expect(await alarmsAt(31)).toEqual([])
    expect(await alarmsAt(29)).toEqual([
      "ROUTER_CERTIFICATE_EXPIRES: routers have not renewed their certificates: edge1 (until 2030-01-01T00:00:00Z); look for 'certificates' in their logs",
    ])
  })

  test('lists an OpenZiti router, which renews seven days before the expiry, only six days before the expiry', async () => {
    add('edge1', year, openZiti)
    expect(await alarmsAt(7)).toEqual([])
    expect(await alarmsAt(5.9)).toEqual([textOf('edge1')])
  })

  test('also lists an offline router, and remembers whether this router usually renews early', async () => {
    add('off', year, null)
    add('lost', year, flotilla)
    await watch.look()
    online.clear()
    expect(await alarmsAt(29)).toEqual([textOf('lost')])
    expect(await alarmsAt(5)).toEqual([textOf('off', 'lost')])
  })

  test('is raised for a certificate with a short lifetime only after three quarters of the lifetime', async () => {
    add('edge1', tenDays, flotilla)
    expect(await alarmsAt(3)).toEqual([])
    expect(await alarmsAt(2.4)).toEqual([textOf('edge1')])
  })

  test('clears once the router has renewed', async () => {
    add('edge1', year, flotilla)
    expect(await alarmsAt(20)).toEqual([textOf('edge1')])
    add('edge1', nextYear, flotilla)
    expect(await alarmsAt(20)).toEqual([])
  })

  test('ignores routers that are disabled or that must enroll again', async () => {
    add('disabled', year, flotilla)
    routers.set('disabled', { ...routers.get('disabled'), disabled: true })
    add('unverified', year, flotilla)
    routers.set('unverified', { ...routers.get('unverified'), isVerified: false })
    expect(await alarmsAt(-1)).toEqual([])
  })

  test('lists at most five routers, and the number of the others', async () => {
    for (let at = 0; at < 200; at += 1) add(`edge${at}`, year, flotilla)
    const [text] = await alarmsAt(1)
    expect(text).toContain('edge4 (until 2030-01-01T00:00:00Z), 195 more;')
  })
})

import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Observation } from '../../../src/ports/observations.ts'
import { Administrator } from '../client/support.ts'

let person: Administrator
let serviceId = ''
let routerId = ''

function created(layMs: number): Observation {
  const ids = { id: 'c', clientId: '', sessionId: '', terminatorId: 't', createdAt: 0 }
  const circuit = { ...ids, serviceId, routerIds: [routerId], linkIds: [] }
  return { kind: 'circuit', type: 'created', circuit, cost: 1, hostId: '', instanceId: '', layMs }
}

function report(bytes: number): Observation {
  const common = { circuitId: 'c', startS: 0, lengthS: 0, tags: { serviceId } }
  const usages = [{ ...common, kind: 'ingress.rx', bytes } as const]
  const metrics = { routerId, usages, figures: [], eventId: '', atMs: null, tags: {} }
  return { kind: 'routerMetrics', metrics }
}

async function idOf(kind: string, name: string): Promise<string> {
  const { id } = JSON.parse(await person.out('get', kind, name, '-o', 'json')) as { id: string }
  return id
}

beforeAll(async () => {
  person = await Administrator.loggedIn()
  await person.out('create', 'service', 'name=wiki', 'encryptionRequired=true')
  await person.out('create', 'service', 'name=idle', 'encryptionRequired=true')
  await person.out('create', 'edge-router', 'name=edge1')
  serviceId = await idOf('service', 'wiki')
  routerId = await idOf('edge-router', 'edge1')
  const { traffic, clock } = person.cluster.controller
  clock.advance(60_000 - (clock.nowMs() % 60_000))
  traffic.own.note(created(12.5))
  traffic.own.note(report(1_234_567))
  clock.advance(7 * 60_000)
  traffic.countsOf('ctrl2').note(report(500))
  traffic.own.note({ kind: 'dial', serviceId, terminatorId: '', result: 'fail' })
})
afterAll(() => person.close())

test('flotilla traffic lists the services or routers with the most traffic', async () => {
  const titles = 'read     written  circuits  failed dials  latency'
  expect(await person.out('traffic')).toBe(
    [
      `name      ${titles}`,
      'wiki      1.24 MB  0 B      1         1             12.5 ms',
      '(others)  0 B      0 B      0         0             -',
      '',
    ].join('\n'),
  )
  expect(await person.out('traffic', 'routers', '--day')).toBe(
    [
      `name      ${titles}`,
      'edge1     1.24 MB  0 B      1         0             -',
      '(others)  0 B      0 B      0         0             -',
      '',
    ].join('\n'),
  )
  const failing = JSON.parse(await person.out('traffic', '--by', 'dialFailures', '--json')) as {
    readonly by: string
    readonly rows: readonly { readonly name: string }[]
  }
  expect([failing.by, failing.rows.map(({ name }) => name)]).toEqual(['dialFailures', ['wiki']])
})

test('flotilla traffic for one service shows the minutes with traffic and their sum', async () => {
  const nowMs = person.cluster.controller.clock.nowMs()
  const at = (minutesAgo: number): string => new Date(nowMs - minutesAgo * 60_000).toISOString()
  expect(await person.out('traffic', 'service', 'wiki')).toBe(
    [
      'from                      read     written  circuits  failed dials  latency',
      `${at(7)}  1.23 MB  0 B      1         0             12.5 ms`,
      `${at(0)}  500 B    0 B      0         1             -`,
      'total                     1.24 MB  0 B      1         1             12.5 ms',
      '',
    ].join('\n'),
  )
  const idle = await person.out('traffic', 'service', 'idle')
  expect(idle.trimEnd().split('\n')).toHaveLength(2)
})

test('flotilla traffic names controllers that do not respond, and refuses kinds of records without traffic', async () => {
  const { silent } = person.cluster.controller.traffic
  silent.add('ctrl2')
  const partial = await person.run('traffic', 'edge-router', 'edge1')
  silent.clear()
  expect([partial.code, partial.stderr]).toEqual([
    0,
    'flotilla: incomplete: no answer from ctrl2\n',
  ])
  for (const [words, code, hint] of [
    [['identity'], 2, 'identities have no traffic'],
    [['service', 'unheard-of'], 4, 'unheard-of'],
    [['--by', 'size'], 2, 'dialFailures'],
  ] as const) {
    const refused = await person.run('traffic', ...words)
    expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining(hint)])
  }
})

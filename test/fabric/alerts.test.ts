import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { type RouterAlertSchema, RouterAlertsSchema } from '../../proto/gen/router_pb.ts'
import { routerAlertEvent } from '../../src/events/subjects/alert.ts'
import { AlertHandler } from '../../src/fabric/alert-handler.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import type { Observation } from '../../src/ports/observations.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { settle } from '../channel/pipe.ts'
import { RouterStage } from './stage.ts'

const ALERTS = 1054

let stage: RouterStage
let facts: Observation[]
let clock: ManualClock
let lines: unknown[]

beforeEach(() => {
  stage = new RouterStage()
  facts = []
  clock = new ManualClock()
  lines = []
  const log = { info: () => undefined, warn: (fields: unknown) => lines.push(fields) }
  stage.channels.add(new AlertHandler((fact) => facts.push(fact), log, clock))
})

afterEach(() => stage.channels.stop())

async function send(...alerts: MessageInitShape<typeof RouterAlertSchema>[]): Promise<object[]> {
  const pipe = await stage.dial('er1')
  const body = toBinary(RouterAlertsSchema, create(RouterAlertsSchema, { alerts }))
  pipe.say({ contentType: ALERTS, body })
  await settle()
  expect(pipe.destroyed).toBe(false)
  return facts.flatMap((fact) => {
    if (fact.kind !== 'routerAlert') return []
    const { fields, ...head } = routerAlertEvent(fact, 1)
    return { ...head, fields: fields() }
  })
}

describe('an alert of a router', () => {
  test('becomes an event with its time, text and related entities', async () => {
    const alert = {
      sourceType: 'self',
      timestamp: 1_700_000_000_000n,
      severity: 'error',
      message: 'cannot start a listener',
      details: ['unable to bind eth0'],
      relatedEntities: { self: 'ert', service: 's1' },
    }
    expect(await send(alert)).toMatchObject([
      {
        namespace: 'alert',
        atMs: 1_700_000_000_000,
        fields: {
          alert_source_type: 'router',
          alert_source_id: 'er1',
          severity: 'error',
          message: 'cannot start a listener',
          details: ['unable to bind eth0'],
          related_entities: { service: 's1', router: 'er1', identity: 'er1' },
        },
      },
    ])
  })

  test('names its sender, even if it claims another source', async () => {
    const alert = { sourceType: 'controller', sourceId: 'ctrl1', relatedEntities: { self: 'r' } }
    expect(await send(alert)).toMatchObject([
      {
        atMs: 1,
        fields: {
          alert_source_type: 'router',
          alert_source_id: 'er1',
          related_entities: { router: 'er1' },
        },
      },
    ])
  })

  test('is shortened, and an unknown severity becomes warning', async () => {
    const { routerAlertItemsMax, routerTextCharactersMax } = routerLimits
    const long = 'x'.repeat(routerTextCharactersMax + 1)
    const details = Array.from({ length: routerAlertItemsMax + 1 }, () => long)
    const relatedEntities = Object.fromEntries(details.map((text, at) => [`k${at}`, text]))
    const alert = { severity: long, message: long, details, relatedEntities }
    const events = await send(alert)
    const short = long.slice(1)
    const shown = Array.from({ length: routerAlertItemsMax }, () => short)
    expect(events[0]).toMatchObject({
      fields: { severity: 'warning', message: short, details: shown },
    })
    const related = (events[0] as { fields: { related_entities: object } }).fields.related_entities
    expect(Object.values(related)).toEqual(shown)
  })

  test('becomes an event at a limited rate for each router, and the log counts the dropped ones', async () => {
    const { routerAlertsBurst } = routerLimits
    const alerts = Array.from({ length: routerAlertsBurst + 3 }, () => ({}))
    expect(await send(...alerts)).toHaveLength(routerAlertsBurst)
    expect(lines).toEqual([{ routerId: 'er1', dropped: 3 }])
    clock.advance(1000)
    facts = []
    expect(await send({}, {})).toHaveLength(1)
  })
})

import { describe, expect, test } from 'vitest'

import { visibleValue } from '../../src/console/app/visible-text.ts'
import {
  eventKindText,
  eventRecords,
  eventTitle,
  eventTone,
  eventTypeText,
  isFrequentEvent,
} from '../../src/console/pages/events/event-text.ts'

const event = (namespace: string, fields: Record<string, unknown>) => ({
  id: 'e1',
  namespace,
  timestamp: '2026-11-01T00:00:00.000Z',
  fields,
})

const routerAlert = (severity: string) =>
  event('alert', { alert_source_type: 'router', alert_source_id: 'er1', severity })

describe('an alert of a router in the list of live events', () => {
  test('names the router and does not look like an alarm of a controller', () => {
    const alarm = event('alert', { alert_source_type: 'controller', severity: 'error' })
    expect(eventTypeText(alarm)).toBe('Critical')
    expect(eventTypeText(routerAlert('error'))).toBe('Router error')
    expect(eventRecords(routerAlert('error'))).toEqual([
      { path: 'edge-routers', id: 'er1', name: '' },
    ])
  })

  test.each(['__proto__', 'constructor', 'critical'])(
    'has a plain badge without text if its severity is %s',
    (severity) => {
      expect([eventTypeText(routerAlert(severity)), eventTone(routerAlert(severity))]).toEqual([
        '',
        'plain',
      ])
    },
  )
})

describe('an event in the list of live events', () => {
  const change = (entityType: string) =>
    event('entityChange', { entityType, eventType: 'updated', finalState: { id: 'x', name: 'n' } })

  test('shows its event type as text even if the type is the name of an inherited property', () => {
    expect(typeof eventTypeText(event('circuit', { event_type: '__proto__' }))).toBe('string')
  })

  test('has the kind of the changed record as its heading', () => {
    expect(eventKindText(change('services'))).toBe('Service')
    expect(eventTypeText(change('services'))).toBe('Changed')
    expect(eventKindText(event('circuit', {}))).toBe('Circuit')
  })

  test('has a title that names the kind of the record, and what happened to the record if the event says so', () => {
    expect(eventTitle(change('services'))).toBe('Service changed')
    expect(eventTitle(change('apiSessions'))).toBe('API session changed')
    expect(eventTitle(event('sdk', { event_type: 'sdk-online' }))).toBe('Client online')
    expect(eventTitle(event('authentication', { event_type: 'success' }))).toBe('Logged in')
    expect(eventTitle(event('circuit', {}))).toBe('Circuit')
  })

  test('names the identity of a deleted enrollment', () => {
    const initialState = { id: 'e1', identityId: 'i1' }
    const deleted = event('entityChange', { entityType: 'enrollments', initialState })
    expect(eventRecords(deleted)).toEqual([{ path: 'identities', id: 'i1', name: '' }])
  })

  test('counts as frequent if it is about traffic, a successful dial, a session or a connection to a controller', () => {
    const kinds = ['services', 'apiSessions', 'sessions', 'apiSessionsX'].map(change)
    expect(kinds.map(isFrequentEvent)).toEqual([false, true, true, false])
    expect([event('usage', {}), event('authentication', {})].map(isFrequentEvent)).toEqual([
      true,
      false,
    ])
    const circuits = ['created', 'deleted', 'failed'].map((type) =>
      event('circuit', { event_type: type }),
    )
    expect(circuits.map(isFrequentEvent)).toEqual([true, true, false])
    const dials = ['service.dial.success', 'service.dial.fail'].map((type) =>
      event('service', { event_type: type }),
    )
    expect(dials.map(isFrequentEvent)).toEqual([true, false])
    const connections = ['ctrl', 'router'].map((type) => event('connect', { dst_type: type }))
    expect(connections.map(isFrequentEvent)).toEqual([true, false])
    const logIns = ['created', 'deleted'].map((type) => event('apiSession', { event_type: type }))
    expect(logIns.map(isFrequentEvent)).toEqual([true, false])
  })

  test('names the service and the router of a deleted terminator', () => {
    const initialState = { id: 't1', serviceId: 's1', routerId: 'r1' }
    const deleted = event('entityChange', { entityType: 'terminators', initialState })
    expect(eventRecords(deleted).map(({ path, id }) => `${path}/${id}`)).toEqual([
      'services/s1',
      'edge-routers/r1',
    ])
  })
})

describe('a changed value in Activity', () => {
  test('keeps the line breaks of a certificate, and shows the line breaks of other texts as visible codes', () => {
    const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
    expect(visibleValue(pem)).toBe(pem)
    expect(visibleValue('a\nisAdmin: true')).toBe('a‹U+000A›isAdmin: true')
  })
})

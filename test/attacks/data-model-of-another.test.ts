import { expect, test } from 'vitest'

import type { ModelEvent } from '../../src/ports/router-model.ts'
import { basis, member, serviceOf } from '../router/tunnel/support.ts'
import { changesBody, finished, modelOf, wholeBody } from '../router/model/support.ts'

// The attack: a router is made to permit access that its controller has not granted: by a change
// from another history or controller, by an old change, or by a model that it can store only in
// part.

const events: readonly ModelEvent[] = [...basis, ...serviceOf('s1', {}, [])]
const grant = [member('Bind', 's1')]

test('a router applies a change of the data model if the change has the next index', async () => {
  const model = await modelOf(events, 10)
  expect(finished(model.change(changesBody(grant, 11, 10), true))).toBe('applied')
  expect(model.mayUse('router1', 's1', 'Bind')).toBe(true)
})

test.each<[string, Uint8Array, boolean]>([
  ['from a controller to which the router is not subscribed', changesBody(grant, 11, 10), false],
  ['with an old index', changesBody(grant, 9, 0), true],
  ['that follows a missing change', changesBody(grant, 12, 11), true],
  ['of another timeline', changesBody(grant, 11, 10, { timeline: 'other' }), true],
])(
  'a router does not apply a change of the data model %s',
  async (_what, body, isOfSubscription) => {
    const model = await modelOf(events, 10)
    finished(model.change(body, isOfSubscription))
    expect(model.mayUse('router1', 's1', 'Bind')).toBe(false)
  },
)

test('a router’s data model that grows beyond its limits permits no access', async () => {
  const model = await modelOf([...events, ...grant], 10, { modelRecordsMax: 4 })
  expect(model.mayUse('router1', 's1', 'Bind')).toBe(true)
  finished(model.change(changesBody(serviceOf('s2', {}, []), 11, 10), true))
  expect(model.mayUse('router1', 's1', 'Bind')).toBe(false)
})

test('a router’s data model that exceeds its limits when it arrives permits no access', async () => {
  const model = await modelOf([...events, ...grant], 10, { modelRecordsMax: 4 })
  const body = await wholeBody([...events, ...grant, ...serviceOf('s2', {}, [])], 11)
  finished(model.replace(body))
  expect(model.mayUse('router1', 's1', 'Bind')).toBe(false)
})

import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'

import { DataStateSchema, ValidateModelSchema } from '../../../proto/gen/router_pb.ts'
import { messageBounds } from '../../../src/channel/message-bounds.ts'
import { protobufBodyFault } from '../../../src/channel/wire-scan.ts'
import type { Identity } from '../../../src/entities/kinds/identity.ts'
import { accessBits } from '../../../src/fsm/access/access-index.ts'
import { BIND_BIT, DIAL_BIT } from '../../../src/fsm/records/roles.ts'
import {
  modelSourceKinds,
  modelChanges,
  wholeModelEvents,
} from '../../../src/fsm/router-model/model.ts'
import { isDisabled } from '../../../src/lib/is-disabled.ts'
import type { ModelEvent } from '../../../src/ports/router-model.ts'
import { type RouterDataModel, compareModels } from '../../../src/router/model/router-data-model.ts'
import { eventually } from '../support.ts'
import { RandomNetwork } from '../../fsm/support/access-network.ts'
import { changesBody, finished, modelOf, wholeBody } from './support.ts'
import type { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

// Goal: a router that follows the model entry by entry has the same records as one that receives
// the full model, and decides access as the controllers do. Method: randomly changing networks,
// encoded with the controllers' code.

function changed(state: ClusterState): readonly ModelEvent[] {
  return modelChanges(state, state.changes.take(state.tables))
}

function judgesAsControllers(model: RouterDataModel, state: ClusterState): number {
  let permitted = 0
  for (const { record: identity } of state.table('identity').rows.values()) {
    for (const { record: service } of state.table('service').rows.values()) {
      // Records that only the fabric uses are not part of the model.
      if (service['isFabricOnly'] === true) continue
      const off = isDisabled(identity as Identity, 0)
      const bits = off ? 0 : accessBits(state, identity, service)
      const [dial, bind] = [(bits & DIAL_BIT) !== 0, (bits & BIND_BIT) !== 0]
      expect(model.mayUse(identity.id, service.id, 'Dial')).toBe(dial)
      expect(model.mayUse(identity.id, service.id, 'Bind')).toBe(bind)
      expect(model.servicesOf(identity.id, 'Dial').has(service.id)).toBe(dial)
      permitted += bits === 0 ? 0 : 1
    }
  }
  return permitted
}

describe('the router data model in a router', () => {
  test('equals the complete model of the controllers after any sequence of changes, and permits exactly what the controllers permit', async () => {
    let permitted = 0
    for (let seed = 1; seed <= 20; seed += 1) {
      const network = new RandomNetwork(seed)
      for (const kind of modelSourceKinds) network.state.changes.watch(kind)
      const followed = await modelOf(wholeModelEvents(network.state))
      changed(network.state)
      let index = 1
      for (let at = 0; at < 40; at += 1) {
        network.change(at < 20)
        const body = changesBody(changed(network.state), index + 1, index)
        expect(finished(followed.change(body, true))).toBe('applied')
        index += 1
        if (at % 8 !== 7) continue
        const sent = await modelOf(wholeModelEvents(network.state))
        expect(compareModels(followed.contents, sent.contents, 10).differences).toEqual([])
        expect(followed.contents.byteCount).toBe(sent.contents.byteCount)
        expect(followed.contents.memberCount).toBe(sent.contents.memberCount)
        permitted += judgesAsControllers(followed, network.state)
      }
    }
    expect(permitted).toBeGreaterThan(50)
  })

  const service = (id: string, configs: readonly string[] = []): ModelEvent => ({
    kind: 'service',
    action: 'create',
    value: { id, name: `name of ${id}`, encryptionRequired: false, configs },
  })
  const identity = (id: string, more: object = {}): ModelEvent => ({
    kind: 'identity',
    action: 'create',
    value: {
      id,
      name: `name of ${id}`,
      defaultHostingPrecedence: 'default',
      defaultHostingCost: 0,
      serviceHostingPrecedences: {},
      serviceHostingCosts: {},
      disabledAt: null,
      disabledUntil: null,
      appDataJson: '{}',
      serviceConfigs: {},
      ...more,
    },
  })
  const policy = (id: string, type: 'Dial' | 'Bind'): ModelEvent => ({
    kind: 'servicePolicy',
    action: 'create',
    value: { id, name: id, type },
  })
  const members = (
    of: 'service' | 'identity',
    ids: readonly string[],
    isAdded = true,
  ): ModelEvent => ({
    kind: 'members',
    policyId: 'p1',
    of,
    ids,
    isAdded,
  })
  const open = [
    identity('i1'),
    service('s1'),
    policy('p1', 'Bind'),
    members('service', ['s1']),
    members('identity', ['i1']),
  ]

  test('finds records by ID and by name', async () => {
    const { contents } = await modelOf(open)
    expect(contents.services.named('name of s1')?.id).toBe('s1')
    expect(contents.identities.named('name of i1')?.id).toBe('i1')
    expect(contents.services.named('s1')).toBeUndefined()
    expect(contents.services.get('s1')?.name).toBe('name of s1')
  })

  test('gives an identity its own configs for a service instead of the service’s configs', async () => {
    const config = (id: string, typeId: string): ModelEvent => ({
      kind: 'config',
      action: 'create',
      value: { id, typeId, name: id, dataJson: '{}' },
    })
    const types = ['host.v1', 'proxy.v1'].map((id): ModelEvent => ({
      kind: 'configType',
      action: 'create',
      value: { id, name: id, target: '' },
    }))
    const { contents } = await modelOf([
      ...types,
      config('c1', 'host.v1'),
      config('c2', 'proxy.v1'),
      config('c3', 'host.v1'),
      identity('i1', { serviceConfigs: { s1: { 'host.v1': 'c3' } } }),
      service('s1', ['c1', 'c2']),
    ])
    const own = contents.services.get('s1')
    const names = (of: string | null) => {
      if (own === undefined) throw new Error('no service')
      const who = of === null ? undefined : contents.identities.get(of)
      return [...contents.configsOf(own, who)].map(([type, { id }]) => [type, id])
    }
    expect(names('i1')).toEqual([
      ['host.v1', 'c3'],
      ['proxy.v1', 'c2'],
    ])
    expect(names(null)).toEqual([
      ['host.v1', 'c1'],
      ['proxy.v1', 'c2'],
    ])
  })

  test.each<[string, readonly ModelEvent[]]>([
    ['the identity leaves the policy', [members('identity', ['i1'], false)]],
    ['the service leaves the policy', [members('service', ['s1'], false)]],
    ['the policy is deleted', [{ ...policy('p1', 'Bind'), action: 'delete' } as ModelEvent]],
    ['the policy changes its type', [policy('p1', 'Dial')]],
    ['the identity is deleted', [{ ...identity('i1'), action: 'delete' } as ModelEvent]],
    ['the service is deleted', [{ ...service('s1'), action: 'delete' } as ModelEvent]],
    ['the identity is disabled', [identity('i1', { disabledAt: -1 })]],
    [
      'the identity is deleted and another identity gets its id',
      [{ ...identity('i1'), action: 'delete' } as ModelEvent, identity('i1')],
    ],
  ])('stops permitting the identity to host the service after %s', async (_what, events) => {
    const model = await modelOf(open)
    expect([...model.servicesOf('i1', 'Bind')]).toEqual(['s1'])
    expect(finished(model.change(changesBody(events, 2, 1), true))).toBe('applied')
    expect(model.mayUse('i1', 's1', 'Bind')).toBe(false)
    expect([...model.servicesOf('i1', 'Bind')]).toEqual([])
  })

  test('rejects a change that is old, from another timeline, or not the next one', async () => {
    const model = await modelOf(open, 10)
    const gone = [members('identity', ['i1'], false)]
    const outcome = (body: Uint8Array, isOfSubscription = true) =>
      finished(model.change(body, isOfSubscription))
    expect(outcome(changesBody(gone, 10, 9))).toBe('old')
    expect(outcome(changesBody(gone, 12, 11))).toBe('not following')
    expect(outcome(changesBody(gone, 12, 10, { timeline: 'other' }))).toBe('not following')
    expect(outcome(changesBody(gone, 12, 10), false)).toBe('old')
    expect(model.mayUse('i1', 's1', 'Bind')).toBe(true)
    expect(outcome(changesBody(gone, 1, 0, { isSynthetic: true }), false)).toBe('applied')
    expect([model.mayUse('i1', 's1', 'Bind'), model.index]).toEqual([false, 10n])
  })

  test('is discarded if it is too large, and then permits nothing', async () => {
    const model = await modelOf(open, 10, { modelRecordsMax: 3 })
    expect(model.isFilled).toBe(true)
    expect(finished(model.change(changesBody([service('s2')], 11, 10), true))).toBe('too large')
    expect([model.isFilled, model.mayUse('i1', 's1', 'Bind'), model.index]).toEqual([
      false,
      false,
      0n,
    ])
    const more = await wholeBody([...open, service('s2')], 12)
    expect(finished(model.replace(more))).toBe('more than 3 records')
    expect((await modelOf(open, 1, { modelMembersMax: 1 })).isFilled).toBe(false)
    expect((await modelOf(open, 1, { modelBytesMax: 500 })).isFilled).toBe(false)
  })

  test('notifies its users of changes at most once per event loop turn', async () => {
    const model = await modelOf(open, 10)
    let count = 0
    const stop = model.onChanged(() => {
      count += 1
    })
    await eventually(() => count).toBe(1)
    finished(model.change(changesBody([service('s2')], 11, 10), true))
    finished(model.change(changesBody([service('s3')], 12, 11), true))
    expect(count).toBe(1)
    await eventually(() => count).toBe(2)
    stop()
  })

  test('can be compared with a controller’s data model, and returns the differences', async () => {
    const model = await modelOf(open, 10)
    const theirs = await wholeBody([...open.slice(1), service('s2')], 10)
    const message = create(ValidateModelSchema, { state: create(DataStateSchema, {}) })
    // The state is already encoded: a field of the message contains its bytes unchanged.
    const head = toBinary(ValidateModelSchema, message)
    expect(head).toHaveLength(2)
    const size: number[] = []
    for (let rest = theirs.length; ; rest >>>= 7) {
      size.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest)
      if (rest <= 0x7f) break
    }
    const body = Uint8Array.from([head[0] ?? 0, ...size, ...theirs])
    const { own, differences } = finished(model.compare(body))
    expect(own).toMatchObject({ identity: 1, service: 1, 'service-policy': 1 })
    expect(differences.map(({ kind, id, difference }) => [kind, id, difference])).toEqual([
      ['identity', 'i1', 'added'],
      ['service', 's2', 'removed'],
    ])
  })

  test('accepts a policy with a hundred thousand members in one message, within the message limits', async () => {
    const ids = Array.from({ length: 100_000 }, (_, at) => `i${at}`)
    const body = await wholeBody([policy('p1', 'Bind'), members('identity', ids)], 1)
    const { schema, elementsMax } = messageBounds.dataState
    expect(protobufBodyFault(schema ?? DataStateSchema, body, elementsMax)).not.toBeNull()
    const { fieldElementsMax } = messageBounds.dataState
    expect(
      protobufBodyFault(schema ?? DataStateSchema, body, elementsMax, fieldElementsMax),
    ).toBeNull()
  })
})

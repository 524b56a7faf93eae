import { describe, expect, test } from 'vitest'

import {
  modelChanges,
  modelSourceKinds,
  wholeModelEvents,
} from '../../src/fsm/router-model/model.ts'
import type { ModelEvent } from '../../src/ports/router-model.ts'
import { RandomNetwork } from './support/access-network.ts'
import { FollowedModel } from './support/model-twin.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

/** The data model events for the changes of the last entries. */
function changed(state: ClusterState): readonly ModelEvent[] {
  return modelChanges(state, state.changes.take(state.tables))
}

function following(seed: number): { network: RandomNetwork; followed: FollowedModel } {
  const network = new RandomNetwork(seed)
  for (const kind of modelSourceKinds) network.state.changes.watch(kind)
  const followed = new FollowedModel()
  followed.apply(wholeModelEvents(network.state))
  return { network, followed }
}

function whole(state: ClusterState): FollowedModel {
  const model = new FollowedModel()
  model.apply(wholeModelEvents(state))
  return model
}

describe('the router data model', () => {
  test('that is updated after each change of a random network equals a model that is built from the complete state', () => {
    let events = 0
    for (let seed = 1; seed <= 60; seed += 1) {
      const { network, followed } = following(seed)
      for (let at = 0; at < 60; at += 1) {
        network.change(at < 30)
        const told = changed(network.state)
        events += told.length
        followed.apply(told)
        followed.holdAgainst(whole(network.state))
      }
    }
    expect(events).toBeGreaterThan(1500)
  })

  test('that is updated after every five changes of a random network equals a model that is built from the complete state', () => {
    for (let seed = 100; seed <= 130; seed += 1) {
      const { network, followed } = following(seed)
      for (let at = 0; at < 60; at += 1) {
        network.change(at < 30)
        if (at % 5 !== 4) continue
        followed.apply(changed(network.state))
        followed.holdAgainst(whole(network.state))
      }
    }
  })

  test('contains hashes and signers of processes both as written and as hexadecimal digits only, because routers compare strings', () => {
    const { network } = following(8)
    const one = {
      osType: 'Linux',
      path: '/a',
      hashes: ['AB:01', 'cd02'],
      signerFingerprint: 'EF\n',
    }
    const other = { osType: 'Linux', path: '/b', hashes: [], signerFingerprints: ['A 1', 'none!'] }
    network.log.create('postureCheck', 'one', { name: 'one', typeId: 'PROCESS', process: one })
    network.log.create('postureCheck', 'many', {
      name: 'many',
      typeId: 'PROCESS_MULTI',
      semantic: 'AllOf',
      processes: [other],
    })
    const terms = changed(network.state).flatMap((event) =>
      event.kind === 'postureCheck' ? event.value.terms : [],
    )
    expect(terms).toEqual([
      {
        case: 'process',
        process: {
          osType: 'Linux',
          path: '/a',
          hashes: ['AB:01', 'ab01', 'cd02'],
          fingerprints: ['EF\n', 'ef'],
        },
      },
      {
        case: 'processes',
        semantic: 'AllOf',
        processes: [
          { osType: 'Linux', path: '/b', hashes: [], fingerprints: ['A 1', 'a1', 'none!', 'e'] },
        ],
      },
    ])
  })

  test('contains JSON as OpenZiti writes it, because OpenZiti routers host a service again when this text changes', () => {
    const { network } = following(9)
    const { log, state } = network
    const data = { port: 80, address: 'a&b <c>', 'line\u2028': [1e21, 0.5, { b: null, a: true }] }
    log.create('configType', 'ct90', { name: 'any', schema: {}, target: 'service' })
    log.create('config', 'c90', { name: 'c90', configTypeId: 'ct90', data })
    log.create('identity', 'plain', { name: 'plain' })
    log.create('identity', 'tagged', { name: 'tagged', appData: { z: '1', a: "it's" } })
    const texts = changed(state).flatMap((event) => {
      if (event.kind === 'config') return [event.value.dataJson]
      return event.kind === 'identity' ? [event.value.appDataJson] : []
    })
    expect(texts).toEqual([
      String.raw`{"address":"a\u0026b \u003cc\u003e","line\u2028":[1e+21,0.5,{"a":true,"b":null}],"port":80}`,
      '',
      `{"a":"it's","z":"1"}`,
    ])
  })

  test('does not contain a config that was removed from a router, or a config that was deleted', () => {
    const { network } = following(7)
    const { log, state } = network
    for (const at of [90, 91]) {
      log.create('configType', `ct${at}`, { name: `router.${at}`, schema: {}, target: 'router' })
      log.create('config', `c${at}`, { name: `c${at}`, configTypeId: `ct${at}`, data: {} })
    }
    log.create('edgeRouter', 'r90', { name: 'gate', configs: ['c90', 'c91'] })
    changed(state)
    const configs = () =>
      changed(state).flatMap((event) => (event.kind === 'router' ? [event.value.configs] : []))
    log.patch('edgeRouter', 'r90', { configs: ['c90'] })
    expect(configs()).toEqual([['c90']])
    log.delete('config', 'c90')
    expect(configs()).toEqual([[]])
  })

  test('does not change after a write that does not concern routers', () => {
    const { network } = following(7)
    network.log.create('service', 's90', { name: 'books', encryptionRequired: true, tags: {} })
    expect(changed(network.state)).toHaveLength(1)
    network.log.patch('service', 's90', { tags: { shelf: 'three' } })
    expect(changed(network.state)).toEqual([])
  })
})

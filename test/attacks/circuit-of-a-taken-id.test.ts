import { afterEach, beforeEach, expect, test } from 'vitest'

import type { Pipe } from '../channel/pipe.ts'
import { askByService, circuitOf, HeirStage, routes } from '../fabric/heir-stage.ts'

// The attack: a router may choose the IDs of the circuits that it requests. A stolen router on the
// path of a circuit requests another circuit with the same ID for its client, so that the other
// routers on the path mistake its endpoints for another path of the victim's circuit.

const taken = 'a-circuit-of-somebody-else'
const own = { identityId: 'mallory', identityName: 'mallory', serviceId: 's1' }

let stage: HeirStage
let stolen: Pipe

beforeEach(async () => {
  stage = new HeirStage()
  stage.judged = { ok: true, client: { ...own, sessionId: 'own', apiSessionId: 'own' } }
  stage.hosted = [['t1', 'er1']]
  stolen = await stage.routers.dial('er1')
})
afterEach(() => stage.routers.channels.stop())

async function ask(id: string): Promise<readonly string[]> {
  await askByService(stolen, id)
  return routes(stolen).map(({ circuitId }) => circuitId)
}

test('a router cannot create a circuit with the ID of a circuit that this controller owns', async () => {
  stage.circuits.set(taken, circuitOf(taken))
  expect(await ask(taken)).toEqual([])
  expect(stage.circuits.get(taken)).toMatchObject({ clientId: 'i1' })
})

test('a router cannot create a circuit with the ID of a pending circuit', async () => {
  expect(await ask(taken)).toEqual([taken])
  expect(await ask(taken)).toEqual([taken])
})

test('a router cannot create a circuit with the ID of a circuit that another controller owns', async () => {
  stage.told('ctrl0', taken)
  expect(await ask(taken)).toEqual([])
})

test('a router cannot create a circuit with the ID of a circuit whose controller is gone', async () => {
  stage.isInQuorum = false
  stage.told('ctrl0', taken)
  await stage.lose('ctrl0')
  expect(await ask(taken)).toEqual([])
})

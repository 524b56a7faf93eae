import { afterAll, beforeAll, expect, test } from 'vitest'

import { routerSpiffeId } from '../../src/pki/spiffe.ts'
import { writeEndpoints } from '../../src/router/controllers/endpoints-file.ts'
import { eventually, type ScriptedController, TestNetwork, trustDomain } from '../router/support.ts'

// The attack: a router has a certificate of the same authority as the controllers, and has chosen
// the host names in it. A holder of its key listens instead of a controller, sends invented
// members to other routers, and makes them use only these.

let network: TestNetwork
beforeAll(async () => {
  network = await TestNetwork.create()
})
afterAll(async () => {
  await network.close()
})

/** Listens at the known address of a controller with another certificate. */
async function posing(uris: readonly string[], claimedId = 'ctrl1'): Promise<ScriptedController> {
  const key = await network.leaf(claimedId, uris, ['127.0.0.1'])
  const attacker = await network.controller('ctrl1', { key, claimedId })
  const known = {
    endpoints: [attacker.address],
    controllers: [],
    removed: [],
    apis: [],
    trustDomain,
  }
  writeEndpoints(network.path('endpoints.yml'), known)
  const before = network.logged('cannot reach a controller').length
  await network.running([attacker.address])
  await eventually(
    () => network.logged('cannot reach a controller').length + attacker.received.length,
  ).toBeGreaterThan(before)
  return attacker
}

test('a router certificate is not accepted as a controller certificate, even if the router certificate contains host names of a controller', async () => {
  for (const uris of [[], [routerSpiffeId(trustDomain, 'router2')]]) {
    const attacker = await posing(uris)
    expect(attacker.hellos, 'it received no hello').toEqual([])
    expect(network.logged('connected to controller')).toEqual([])
  }
})

test('a certificate with a controller ID in a foreign trust domain is not accepted', async () => {
  const attacker = await posing(['spiffe://attacker.example/controller/ctrl1'])
  expect(attacker.hellos).toEqual([])
  expect(network.logged('connected to controller')).toEqual([])
})

import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { addressesMessage, controllerHelloMessage } from '../../src/channel/messages/control.ts'
import { readEndpoints, writeEndpoints } from '../../src/router/controllers/endpoints-file.ts'
import { ControllerMembership } from '../../src/router/controllers/membership.ts'
import { controllerLimits as limits } from '../../src/router/controllers/limits.ts'
import { eventually, type ScriptedController, TestNetwork, trustDomain } from '../router/support.ts'

// The attack: a thief has the key and the disk of a controller that was removed later, and claims
// to routers that it is the leader and the only member. Its certificate is valid, it chooses a high
// index, and with the issuing key on the disk it creates certificates of controllers that never
// existed. A router that reaches it first must not stay with it permanently.

let network: TestNetwork
let a: ScriptedController
let b: ScriptedController
let x: ScriptedController
beforeEach(async () => {
  network = await TestNetwork.create()
  a = await network.controller('a')
  b = await network.controller('b')
  x = await network.controller('x')
})
afterEach(async () => {
  await network.close()
})

const connected = (...controllers: readonly ScriptedController[]): Promise<void> =>
  eventually(() => controllers.map(({ isConnected }) => isConnected)).toEqual(
    controllers.map(() => true),
  )

/** IDs in the endpoints file; those in brackets are listed by some controllers and no majority. */
function onDisk(): string {
  const read = readEndpoints(network.path('endpoints.yml'))
  if (read.kind !== 'known') return read.kind
  const shown = read.known.controllers.map(({ id, toldBy }) => (toldBy === null ? id : `(${id})`))
  return shown.sort().join(' ')
}

/** Waits until the router has processed everything that a controller has sent. */
async function heard(sender: ScriptedController): Promise<void> {
  await sender.channel?.request(controllerHelloMessage('v2.0.0'))
}

/** A running router that knows all three controllers. */
async function known(configured: readonly ScriptedController[] = []): Promise<void> {
  const controllers = [a, b, x].map(({ id, address }) => ({
    id,
    addresses: [address],
    keySha256: null,
    toldBy: null,
  }))
  const none = { endpoints: [], apis: [], removed: [] }
  writeEndpoints(network.path('endpoints.yml'), { ...none, controllers, trustDomain })
  const endpoints = configured.map(({ address }) => address)
  await network.running(endpoints.length === 0 ? ['tls:127.0.0.1:1'] : endpoints)
}

test('A compromised controller that alone claims to be the leader removes no controller, and is removed by the others', async () => {
  await known()
  await connected(a, b, x)
  x.tell([x], 1e15, true)
  await heard(x)
  expect([onDisk(), a.isConnected, b.isConnected]).toEqual(['a b x', true, true])
  for (const each of [a, b]) each.tell([a, b], 6, false, [x])
  await eventually(() => x.isConnected).toBe(false)
  expect(onDisk()).toBe('a b')
})

test('Controllers that a compromised controller invents do not count toward a majority, and are removed together with it', async () => {
  const made = await Promise.all(['y', 'z', 'v'].map((id) => network.controller(id)))
  await known()
  await connected(a, b, x)
  const own = [x, ...made]
  x.tell([a, b, ...own], 1e15, true)
  await connected(...made)
  for (const each of own) each.tell(own, 1e15, true)
  for (const each of made) await heard(each)
  expect(onDisk()).toBe('(v) (y) (z) a b x')
  for (const each of [a, b]) each.tell([a, b], 6, false)
  await eventually(() => own.filter(({ isConnected }) => isConnected)).toEqual([])
  expect(onDisk()).toBe('a b')
})

test('A compromised controller can make a router dial only a few other controllers, and only a few addresses of each', async () => {
  await known()
  await connected(a, b, x)
  const nowhere = Array.from({ length: 200 }, (_, number) => ({
    id: `y${number}`,
    addresses: [`tls:127.0.0.1:${number + 1}`],
    clientApis: [],
    publicKeySha256: new Uint8Array(),
  }))
  const own = [a, b, x].map(({ id, address, keySha256 }) => ({
    id,
    addresses: [address],
    clientApis: [],
    publicKeySha256: keySha256,
  }))
  const update = { removed: [], index: 1e15, configurationIndex: 1, isLeader: true }
  x.send(addressesMessage({ ...update, controllers: [...own, ...nowhere] }))
  await heard(x)
  const read = readEndpoints(network.path('endpoints.yml'))
  const controllers = read.kind === 'known' ? read.known.controllers : []
  expect(controllers).toHaveLength(3 + limits.controllersReportedByOneMax)
  const elsewhere = Array.from({ length: 50 }, (_, number) => `tls:127.0.0.1:${number + 1}`)
  const membership = new ControllerMembership({
    controllers: controllers.slice(0, 3),
    removed: [],
    configured: [],
    clock: { monotonicMs: () => 0 },
  })
  membership.onConnected('x', x.address, 'key')
  membership.onMembers({
    senderId: 'x',
    index: 1n,
    isLeader: true,
    controllers: ['a', 'b', 'x'].map((id) => ({
      id,
      addresses: elsewhere,
      apis: [],
      keySha256: null,
    })),
    removed: [],
  })
  const [first] = membership.controllers
  if (first === undefined) throw new Error('nobody is known')
  expect(membership.dialAddresses(first)).toEqual([
    a.address,
    ...elsewhere.slice(0, limits.addressesReportedByOneMax),
  ])
})

test('A wrong ID that a compromised controller lists for another controller’s address does not close the channel to that controller', async () => {
  await known()
  await connected(a, b, x)
  const hellos = a.hellos.length
  const own = [a, b, x].map(({ id, address, keySha256 }) => ({
    id,
    addresses: [address],
    clientApis: [],
    publicKeySha256: keySha256,
  }))
  const posing = {
    id: 'y',
    addresses: [a.address],
    clientApis: [],
    publicKeySha256: new Uint8Array(),
  }
  const update = { removed: [], index: 7, configurationIndex: 7, isLeader: true }
  const sockets = a.sockets
  x.send(addressesMessage({ ...update, controllers: [...own, posing] }))
  // A second attempt shows that the first one has ended.
  await eventually(() => a.sockets).toBeGreaterThan(sockets + 1)
  expect([a.hellos.length, a.isConnected]).toEqual([hellos, true])
})

const apiOf = (id: string): string => `https://${id}.test:1280`
const planted = 'https://captor.test:1280'

/** Client APIs in the endpoints file, in the order in which the router asks them. */
function apisOnDisk(): readonly string[] {
  const read = readEndpoints(network.path('endpoints.yml'))
  return read.kind === 'known' ? read.known.apis : []
}

/**
 * Makes all controllers list themselves with their client APIs; the captor lists its own API for
 * every controller.
 */
async function haveListedApis(): Promise<void> {
  for (const each of [a, b, x]) each.clientApis = [apiOf(each.id)]
  for (const each of [a, b]) each.tell([a, b, x], 6, false)
  const lies = [a, b, x].map(({ id, address, keySha256 }) => ({
    id,
    addresses: [address],
    clientApis: [planted],
    publicKeySha256: keySha256,
  }))
  const update = { removed: [], index: 1e15, configurationIndex: 6, isLeader: true }
  x.send(addressesMessage({ ...update, controllers: lies }))
  for (const each of [a, b, x]) await heard(each)
}

test('A compromised controller cannot replace the API addresses of other controllers, at which a router renews its certificate', async () => {
  await known()
  await connected(a, b, x)
  await haveListedApis()
  expect(apisOnDisk()).toEqual([apiOf('a'), apiOf('b'), apiOf('x')])
})

test('A compromised controller that responds first after the endpoints file was lost does not determine the API address at which the router renews its certificate', () => {
  const address = (id: string): string => `tls:${id}.test:1`
  const membership = new ControllerMembership({
    controllers: [],
    removed: [],
    configured: ['a', 'b', 'x'].map(address),
    clock: { monotonicMs: () => 0 },
  })
  const listsApis = (senderId: string, apis: (id: string) => readonly string[]): void => {
    membership.onConnected(senderId, address(senderId), `key of ${senderId}`)
    const controllers = ['a', 'b', 'x'].map((id) => ({
      id,
      addresses: [address(id)],
      apis: apis(id),
      keySha256: `key of ${id}`,
    }))
    membership.onMembers({ senderId, index: 1n, isLeader: true, controllers, removed: [] })
  }
  listsApis('x', () => [planted])
  expect(membership.apis).toEqual([])
  for (const honest of ['a', 'b']) listsApis(honest, (id) => [apiOf(id)])
  expect(membership.apis.toSorted()).toEqual([apiOf('a'), apiOf('b'), apiOf('x')])
})

test('A compromised controller that was the only reachable one for hours adds no API address to the list on which a majority agreed', () => {
  const { clock, membership } = alone(['a', 'b'], (id) => [apiOf(id)])
  clock.nowMs += limits.controllerAbsentMs - 1
  membership.onTime()
  expect(membership.apis).toEqual([apiOf('a'), apiOf('b'), apiOf('x')])
})

test('A router does not request certificates from a removed compromised controller, even if that controller issued the last certificates', async () => {
  await known()
  await connected(a, b, x)
  for (const each of [a, b, x]) each.clientApis = [apiOf(each.id)]
  for (const each of [a, b]) each.tell([a, b, x], 6, false)
  await eventually(() => apisOnDisk().length).toBe(3)
  await network.closeRouters()
  await eventually(() => [a.isConnected, b.isConnected]).toEqual([false, false])
  const read = readEndpoints(network.path('endpoints.yml'))
  if (read.kind !== 'known') throw new Error(read.kind)
  const apis = [apiOf('x'), apiOf('a'), apiOf('b')]
  writeEndpoints(network.path('endpoints.yml'), { ...read.known, apis })
  await network.running(['tls:127.0.0.1:1'])
  await connected(a, b)
  for (const each of [a, b]) each.tell([a, b], 7, false, [x])
  await eventually(onDisk).toBe('a b')
  expect(apisOnDisk()).toEqual([apiOf('a'), apiOf('b')])
})

test('A controller key that the cluster has removed is refused, even if the router reaches the holder of the key before all other controllers', async () => {
  await known([x])
  await connected(a, b, x)
  for (const each of [a, b]) each.tell([a, b], 6, false, [x])
  await eventually(() => x.isConnected).toBe(false)
  await network.closeRouters()
  await Promise.all([a.close(), b.close()])
  const hellos = x.hellos.length
  await network.running([x.address])
  await eventually(() => x.sockets + x.hellos.length).toBeGreaterThan(hellos + 1)
  await eventually(() =>
    network.logged('refused a controller').some(({ fields }) => fields['address'] === x.address),
  ).toBe(true)
  expect(x.hellos).toHaveLength(hellos)
})

test('A router refuses a certificate for the ID of a known controller if its key is not the key that the router has stored for this controller', async () => {
  await known()
  await connected(a, b, x)
  for (const each of [a, b]) each.tell([a, b, x], 6, false)
  const pinned = Buffer.from(a.keySha256).toString('hex')
  await eventually(() => readFileSync(network.path('endpoints.yml'), 'utf8')).toContain(pinned)
  const { port } = a
  await a.close()
  const minted = await network.controller('a', { port })
  await eventually(() => minted.sockets).toBeGreaterThan(0)
  await eventually(
    () =>
      minted.hellos.length +
      network.logged('refused a controller').filter(({ fields }) => fields['controllerId'] === 'a')
        .length,
  ).toBeGreaterThan(0)
  expect(minted.hellos).toEqual([])
  // The log distinguishes the harmless cause from a stolen key.
  const [refused] = network.logged('refused a controller')
  expect(refused?.fields['reason']).toMatch(
    /restored from a backup into a new cluster.*flotilla router reset \S+\. Otherwise treat the key of the issuing authority as stolen$/,
  )
})

test('A router that knows only a malicious controller recovers through its configuration, even if the malicious controller reports the others as removed', async () => {
  const captors = [{ id: 'x', addresses: [x.address], keySha256: null, toldBy: null }]
  const none = { endpoints: [], apis: [], removed: [] }
  writeEndpoints(network.path('endpoints.yml'), { ...none, controllers: captors, trustDomain })
  await network.running([a.address, b.address])
  await connected(x)
  x.tell([x], 1e15, true, [a, b])
  await connected(a, b)
  for (const each of [a, b]) each.tell([a, b], 6, false, [x])
  await eventually(() => x.isConnected).toBe(false)
  expect(onDisk()).toBe('a b')
})

/**
 * A router with a simulated clock that knows all three controllers, and can reach only the captor.
 */
function alone(configured: readonly string[], apis?: (id: string) => readonly string[]) {
  const clock = { nowMs: 40 * limits.controllerAbsentMs }
  const address = (id: string): string => `tls:${id}.test:1`
  const controllers = ['a', 'b', 'x'].map((id) => ({
    id,
    addresses: [address(id)],
    keySha256: null,
    toldBy: null,
    ...(apis === undefined ? {} : { apis: apis(id) }),
  }))
  const membership = new ControllerMembership({
    controllers,
    removed: [],
    configured: configured.map(address),
    clock: { monotonicMs: () => clock.nowMs },
  })
  membership.onConnected('x', address('x'), 'key')
  const members = [{ id: 'x', addresses: [address('x')], apis: [planted], keySha256: 'key' }]
  const told = { senderId: 'x', index: 1n, isLeader: true, controllers: members, removed: [] }
  membership.onMembers(told)
  const ids = (): string[] => membership.controllers.map(({ id }) => id)
  return { clock, membership, ids }
}

test('The time during which a router was switched off does not help a compromised controller to remove other controllers', () => {
  const { clock, membership, ids } = alone([])
  clock.nowMs += limits.controllerAbsentMs - 1
  membership.onTime()
  expect(ids()).toEqual(['a', 'b', 'x'])
})

test('A compromised controller that was the only reachable one for a long time cannot remove a configured controller by omitting it from its list', () => {
  const { clock, membership, ids } = alone(['a', 'b'])
  clock.nowMs += 2 * limits.controllerAbsentMs
  membership.onTime()
  expect(ids()).toEqual(['a', 'b', 'x'])
})

/** A router that knows these controllers, each at a configured address. */
function configuredWith(known: string) {
  const address = (id: string): string => `tls:${id}.test:1`
  const membership = new ControllerMembership({
    controllers: known.split(' ').map((id) => ({
      id,
      addresses: [address(id)],
      keySha256: null,
      toldBy: null,
      answeredAt: [address(id)],
    })),
    removed: [],
    configured: ['a', 'b', 'x'].map(address),
    clock: { monotonicMs: () => 0 },
  })
  /**
   * A controller that responds at the address of another one, and lists controllers at addresses.
   */
  const answers = (
    id: string,
    place: string,
    listed: Readonly<Record<string, readonly string[]>>,
  ): void => {
    membership.onConnected(id, address(place), `key of ${id}`)
    const controllers = Object.entries(listed).map(([one, places]) => ({
      id: one,
      addresses: places.map(address),
      apis: [],
      keySha256: `key of ${one}`,
    }))
    membership.onMembers({ senderId: id, index: 1n, isLeader: true, controllers, removed: [] })
  }
  const voters = (): string[] =>
    membership.controllers.flatMap(({ id, toldBy }) => (toldBy === null ? [id] : [])).sort()
  return { answers, voters }
}

test('A compromised controller that answers under several IDs at its one configured address counts only once toward a majority', () => {
  const own = { x: ['x'], y: ['x'], z: ['x'], v: ['x'] }
  for (const listedByCaptor of [{ x: ['x'] }, own]) {
    const { answers, voters } = configuredWith('a b x')
    answers('x', 'x', listedByCaptor)
    for (const id of ['y', 'z', 'v']) answers(id, 'x', own)
    expect(voters()).toEqual(['a', 'b', 'x'])
  }
})

test('A compromised controller that lists other controllers’ addresses as its own does not exclude these controllers from a majority', () => {
  const { answers, voters } = configuredWith('x')
  answers('x', 'x', { x: ['x', 'a', 'b'] })
  for (const id of ['a', 'b']) answers(id, id, { a: ['a'], b: ['b'] })
  expect(voters()).toEqual(['a', 'b'])
})

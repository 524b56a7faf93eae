import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import {
  CreateTerminatorResult,
  CreateTunnelCircuitSchema,
  CreateTunnelTerminatorAnswerSchema,
  CreateTunnelTerminatorSchema,
  RouteSchema,
  UnrouteSchema,
} from '../../proto/gen/router_pb.ts'
import { encodeInt32, readInt32, encodeText } from '../../src/channel/headers.ts'
import { management } from '../api/support/caller.ts'
import { type Detail, listed, made, newService } from '../api/support/network.ts'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { attackedByCertificates } from './support/certificates.ts'
import { raiseToSecondLevel, type StolenRouter, StolenRouters } from './support/stolen-router.ts'
import { settle } from '../channel/pipe.ts'
import { eventually } from '../support/eventually.ts'

// The attack: a stolen router uses its tunnel to dial or host a service that its own identity may
// not dial or host.

const { controller, root, ...attacked } = await attackedByCertificates()
raiseToSecondLevel(controller)
const routers = new StolenRouters(controller)
let serial = 0

/**
 * A router whose tunnel may dial and host one service, and the records on which these permissions
 * depend.
 */
class Tunnel {
  readonly routerId: string
  readonly serviceId: string
  readonly serviceName: string
  readonly dialId: string
  readonly bindId: string
  readonly reachId: string
  readonly router: StolenRouter
  #sequence = 50

  private constructor(
    rest: Pick<
      Tunnel,
      'routerId' | 'serviceId' | 'serviceName' | 'dialId' | 'bindId' | 'reachId' | 'router'
    >,
  ) {
    this.routerId = rest.routerId
    this.serviceId = rest.serviceId
    this.serviceName = rest.serviceName
    this.dialId = rest.dialId
    this.bindId = rest.bindId
    this.reachId = rest.reachId
    this.router = rest.router
  }

  static async open(policies: Detail = {}): Promise<Tunnel> {
    serial += 1
    const { id: routerId } = await attacked.newRouter(generatePrivateKeyPem())
    await manage('PATCH', `/edge-routers/${routerId}`, { isTunnelerEnabled: true })
    const serviceName = `service ${serial}`
    const serviceId = await newService(root, serviceName, { encryptionRequired: false })
    const make = (kind: string, rest: Detail): Promise<string> =>
      made(root, `${management}/${kind}`, { semantic: 'AnyOf', ...rest })
    const allow = (type: string): Promise<string> =>
      make('service-policies', {
        type,
        name: `${type} ${serial}`,
        serviceRoles: [`@${serviceId}`],
        identityRoles: [`@${routerId}`],
        ...policies,
      })
    const dialId = await allow('Dial')
    const bindId = await allow('Bind')
    const reachId = await make('service-edge-router-policies', {
      name: `reach ${serial}`,
      serviceRoles: [`@${serviceId}`],
      edgeRouterRoles: [`@${routerId}`],
    })
    const router = await routers.connect(routerId)
    connected.push(router)
    return new Tunnel({ routerId, serviceId, serviceName, dialId, bindId, reachId, router })
  }

  /**
   * Requests a circuit. A refused request causes no route. @returns the error code of the refusal;
   * null if the router receives a route.
   */
  async dial(serviceName = this.serviceName): Promise<number | null> {
    const { pipe } = this.router
    const sequence = this.#next()
    const asked = create(CreateTunnelCircuitSchema, { serviceName })
    const body = toBinary(CreateTunnelCircuitSchema, asked)
    const before = pipe.ofType(1005).length
    const routes = allRoutes()
    pipe.say({ contentType: 20_220, sequence, body })
    const refused = await eventually(() => {
      const refusal = pipe.ofType(20_002).find(({ headers }) => readInt32(headers, 1) === sequence)
      expect(refusal !== undefined || pipe.ofType(1005).length > before).toBe(true)
      return refusal === undefined ? null : readInt32(refusal.headers, 1014)
    })
    await settle()
    expect(allRoutes() - routes).toBe(refused === null ? 1 : 0)
    return refused
  }

  /** Makes the router confirm the last route that it received. */
  async lay(): Promise<string> {
    const { pipe } = this.router
    const route = fromBinary(RouteSchema, pipe.ofType(1005).at(-1)?.body ?? new Uint8Array())
    pipe.say({
      contentType: 1022,
      body: encodeText(route.circuitId),
      headers: new Map([
        [1101, encodeInt32(route.attempt)],
        [1102, Uint8Array.of(1)],
      ]),
    })
    await settle()
    return route.circuitId
  }

  /** Makes the router refuse the last route that it received, because of an unknown terminator. */
  async denies(): Promise<void> {
    const { pipe } = this.router
    const route = fromBinary(RouteSchema, pipe.ofType(1005).at(-1)?.body ?? new Uint8Array())
    const headers = new Map([
      [1101, encodeInt32(route.attempt)],
      [1104, Uint8Array.of(1)],
    ])
    pipe.say({ contentType: 1022, body: encodeText(route.circuitId), headers })
    await settle()
  }

  /**
   * Requests a terminator. A refused request creates none. @returns the error code of the refusal;
   * 0 if the service is hosted.
   */
  async host(id: string, serviceId = this.serviceId): Promise<number> {
    const { pipe } = this.router
    const sequence = this.#next()
    const asked = create(CreateTunnelTerminatorSchema, { address: id, serviceId })
    const body = toBinary(CreateTunnelTerminatorSchema, asked)
    const before = controller.state.get('terminator', id)
    pipe.say({ contentType: 20_413, sequence, body })
    const errorCode = await eventually(() => {
      const answer = pipe.ofType(20_414).find(({ headers }) => readInt32(headers, 1) === sequence)
      expect(answer).toBeDefined()
      const said = fromBinary(CreateTunnelTerminatorAnswerSchema, answer?.body ?? body)
      expect(said.terminatorId).toBe(id)
      expect(said.result === CreateTerminatorResult.SUCCESS).toBe(said.errorCode === 0)
      return said.errorCode
    })
    const { routerId } = this
    const hosted = expect.objectContaining({ id, serviceId, routerId }) as unknown
    expect(controller.state.get('terminator', id)).toEqual(errorCode === 0 ? hosted : before)
    return errorCode
  }

  terminators(): Promise<readonly Detail[]> {
    const filter = new URLSearchParams({ filter: `service="${this.serviceId}"` })
    return listed(root, `${management}/terminators?${filter}`)
  }

  unrouted(): { circuitId: string; now: boolean }[] {
    return this.router.pipe
      .ofType(1006)
      .map(({ body }) => fromBinary(UnrouteSchema, body))
      .map(({ circuitId, now }) => ({ circuitId, now }))
  }

  #next(): number {
    this.#sequence += 1
    return this.#sequence
  }
}

const connected: StolenRouter[] = []

/** Number of routes that all routers have received. */
function allRoutes(): number {
  return connected.reduce((count, { pipe }) => count + pipe.ofType(1005).length, 0)
}

async function manage(method: string, path: string, body?: unknown): Promise<void> {
  const reply = await root.call(method, `${management}${path}`, body)
  expect([200, 201], reply.text).toContain(reply.status)
}

/** Runs the periodic check of a controller, which is due twice a second. */
const sweep = async (): Promise<void> => {
  controller.clock.advance(1000)
  routers.stage.channels.sweep()
  await settle()
}

const [NO_TUNNELS, NO_SERVICE, NO_ROUTER, NO_ACCESS, NO_POSTURE] = [7, 6, 5, 14, 15]

test('a router can dial and host the services that its identity may use', async () => {
  const tunnel = await Tunnel.open()
  expect(await tunnel.host('t1')).toBe(0)
  expect(await tunnel.host('t1')).toBe(0)
  expect(await tunnel.terminators()).toMatchObject([{ id: 't1', binding: 'tunnel' }])
  expect(await tunnel.dial()).toBeNull()
  await tunnel.lay()
  expect(tunnel.router.pipe.ofType(20_221)).toHaveLength(1)
})

test('a terminator that the router’s tunneler does not know is removed, unless an operator created it', async () => {
  const tunnel = await Tunnel.open()
  await tunnel.host(`t of ${tunnel.routerId}`)
  await made(root, `${management}/terminators`, {
    service: tunnel.serviceId,
    router: tunnel.routerId,
    binding: 'transport',
    address: 'tcp:host:1',
    cost: 10,
  })
  await tunnel.dial()
  await tunnel.denies()
  await tunnel.denies()
  await eventually(async () => {
    expect(await tunnel.terminators()).toMatchObject([
      { binding: 'transport', precedence: 'failed' },
    ])
  })
})

test('a router cannot dial a service with the rights of another router', async () => {
  const [tunnel, other] = [await Tunnel.open(), await Tunnel.open()]
  await tunnel.host(`t of ${tunnel.routerId}`)
  expect(await other.dial(tunnel.serviceName)).toBe(NO_SERVICE)
  expect(await other.dial('no service of that name')).toBe(NO_SERVICE)
  expect(await other.host('foreign', tunnel.serviceId)).toBe(NO_SERVICE)
  expect(await tunnel.terminators()).toHaveLength(1)
})

test('a router that may only host cannot dial', async () => {
  const tunnel = await Tunnel.open()
  await tunnel.host(`t of ${tunnel.routerId}`)
  await manage('DELETE', `/service-policies/${tunnel.dialId}`)
  expect(await tunnel.dial()).toBe(NO_ACCESS)
})

test('a router that may only dial cannot host', async () => {
  const tunnel = await Tunnel.open()
  await manage('DELETE', `/service-policies/${tunnel.bindId}`)
  expect(await tunnel.host('t of a dialer')).toBe(NO_ACCESS)
})

test('a router that policies do not permit for a service can neither dial nor host the service', async () => {
  const tunnel = await Tunnel.open()
  await tunnel.host(`t of ${tunnel.routerId}`)
  await manage('DELETE', `/service-edge-router-policies/${tunnel.reachId}`)
  expect(await tunnel.dial()).toBe(NO_ROUTER)
  expect(await tunnel.host('t elsewhere')).toBe(NO_ROUTER)
})

test('a router cannot pass a posture check, because routers do not report their posture', async () => {
  const name = 'asks for a domain'
  const checkId = await made(root, `${management}/posture-checks`, {
    name,
    typeId: 'DOMAIN',
    domains: ['corp.test'],
    roleAttributes: [],
  })
  const tunnel = await Tunnel.open({ postureCheckRoles: [`@${checkId}`] })
  expect(await tunnel.host('t with posture')).toBe(NO_POSTURE)
  expect(await tunnel.dial()).toBe(NO_POSTURE)
})

test('a router whose tunneler is disabled can neither dial nor host', async () => {
  const tunnel = await Tunnel.open()
  expect(await tunnel.host(`t of ${tunnel.routerId}`)).toBe(0)
  expect(await tunnel.dial()).toBeNull()
  await manage('PATCH', `/edge-routers/${tunnel.routerId}`, { isTunnelerEnabled: false })
  expect(await tunnel.dial()).toBe(NO_TUNNELS)
  expect(await tunnel.host('t without a tunnel')).toBe(NO_TUNNELS)
})

test('a disabled router cannot dial over its open channel', async () => {
  const tunnel = await Tunnel.open()
  await tunnel.host(`t of ${tunnel.routerId}`)
  expect(await tunnel.dial()).toBeNull()
  await manage('PATCH', `/edge-routers/${tunnel.routerId}`, { disabled: true })
  expect(await tunnel.dial()).toBe(NO_TUNNELS)
})

test('a router whose identity is disabled cannot dial', async () => {
  const tunnel = await Tunnel.open()
  await tunnel.host(`t of ${tunnel.routerId}`)
  expect(await tunnel.dial()).toBeNull()
  await manage('POST', `/identities/${tunnel.routerId}/disable`, { durationMinutes: 5 })
  expect(await tunnel.dial()).toBe(NO_TUNNELS)
})

const reasons: Readonly<Record<string, (tunnel: Tunnel) => Promise<unknown>>> = {
  'its policies are deleted': async ({ dialId, bindId }) => {
    await manage('DELETE', `/service-policies/${dialId}`)
    await manage('DELETE', `/service-policies/${bindId}`)
  },
  'its policies select other identities': async ({ dialId, bindId }) => {
    for (const id of [dialId, bindId]) {
      await manage('PATCH', `/service-policies/${id}`, { identityRoles: ['#nobody'] })
    }
  },
  'its policies require a posture check': async ({ dialId, bindId }) => {
    serial += 1
    const checkId = await made(root, `${management}/posture-checks`, {
      name: `check ${serial}`,
      typeId: 'DOMAIN',
      domains: ['corp.test'],
      roleAttributes: [],
    })
    for (const id of [dialId, bindId]) {
      await manage('PATCH', `/service-policies/${id}`, { postureCheckRoles: [`@${checkId}`] })
    }
  },
  'no service edge router policy allows the service at the router': ({ reachId }) =>
    manage('DELETE', `/service-edge-router-policies/${reachId}`),
  'the tunneler of the router is disabled': ({ routerId }) =>
    manage('PATCH', `/edge-routers/${routerId}`, { isTunnelerEnabled: false }),
  'its identity is disabled': ({ routerId }) =>
    manage('POST', `/identities/${routerId}/disable`, { durationMinutes: 5 }),
  'the router is disabled': ({ routerId }) =>
    manage('PATCH', `/edge-routers/${routerId}`, { disabled: true }),
}

test.each(Object.keys(reasons))(
  'the circuits and terminators of a tunneler end because %s',
  async (reason) => {
    const tunnel = await Tunnel.open()
    expect(await tunnel.host(`t of ${tunnel.routerId}`)).toBe(0)
    expect(await tunnel.dial()).toBeNull()
    const circuitId = await tunnel.lay()
    await sweep()
    expect(tunnel.unrouted()).toEqual([])
    await reasons[reason]?.(tunnel)
    for (let round = 0; round < 10; round += 1) await sweep()
    expect(await tunnel.terminators()).toEqual([])
    expect(tunnel.unrouted()).toEqual([{ circuitId, now: true }])
  },
)

test('a circuit to a tunneler that hosts a service ends when the tunneler loses the right to host', async () => {
  const tunnel = await Tunnel.open()
  await tunnel.host(`t of ${tunnel.routerId}`)
  await tunnel.dial()
  const circuitId = await tunnel.lay()
  await manage('DELETE', `/service-policies/${tunnel.bindId}`)
  await sweep()
  expect(tunnel.unrouted()).toEqual([{ circuitId, now: true }])
})

test('a circuit of a tunneler ends when the tunneler loses the right to dial', async () => {
  const tunnel = await Tunnel.open()
  await tunnel.host(`t of ${tunnel.routerId}`)
  await tunnel.dial()
  const circuitId = await tunnel.lay()
  await manage('DELETE', `/service-policies/${tunnel.dialId}`)
  await sweep()
  expect(tunnel.unrouted()).toEqual([{ circuitId, now: true }])
  expect(await tunnel.terminators()).toHaveLength(1)
})

test('a pending circuit of a tunneler is not opened if the right to dial ends before the circuit is complete', async () => {
  const tunnel = await Tunnel.open()
  await tunnel.host(`t of ${tunnel.routerId}`)
  expect(await tunnel.dial()).toBeNull()
  await manage('DELETE', `/service-policies/${tunnel.dialId}`)
  const circuitId = await tunnel.lay()
  expect(tunnel.router.pipe.ofType(20_221)).toEqual([])
  expect(tunnel.unrouted()).toEqual([{ circuitId, now: true }])
})

import { fromBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { RouteSchema, UnrouteSchema } from '../../proto/gen/router_pb.ts'
import { encodeInt32, encodeText } from '../../src/channel/headers.ts'
import { client, management } from '../api/support/caller.ts'
import { type Detail, made, newIdentity, newService } from '../api/support/network.ts'
import { raiseLevel } from '../api/support/raise-level.ts'
import { clientKey } from '../api/support/tls.ts'
import {
  attackedByCertificates,
  COMMON_NAME,
  dataOf,
  type Device,
  fingerprintOf,
} from './support/certificates.ts'
import { raiseToSecondLevel, type StolenRouter, StolenRouters } from './support/stolen-router.ts'
import { settle } from '../channel/pipe.ts'
import { eventually } from '../support/eventually.ts'

// The attack: a person whose access was removed continues with the open circuit, or with one that
// is being created.

const { controller, listener, root, ...attacked } = await attackedByCertificates()
raiseToSecondLevel(controller)
const routers = new StolenRouters(controller)
let serial = 0

/** A client with its credential. */
type Holder = Pick<Device, 'identityId' | 'key'>

/** A client with a circuit through a router, and the records on which its permission depends. */
interface Dialed extends Holder {
  readonly router: StolenRouter
  readonly routerId: string
  readonly serviceId: string
  readonly policyId: string
  readonly routerPolicyId: string
  readonly checkId: string
  readonly token: string
  readonly apiSessionId: string
  readonly sessionId: string
  readonly circuitId: string
  /** Simulates that the router has set up its part of the path. */
  lay(): Promise<void>
}

async function dialed(device?: Holder): Promise<Dialed> {
  const of = await dialing(device)
  await of.lay()
  expect(of.router.pipe.ofType(20_219)).toHaveLength(1)
  expect(await of.router.ended()).toEqual([])
  return of
}

async function dialing(given?: Holder): Promise<Dialed> {
  serial += 1
  const device = given ?? (await attacked.newDevice())
  const make = (kind: string, rest: Detail): Promise<string> =>
    made(root, `${management}/${kind}`, { name: `${kind} ${serial}`, ...rest })
  const serviceId = await newService(root, `service ${serial}`, { encryptionRequired: false })
  const routerId = await make('edge-routers', {})
  const checkId = await make('posture-checks', {
    typeId: 'DOMAIN',
    domains: ['corp.test'],
    roleAttributes: [],
  })
  const each = { semantic: 'AnyOf', identityRoles: [`@${device.identityId}`] }
  const policyId = await make('service-policies', {
    ...each,
    type: 'Dial',
    serviceRoles: [`@${serviceId}`],
    postureCheckRoles: [`@${checkId}`],
  })
  const edgeRouterRoles = [`@${routerId}`]
  const routerPolicyId = await make('edge-router-policies', { ...each, edgeRouterRoles })
  await make('service-edge-router-policies', {
    semantic: 'AnyOf',
    serviceRoles: [`@${serviceId}`],
    edgeRouterRoles,
  })
  await made(root, `${management}/terminators`, {
    service: serviceId,
    router: routerId,
    binding: 'transport',
    address: 'tcp:host:1',
  })
  const by = device.key
  const opened = dataOf(await attacked.logIn(by))
  const token = String(opened['token'])
  const report = [{ id: checkId, typeId: 'DOMAIN', domain: 'corp.test' }]
  await ask({ token, by }, 'POST', '/posture-response-bulk', report)
  const session = await ask({ token, by }, 'POST', '/sessions', { serviceId, type: 'Dial' })
  const { id: sessionId, token: sessionToken } = session.body.data as { id: string; token: string }
  const router = await routers.connect(routerId)
  router.pipe.say({
    contentType: 20_218,
    sequence: 50,
    headers: new Map([
      [11, encodeText(sessionToken)],
      [14, encodeText(token)],
      [12, Buffer.concat([encodeInt32(1), encodeInt32(40), encodeText(fingerprintOf(by))])],
    ]),
  })
  const route = await eventually(() => {
    const [first] = router.pipe.ofType(1005)
    expect(first).toBeDefined()
    return fromBinary(RouteSchema, first?.body ?? new Uint8Array())
  })
  const { circuitId } = route
  const lay = async (): Promise<void> => {
    router.pipe.say({
      contentType: 1022,
      body: encodeText(circuitId),
      headers: new Map([
        [1101, encodeInt32(route.attempt)],
        [1102, Uint8Array.of(1)],
      ]),
    })
    await settle()
  }
  const apiSessionId = String(opened['id'])
  return {
    ...device,
    router,
    routerId,
    serviceId,
    policyId,
    routerPolicyId,
    checkId,
    token,
    apiSessionId,
    sessionId,
    circuitId,
    lay,
  }
}

async function ask(
  { token, by }: { token: string; by: Device['key'] },
  method: string,
  path: string,
  body?: unknown,
) {
  const reply = await listener.call({ method, path: `${client}${path}`, token, by, body })
  expect([200, 201], reply.text).toContain(reply.status)
  return reply
}

async function manage(method: string, path: string, body?: unknown): Promise<void> {
  const reply = await root.call(method, `${management}${path}`, body)
  expect([200, 201], reply.text).toContain(reply.status)
}

const reasons: Readonly<Record<string, (of: Dialed) => unknown>> = {
  'its client fails a posture check': ({ token, key: by, checkId }) =>
    ask({ token, by }, 'POST', '/posture-response', {
      id: checkId,
      typeId: 'DOMAIN',
      domain: 'home',
    }),
  'a posture check requires more': async ({ checkId }) => {
    const body = { typeId: 'DOMAIN', domains: ['other.test'] }
    await manage('PATCH', `/posture-checks/${checkId}`, body)
    const { clock, scheduler, parts } = controller
    // The leader waits, like a new leader, until clients can report their posture again.
    for (let round = 0; round < 2; round += 1) {
      clock.advance(parts.limits.postureGraceMs)
      scheduler.run(parts.limits.sweepMs)
      await settle()
    }
  },
  'its policy is deleted': ({ policyId }) => manage('DELETE', `/service-policies/${policyId}`),
  'its policy expires': async ({ policyId }) => {
    await raiseLevel(controller)
    const { clock, scheduler, parts } = controller
    const expiresAt = new Date(clock.nowMs() + 1000).toISOString()
    await manage('PATCH', `/service-policies/${policyId}`, { expiresAt })
    clock.advance(1000)
    scheduler.run(parts.limits.accessEndMs)
  },
  'its policy selects other identities': ({ policyId }) =>
    manage('PATCH', `/service-policies/${policyId}`, { identityRoles: ['#nobody'] }),
  'its service is deleted': ({ serviceId }) => manage('DELETE', `/services/${serviceId}`),
  'its identity is disabled': ({ identityId }) =>
    manage('POST', `/identities/${identityId}/disable`, { durationMinutes: 5 }),
  'its identity is deleted': ({ identityId }) => manage('DELETE', `/identities/${identityId}`),
  'its API session is revoked': ({ apiSessionId }) =>
    manage('POST', '/revocations', {
      id: apiSessionId,
      type: 'API_SESSION',
      expiresAt: '2100-01-01T00:00:00Z',
    }),
  'its API session is deleted': ({ apiSessionId }) =>
    manage('DELETE', `/api-sessions/${apiSessionId}`),
  'an administrator deletes the service session': ({ sessionId }) =>
    manage('DELETE', `/sessions/${sessionId}`),
  'its client deletes the service session': ({ token, key: by, sessionId }) =>
    ask({ token, by }, 'DELETE', `/sessions/${sessionId}`),
  'its client logs out': ({ token, key: by }) =>
    ask({ token, by }, 'DELETE', '/current-api-session'),
  'its API session expires': ({ identityId }) => {
    const { clock, scheduler, parts } = controller
    clock.advance(2 * parts.limits.sessionTimeoutMs)
    root.token = controller.openSession('admin-id')
    // A new leader first waits for the other controllers to report the last use of each session.
    scheduler.run(parts.limits.sweepMs)
    clock.advance(60_000)
    scheduler.run(parts.limits.sweepMs)
    return identityId
  },
}

test.each(Object.keys(reasons))('a service session and its circuit end once %s', async (reason) => {
  const of = await dialed()
  await reasons[reason]?.(of)
  await eventually(async () => expect(await of.router.ended()).toEqual([of.sessionId]))
  expect(unrouted(of)).toEqual([{ circuitId: of.circuitId, now: true }])
})

/**
 * A client that logs in with a certificate of a third-party CA, by the name in that certificate.
 */
async function ofCa(): Promise<Holder & { readonly caId: string }> {
  const { id: caId, key: ca } = await attacked.verifiedCa({ externalIdClaim: COMMON_NAME })
  const externalId = `unit ${serial}`
  const identityId = await newIdentity(root, externalId, { externalId })
  return { caId, identityId, key: await clientKey(ca, externalId, attacked.nowMs()) }
}

/** The same kind of client, with a certificate that it has enrolled. */
async function enrolledByCa(): Promise<Holder & { readonly caId: string }> {
  const { id: caId, key: ca } = await attacked.verifiedCa()
  const key = await clientKey(ca, `pump ${serial}`, attacked.nowMs())
  const before = new Set(controller.state.table('identity').rows.keys())
  dataOf(await listener.call({ path: `${client}/enroll?method=ca`, by: key, body: {} }))
  const [identityId = ''] = [...controller.state.table('identity').rows.keys()].filter(
    (id) => !before.has(id),
  )
  return { caId, identityId, key }
}

test.each([
  ['the CA that identifies its client no longer allows log-ins', ofCa],
  ['the CA that issued its client’s credential no longer allows log-ins', enrolledByCa],
])(
  'a service session and its circuit end once %s, but the circuit of another client continues',
  async (_reason, holder) => {
    const { caId, ...device } = await holder()
    const [of, other] = [await dialed(device), await dialed(await ofCa())]
    await manage('PATCH', `/cas/${caId}`, { identityRoles: ['told'] })
    expect(await of.router.ended()).toEqual([])
    await manage('PATCH', `/cas/${caId}`, { isAuthEnabled: false })
    await eventually(async () => expect(await of.router.ended()).toEqual([of.sessionId]))
    expect(unrouted(of)).toEqual([{ circuitId: of.circuitId, now: true }])
    expect(unrouted(other)).toEqual([])
  },
)

const ofRouters: Readonly<Record<string, (of: Dialed) => Promise<void>>> = {
  'its edge-router policy is deleted': ({ routerPolicyId }) =>
    manage('DELETE', `/edge-router-policies/${routerPolicyId}`),
  'its edge-router policy selects other identities': ({ routerPolicyId }) =>
    manage('PATCH', `/edge-router-policies/${routerPolicyId}`, { identityRoles: ['#nobody'] }),
}

test.each(Object.keys(ofRouters))(
  'a circuit ends once %s, but the circuit of another client continues',
  async (reason) => {
    const [of, other] = [await dialed(), await dialed()]
    await ofRouters[reason]?.(of)
    routers.stage.channels.sweep()
    await eventually(() => expect(unrouted(of)).toEqual([{ circuitId: of.circuitId, now: true }]))
    expect(unrouted(other)).toEqual([])
  },
)

test('a controller does not open a pending circuit if its session ends', async () => {
  const of = await dialing()
  await manage('DELETE', `/service-policies/${of.policyId}`)
  await settle()
  await of.lay()
  expect(of.router.pipe.ofType(20_219)).toEqual([])
  expect(of.router.pipe.ofType(20_002)).toHaveLength(1)
  expect(unrouted(of)).toEqual([{ circuitId: of.circuitId, now: true }])
})

test('a controller does not open a pending circuit if its client may no longer use the router', async () => {
  routers.stage.channels.sweep()
  const of = await dialing()
  await manage('DELETE', `/edge-router-policies/${of.routerPolicyId}`)
  routers.stage.channels.sweep()
  await of.lay()
  expect(of.router.pipe.ofType(20_219)).toEqual([])
  expect(unrouted(of)).toEqual([{ circuitId: of.circuitId, now: true }])
})

function unrouted({ router }: Dialed): { circuitId: string; now: boolean }[] {
  return router.pipe
    .ofType(1006)
    .map(({ body }) => fromBinary(UnrouteSchema, body))
    .map(({ circuitId, now }) => ({ circuitId, now }))
}

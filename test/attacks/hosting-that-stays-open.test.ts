import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import {
  CreateTerminatorResult,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
  SessionRemovedSchema,
} from '../../proto/gen/router_pb.ts'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, management } from '../api/support/caller.ts'
import { type Detail, listed, made, newService } from '../api/support/network.ts'
import { settle } from '../channel/pipe.ts'
import { eventually } from '../support/eventually.ts'
import { attackedByCertificates, dataOf, fingerprintOf } from './support/certificates.ts'
import { raiseToSecondLevel, StolenRouters } from './support/stolen-router.ts'

// The attack: a stolen router keeps the terminator of a client that may not host any more, and thus
// receives the traffic of the service.

const { controller, listener, root, ...attacked } = await attackedByCertificates()
raiseToSecondLevel(controller)
const routers = new StolenRouters(controller)
let serial = 0

interface Hosted {
  readonly identityId: string
  readonly serviceId: string
  readonly policyId: string
  readonly sessionId: string
  readonly routerPolicyId: string
  /** IDs of service sessions whose end the controller has reported to the router. */
  readonly endedIds: () => readonly string[]
}

async function hosted(): Promise<Hosted> {
  serial += 1
  const { identityId, key: by } = await attacked.newDevice()
  const { id: routerId } = await attacked.newRouter(generatePrivateKeyPem())
  const serviceId = await newService(root, `service ${serial}`)
  const make = (kind: string, rest: Detail): Promise<string> =>
    made(root, `${management}/${kind}`, { name: `${kind} ${serial}`, semantic: 'AnyOf', ...rest })
  const policyId = await make('service-policies', {
    type: 'Bind',
    serviceRoles: [`@${serviceId}`],
    identityRoles: [`@${identityId}`],
  })
  const edgeRouterRoles = [`@${routerId}`]
  const routerPolicyId = await make('edge-router-policies', {
    edgeRouterRoles,
    identityRoles: [`@${identityId}`],
  })
  const serviceRoles = [`@${serviceId}`]
  await make('service-edge-router-policies', { edgeRouterRoles, serviceRoles })
  const token = String(dataOf(await attacked.logIn(by))['token'])
  const path = `${client}/sessions`
  const body = { serviceId, type: 'Bind' }
  const session = dataOf(await listener.call({ method: 'POST', path, token, by, body }), 201)
  const router = await routers.connect(routerId)
  const asked = create(CreateTerminatorV2Schema, {
    address: `t ${serial}`,
    sessionToken: String(session['token']),
    apiSessionToken: token,
    fingerprints: [fingerprintOf(by)],
  })
  router.pipe.say({
    contentType: 20_216,
    sequence: 50,
    body: toBinary(CreateTerminatorV2Schema, asked),
  })
  await eventually(() => {
    const [answer] = router.pipe.ofType(20_217)
    const said = fromBinary(CreateTerminatorV2AnswerSchema, answer?.body ?? Uint8Array.of(1))
    expect(said.result, said.msg).toBe(CreateTerminatorResult.SUCCESS)
  })
  const endedIds = (): string[] =>
    router.pipe
      .ofType(20_102)
      .flatMap(({ body: ended }) => fromBinary(SessionRemovedSchema, ended).ids)
  const sessionId = String(session['id'])
  return { identityId, serviceId, policyId, sessionId, routerPolicyId, endedIds }
}

async function terminators({ serviceId }: Hosted): Promise<number> {
  const filter = new URLSearchParams({ filter: `service="${serviceId}"` })
  return (await listed(root, `${management}/terminators?${filter}`)).length
}

async function sweeps(): Promise<void> {
  for (let round = 0; round < 5; round += 1) {
    routers.stage.channels.sweep()
    await settle()
  }
}

async function manage(method: string, path: string, body?: unknown): Promise<void> {
  const reply = await root.call(method, `${management}${path}`, body)
  expect([200, 201], reply.text).toContain(reply.status)
}

const reasons: Readonly<Record<string, (of: Hosted) => Promise<void>>> = {
  'its policy is deleted': ({ policyId }) => manage('DELETE', `/service-policies/${policyId}`),
  'its service session is deleted': ({ sessionId }) => manage('DELETE', `/sessions/${sessionId}`),
  'its edge-router policy is deleted': ({ routerPolicyId }) =>
    manage('DELETE', `/edge-router-policies/${routerPolicyId}`),
  'its edge-router policy selects other identities': ({ routerPolicyId }) =>
    manage('PATCH', `/edge-router-policies/${routerPolicyId}`, { identityRoles: ['#nobody'] }),
  'its identity is disabled': ({ identityId }) =>
    manage('POST', `/identities/${identityId}/disable`, { durationMinutes: 5 }),
  'its identity is deleted': ({ identityId }) => manage('DELETE', `/identities/${identityId}`),
}

test.each(Object.keys(reasons))(
  'a terminator that a router keeps open is removed once %s',
  async (reason) => {
    const [of, other] = [await hosted(), await hosted()]
    await sweeps()
    expect([await terminators(of), await terminators(other)]).toEqual([1, 1])
    await reasons[reason]?.(of)
    await sweeps()
    expect([await terminators(of), await terminators(other)]).toEqual([0, 1])
    // Without this report, the client would not host again when it may.
    expect([of.endedIds(), other.endedIds()]).toEqual([[of.sessionId], []])
  },
)

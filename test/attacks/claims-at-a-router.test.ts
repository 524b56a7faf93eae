import { beforeAll, describe, expect, test } from 'vitest'

import { RouterClientAuthorizer } from '../../src/api/fabric/router-client-authorizer.ts'
import { createServices } from '../../src/api/services.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import type { ClientAccessRequest, ClientAccessDecision } from '../../src/ports/router-clients.ts'
import { type CallerOf, client, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made, newIdentity, newService } from '../api/support/network.ts'

// The attack: a client, or a router that lies about a client, dials a service with the rights of
// another identity.

const { controller, root, sessionOf } = await controllerForFile()
const { parts, machine } = controller
const clients = new RouterClientAuthorizer({ ...parts, ...createServices(parts) }, machine)
const alice = sessionOf('alice-id')

let routerId: string
let claim: ClientAccessRequest

async function certificateOf(caller: CallerOf): Promise<string> {
  const csr = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'x' })
  const id = await made(caller, `${client}/current-api-session/certificates`, { csr })
  const reply = await caller.get(`${client}/current-api-session/certificates/${id}`)
  return (reply.body.data as { fingerprint: string }).fingerprint
}

async function claimOf(caller: CallerOf, serviceId: string): Promise<ClientAccessRequest> {
  const reply = await caller.call('POST', `${client}/sessions`, { serviceId, type: 'Dial' })
  expect(reply.status, reply.text).toBe(201)
  const { token } = reply.body.data as { token: string }
  const fingerprints = [await certificateOf(caller)]
  const apiSessionToken = caller.token ?? ''
  return { routerId, sessionToken: token, apiSessionToken, fingerprints, type: 'Dial' }
}

const policies: string[] = []
let serviceId: string

beforeAll(async () => {
  serviceId = await newService(root, 'ledger')
  routerId = await made(root, `${management}/edge-routers`, { name: 'gate' })
  const every = { semantic: 'AnyOf', serviceRoles: ['#all'] }
  const dial = { ...every, name: 'dial', type: 'Dial', identityRoles: ['#staff'] }
  policies.push(await made(root, `${management}/service-policies`, dial))
  await made(root, `${management}/service-edge-router-policies`, {
    ...every,
    name: 's',
    edgeRouterRoles: ['#all'],
  })
  await made(root, `${management}/edge-router-policies`, {
    name: 'e',
    semantic: 'AnyOf',
    identityRoles: ['#all'],
    edgeRouterRoles: [`@${routerId}`],
  })
  claim = await claimOf(alice, serviceId)
})

const judged = (changes: Partial<ClientAccessRequest>): Promise<ClientAccessDecision> =>
  clients.judge({ ...claim, ...changes })

describe('a client’s session token that a router presents (a claim)', () => {
  test('is accepted with its API session and a certificate of that session, at a router that the identity may use', async () => {
    expect(await judged({})).toMatchObject({ ok: true, client: { identityId: 'alice-id' } })
  })

  test('is refused without a certificate of the session', async () => {
    expect(await judged({ fingerprints: [] })).toEqual({ ok: false, fault: 'apiSession' })
    const other = await certificateOf(sessionOf('alice-id'))
    expect(await judged({ fingerprints: [other] })).toEqual({ ok: false, fault: 'apiSession' })
  })

  test('is refused with the API session of another identity', async () => {
    const bob = await newIdentity(root, 'bob', { roleAttributes: ['staff'] })
    const other = await claimOf(sessionOf(bob), serviceId)
    const { apiSessionToken, fingerprints } = other
    expect(await judged({ apiSessionToken, fingerprints })).toEqual({ ok: false, fault: 'session' })
  })

  test('is refused for a use (dial or bind) that the session does not allow', async () => {
    expect(await judged({ type: 'Bind' })).toEqual({ ok: false, fault: 'sessionType' })
  })

  test('is refused at a router that no policy lets the identity use', async () => {
    const far = await made(root, `${management}/edge-routers`, { name: 'far' })
    expect(await judged({ routerId: far })).toEqual({ ok: false, fault: 'router' })
  })

  test.each([
    ['an unsigned service session token', 'session', { sessionToken: 'eyJhbGciOiJub25lIn0.e30.' }],
    ['no service session token', 'session', { sessionToken: '' }],
    ['a forged API session token', 'apiSession', { apiSessionToken: '1.session.forged' }],
    ['no API session token', 'apiSession', { apiSessionToken: '' }],
  ] as const)('is refused with %s', async (_what, fault, changes) => {
    expect(await judged(changes)).toEqual({ ok: false, fault })
  })
})

test('a session without its required second factor is not sent to routers, and its token is refused', async () => {
  const ids = () => [...clients.sessionIds()].flatMap((id) => clients.session(id)?.identityId ?? [])
  expect(ids()).toContain('alice-id')
  const policy = await made(root, `${management}/auth-policies`, {
    name: 'two factors',
    primary: {
      cert: { allowed: true, allowExpiredCerts: false },
      extJwt: { allowed: false, allowedSigners: [] },
      updb: {
        allowed: true,
        minPasswordLength: 5,
        requireSpecialChar: false,
        requireNumberChar: false,
        requireMixedCase: false,
        maxAttempts: 0,
        lockoutDurationMinutes: 0,
      },
    },
    secondary: { requireTotp: true, requireExtJwtSigner: null },
  })
  await root.call('PATCH', `${management}/identities/alice-id`, { authPolicyId: policy })
  expect(ids()).not.toContain('alice-id')
  expect(await judged({})).toEqual({ ok: false, fault: 'apiSession' })
  await root.call('PATCH', `${management}/identities/alice-id`, { authPolicyId: 'default' })
  expect(await judged({})).toMatchObject({ ok: true })
  await root.call('DELETE', `${management}/service-policies/${policies[0]}`)
  expect((await judged({})).ok).toBe(false)
})

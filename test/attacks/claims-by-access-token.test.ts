import { beforeAll, describe, expect, test } from 'vitest'

import { RouterClientAuthorizer } from '../../src/api/fabric/router-client-authorizer.ts'
import { createServices } from '../../src/api/services.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { SessionTokenSigner } from '../../src/auth/sessions/session-token-signer.ts'
import type { ClientAccessRequest } from '../../src/ports/router-clients.ts'
import type { ModelEvent } from '../../src/ports/router-model.ts'
import { client, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { claimsOf, made, newService } from '../api/support/network.ts'
import { OidcClient, type Tokens } from '../api/support/oidc.ts'
import { raiseLevel } from '../api/support/raise-level.ts'

// The attack: a stolen router has received the access token of an OIDC client, and uses it at
// controllers for requests that the client may not make at that router, or to manage the network.

const { controller, root, sessionOf } = await controllerForFile()
const { parts, machine } = controller
const services = createServices(parts)
const clients = new RouterClientAuthorizer({ ...parts, ...services }, machine)
const told: ModelEvent[] = []
let routerId: string
let serviceId: string
let serial = 0
let dialId: string

beforeAll(async () => {
  await raiseLevel(controller)
  serviceId = await newService(root, 'ledger')
  routerId = await made(root, `${management}/edge-routers`, { name: 'gate' })
  const every = { semantic: 'AnyOf', serviceRoles: ['#all'] }
  const dial = { ...every, name: 'dial', type: 'Dial', identityRoles: ['#all'] }
  dialId = await made(root, `${management}/service-policies`, dial)
  const edgeRouterRoles = ['#all']
  const routers = { ...every, name: 's', edgeRouterRoles }
  await made(root, `${management}/service-edge-router-policies`, routers)
  const own = { name: 'e', semantic: 'AnyOf', identityRoles: ['#all'], edgeRouterRoles }
  await made(root, `${management}/edge-router-policies`, own)
  machine.routerModel.follow({
    onEntry: (_index, events) => told.push(...events),
    onReplaced: () => undefined,
  })
})

async function call(method: 'GET' | 'POST', url: string, token: string, body?: object) {
  const answer = await controller.app.inject({
    method,
    url,
    headers: { host: 'any', authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { payload: body }),
  })
  const { data } = answer.json<{ data: Record<string, string> }>()
  return { status: answer.statusCode, data }
}

async function newPerson() {
  serial += 1
  const username = `person-${serial}`
  const password = 'a long enough password'
  const body = { name: username, type: 'User', isAdmin: false }
  const identityId = await made(root, `${management}/identities`, body)
  const updb = { method: 'updb', identityId, username, password }
  await made(root, `${management}/authenticators`, updb)
  const tokens = await new OidcClient(controller).logIn(username, password)
  return { identityId, tokens }
}

/** The access request that a router sends for a client with a certificate for its session. */
async function claimOf({ access_token: access }: Tokens): Promise<ClientAccessRequest> {
  const csr = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'x' })
  const path = `${client}/current-api-session/certificates`
  const { data: certificate } = await call('POST', path, access, { csr })
  const shown = await call('GET', `${path}/${certificate['id']}`, access)
  const session = await call('POST', `${client}/sessions`, access, { serviceId, type: 'Dial' })
  return {
    routerId,
    sessionToken: session.data['token'] ?? '',
    apiSessionToken: access,
    fingerprints: [shown.data['fingerprint'] ?? ''],
    type: 'Dial',
  }
}

const noSession = { ok: false, fault: 'apiSession' }

describe('a token that a router presents for an OIDC client (a claim)', () => {
  test('is accepted with the certificate to which the token is bound', async () => {
    const { identityId, tokens } = await newPerson()
    const claim = await claimOf(tokens)
    expect(await clients.judge(claim)).toMatchObject({ ok: true, client: { identityId } })
    expect(await clients.judge({ ...claim, fingerprints: [] })).toEqual(noSession)
  })

  test('is refused if it is not the access token of the session', async () => {
    const { tokens } = await newPerson()
    const claim = await claimOf(tokens)
    const id = String(claimsOf(tokens.access_token)['z_asid'])
    const derived = new SessionTokenSigner(parts.keys).tokenOf(id)
    for (const apiSessionToken of [tokens.refresh_token, tokens.id_token, derived]) {
      expect(await clients.judge({ ...claim, apiSessionToken })).toEqual(noSession)
    }
  })

  test('is refused after the client has logged out, which the controller reports to the routers', async () => {
    const { tokens } = await newPerson()
    const claim = await claimOf(tokens)
    await new OidcClient(controller).send('POST', '/oidc/revoke', {
      token: tokens.refresh_token,
      client_id: 'native',
    })
    expect(await clients.judge(claim)).toEqual(noSession)
    const id = String(claimsOf(tokens.access_token)['z_asid'])
    const revoked = told.filter((event) => event.kind === 'revocation' && event.value.id === id)
    expect(revoked).toMatchObject([{ action: 'create', value: { type: 'API_SESSION' } }])
  })
})

function byServiceOf(claim: ClientAccessRequest, identityId: string): ClientAccessRequest {
  return { ...claim, sessionToken: '', serviceId, identityId }
}

describe('a router’s request with a client’s access token and the ID of a service', () => {
  test('is accepted for that client, and opens one service session', async () => {
    const { identityId, tokens } = await newPerson()
    const claim = byServiceOf(await claimOf(tokens), identityId)
    const first = await clients.judge(claim)
    expect(first).toMatchObject({ ok: true, client: { identityId, serviceId } })
    expect(await clients.judge(claim)).toEqual(first)
    expect(
      await clients.judge({ ...claim, fingerprints: [] }),
      'the router compares the certificate',
    ).toEqual(first)
  })

  test('is refused with a certificate of another identity', async () => {
    const { identityId, tokens } = await newPerson()
    const claim = byServiceOf(await claimOf(tokens), identityId)
    const { fingerprints } = await claimOf((await newPerson()).tokens)
    expect(await clients.judge({ ...claim, fingerprints })).toEqual(noSession)
  })

  test('is refused for an identity other than the one in the token', async () => {
    const [ann, bob] = [await newPerson(), await newPerson()]
    const claim = await claimOf(ann.tokens)
    expect(await clients.judge(byServiceOf(claim, bob.identityId))).toEqual(noSession)
  })

  test('is refused if the session is not an OIDC session', async () => {
    const legacy = sessionOf('alice-id')
    const { fingerprints } = await claimOf((await newPerson()).tokens)
    const csr = await createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'x' })
    const path = `${client}/current-api-session/certificates`
    const shown = await legacy.get(`${path}/${await made(legacy, path, { csr })}`)
    const { fingerprint } = shown.body.data as { fingerprint: string }
    const apiSessionToken = legacy.token ?? ''
    const claim = {
      routerId,
      sessionToken: '',
      serviceId,
      identityId: 'alice-id',
      apiSessionToken,
      fingerprints: [...fingerprints, fingerprint],
      type: 'Dial',
    } as const
    expect(await clients.judge(claim)).toEqual(noSession)
  })

  test('is refused for a service that no policy allows the client to dial', async () => {
    const { identityId, tokens } = await newPerson()
    const claim = byServiceOf(await claimOf(tokens), identityId)
    const missing = await clients.judge({ ...claim, serviceId: 'nothing' })
    expect(missing).toEqual({ ok: false, fault: 'service' })
    await root.call('PATCH', `${management}/service-policies/${dialId}`, { identityRoles: [] })
    expect(await clients.judge(claim)).toMatchObject({ ok: false })
    await root.call('PATCH', `${management}/service-policies/${dialId}`, {
      identityRoles: ['#all'],
    })
  })
})

test('the controller does not send OIDC sessions to routers', async () => {
  const { identityId, tokens } = await newPerson()
  await claimOf(tokens)
  const ids = [...clients.sessionIds()].flatMap((id) => clients.session(id)?.identityId ?? [])
  expect(ids).not.toContain(identityId)
})

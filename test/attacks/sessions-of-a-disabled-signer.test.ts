import { expect, test } from 'vitest'
import { CallerOf, client, management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerWithProvider } from '../api/support/external-jwt.ts'
import { made, newService } from '../api/support/network.ts'
import { raiseLevel } from '../api/support/raise-level.ts'

// The attack: a provider has issued tokens to the wrong people, and its signer is disabled or
// deleted. A person who has logged in before continues to use the session.

/** Feature level at which sessions of a disabled signer are refused but not deleted. */
const BEFORE_SESSIONS_END = 1

const { controller, server, provider, signerId, root, newSigner, patch, logIn } =
  await controllerWithProvider({}, BEFORE_SESSIONS_END)

async function sessionBy(token: string): Promise<CallerOf> {
  const reply = await logIn(token)
  expect(reply.status, reply.text).toBe(200)
  const caller = new CallerOf(controller)
  caller.token = String(reply.headers['zt-session'])
  return caller
}

test('a session that was opened with a JWT is refused after the signer of the JWT is disabled', async () => {
  const alice = await sessionBy(await provider.token('alice-id'))
  expect((await alice.get(`${client}/current-identity`)).status).toBe(200)
  await patch('external-jwt-signers', signerId, { enabled: false })
  expect((await alice.get(`${client}/current-identity`)).status).toBe(401)
  expect((await alice.get(`${client}/current-api-session`)).status).toBe(401)
  await patch('external-jwt-signers', signerId, { enabled: true })
})

test('a write that passed the permission check before the signer was disabled is refused when its log entry is applied', async () => {
  const alice = await sessionBy(await provider.token('alice-id'))
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  cluster.propose = async (input) => {
    cluster.propose = propose
    await patch('external-jwt-signers', signerId, { enabled: false })
    return propose(input)
  }
  const own = `${client}/current-identity/authenticators/alice-updb`
  const body = { currentPassword: user.password, tags: { too: 'late' } }
  const before = controller.state.get('authenticator', 'alice-updb')
  expect((await alice.call('PATCH', own, body)).status).toBe(401)
  expect(controller.state.get('authenticator', 'alice-updb')).toEqual(before)
  await patch('external-jwt-signers', signerId, { enabled: true })
  expect((await alice.call('PATCH', own, body)).status).toBe(200)
})

test('deleting an external JWT signer ends the sessions that were opened with its JWTs', async () => {
  const issuer = 'https://short-lived.test'
  const id = await newSigner({ issuer, jwksEndpoint: server.url })
  const alice = await sessionBy(await provider.token('alice-id', { claims: { iss: issuer } }))
  const gone = await root.call('DELETE', `${management}/external-jwt-signers/${id}`)
  expect(gone.status, gone.text).toBe(200)
  expect((await alice.get(`${client}/current-identity`)).status).toBe(401)
})

test('disabling an external JWT signer ends the sessions opened with its JWTs, with their service sessions', async () => {
  await raiseLevel(controller)
  const other = await newSigner({ issuer: 'https://other.test', jwksEndpoint: server.url })
  const token = { claims: { iss: 'https://other.test' } }
  const [alice, bob] = [
    await sessionBy(await provider.token('alice-id')),
    await sessionBy(await provider.token('alice-id', token)),
  ]
  const serviceId = await newService(root, 'wiki')
  const each = { semantic: 'AnyOf', serviceRoles: ['#all'], identityRoles: ['#all'] }
  await made(root, `${management}/service-policies`, { ...each, name: 'dial', type: 'Dial' })
  await made(root, `${management}/edge-routers`, { name: 'gate' })
  const routers = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  await made(root, `${management}/edge-router-policies`, {
    ...routers,
    name: 'routers',
    identityRoles: ['#all'],
  })
  await made(root, `${management}/service-edge-router-policies`, {
    ...routers,
    name: 'ways',
    serviceRoles: ['#all'],
  })
  for (const caller of [alice, bob]) {
    const opened = await caller.call('POST', `${client}/sessions`, { serviceId, type: 'Dial' })
    expect(opened.status, opened.text).toBe(201)
  }
  const open = (): string[] =>
    [...controller.state.table('session').rows.values()].map(({ record }) =>
      String(record['apiSessionId']),
    )
  expect(open()).toHaveLength(2)
  await patch('external-jwt-signers', signerId, { name: 'renamed' })
  expect(open()).toHaveLength(2)
  await patch('external-jwt-signers', signerId, { enabled: false })
  expect(open()).toHaveLength(1)
  await patch('external-jwt-signers', signerId, { enabled: true })
  expect((await alice.get(`${client}/current-identity`)).status).toBe(401)
  expect((await bob.get(`${client}/current-identity`)).status).toBe(200)
  await patch('external-jwt-signers', other, { enabled: false })
  expect(open()).toEqual([])
})

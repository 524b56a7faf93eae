import { beforeEach, expect, test } from 'vitest'
import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, EntityWriteSchema } from '../../proto/gen/command_pb.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { CallerOf, client, management, type Reply } from './support/caller.ts'
import { user } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'
import { commandData } from '../support/commands.ts'

const { controller, root, sessionOf } = await controllerForFile()
const signers = `${management}/external-jwt-signers`
const policy = await newPolicy()
const session = `${client}/current-api-session`

async function newPolicy(): Promise<string> {
  const { primary } = (await root.get(`${management}/auth-policies/default`)).body.data as {
    primary: object
  }
  const body = { name: 'of alice', primary, secondary: { requireTotp: false } }
  const reply = await root.call('POST', `${management}/auth-policies`, body)
  return (reply.body.data as { id: string }).id
}

async function ask(secondary: object): Promise<void> {
  const reply = await root.call('PATCH', `${management}/auth-policies/${policy}`, { secondary })
  expect(reply.status, reply.text).toBe(200)
}

/** The part of a session that lists its missing factors. */
function factorsOf(reply: Reply): Record<string, unknown> {
  expect(reply.status, reply.text).toBe(200)
  const { authQueries, isMfaRequired, isMfaComplete } = reply.body.data as Record<string, unknown>
  return { authQueries, isMfaRequired, isMfaComplete }
}

beforeEach(async () => {
  const named = await root.call('PATCH', `${management}/identities/alice-id`, {
    authPolicyId: policy,
  })
  expect(named.status).toBe(200)
  await ask({ requireTotp: false, requireExtJwtSigner: '' })
})

const totpQuery = {
  typeId: 'MFA',
  provider: 'ziti',
  format: 'alphaNumeric',
  minLength: 4,
  maxLength: 6,
  httpMethod: 'POST',
  httpUrl: './authenticate/mfa',
  isTotpEnrolled: false,
}

test('a log-in under a policy that requires a TOTP code opens a session that lists the missing factor', async () => {
  await ask({ requireTotp: true })
  const alice = new CallerOf(controller)
  const expected = { authQueries: [totpQuery], isMfaRequired: true, isMfaComplete: false }
  expect(factorsOf(await alice.logIn(user, client))).toEqual(expected)
  expect(factorsOf(await alice.get(session))).toEqual(expected)
  const refused = await alice.get(`${client}/current-identity`)
  expect(refused.status).toBe(401)
  expect(refused.body.error?.code).toBe('UNAUTHORIZED')
  expect((await alice.call('DELETE', session)).status).toBe(200)
  expect((await alice.get(session)).status).toBe(401)
})

test('if a policy requires an external JWT, sessions under the policy are partially authenticated and show the signer', async () => {
  const made = await root.call('POST', signers, {
    name: 'idp',
    issuer: 'idp',
    audience: 'us',
    enabled: true,
    jwksEndpoint: 'https://idp.test/keys',
    externalAuthUrl: 'https://idp.test',
    clientId: 'flotilla',
    scopes: ['email'],
  })
  const { id } = made.body.data as { id: string }
  await ask({ requireTotp: true, requireExtJwtSigner: id })
  const alice = sessionOf('alice-id')
  const query = {
    typeId: 'EXT-JWT',
    provider: 'url',
    id,
    httpUrl: 'https://idp.test',
    clientId: 'flotilla',
    scopes: ['email'],
  }
  expect(factorsOf(await alice.get(session))['authQueries']).toEqual([totpQuery, query])
  await ask({ requireTotp: false })
  expect(factorsOf(await alice.get(session))).toEqual({
    authQueries: [query],
    isMfaRequired: false,
    isMfaComplete: false,
  })
  expect((await alice.get(`${client}/current-identity`)).status).toBe(401)
})

test('a policy change applies to existing sessions at their next request', async () => {
  const alice = sessionOf('alice-id')
  expect((await alice.get(`${client}/services`)).status).toBe(200)
  await ask({ requireTotp: true })
  expect((await alice.get(`${client}/services`)).status).toBe(401)
  await ask({ requireTotp: false })
  expect((await alice.get(`${client}/services`)).status).toBe(200)
})

test('an administrator sees for every session whether it requires a code', async () => {
  await ask({ requireTotp: true })
  const alice = sessionOf('alice-id')
  const { id } = (await alice.get(session)).body.data as { id: string }
  const shown = await root.get(`${management}/api-sessions/${id}`)
  expect(factorsOf(shown)).toEqual({ authQueries: [], isMfaRequired: true, isMfaComplete: false })
  const own = (await root.get(`${management}/current-api-session`)).body.data
  expect(own).toMatchObject({ isMfaRequired: false, authQueries: [] })
})

test('a write is refused when its log entry is applied if an earlier log entry began to require a second factor, even if the proposer did not know this', async () => {
  const alice = sessionOf('alice-id')
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  const fields = { secondary: { requireTotp: true } }
  const json = new TextEncoder().encode(canonicalJson(fields))
  const write = create(EntityWriteSchema, { entity: 'authPolicy', id: policy, json })
  const command = commandData(CommandKind.ENTITY_PATCH, toBinary(EntityWriteSchema, write))
  cluster.propose = (input) => {
    cluster.propose = propose
    cluster.apply(command)
    return propose(input)
  }
  const own = `${client}/current-identity/authenticators/alice-updb`
  const body = { currentPassword: user.password, tags: { too: 'late' } }
  expect((await alice.call('PATCH', own, body)).status).toBe(401)
  expect(controller.state.get('authenticator', 'alice-updb')?.['tags']).toEqual({})
})

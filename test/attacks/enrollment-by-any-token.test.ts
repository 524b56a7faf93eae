import { expect, test } from 'vitest'
import { CallerOf, client, management, type Reply } from '../api/support/caller.ts'
import { controllerWithProvider } from '../api/support/external-jwt.ts'

// The attack: somebody with a token of any identity provider tries to become an identity with it:
// at a signer without enrollment, repeatedly, instead of an existing identity, as an
// administrator, or at another signer than intended.

const { controller, server, provider, signerId, root, newSigner, patch } =
  await controllerWithProvider()
const open = { enrollToTokenEnabled: true, useExternalId: true }
await patch('external-jwt-signers', signerId, open)

async function enroll(token: string, headers: Record<string, string> = {}): Promise<Reply> {
  const sent = { authorization: `Bearer ${token}`, ...headers }
  return new CallerOf(controller).call('POST', `${client}/enroll/token`, {}, sent)
}

async function countOf(externalId: string): Promise<number> {
  const filter = encodeURIComponent(`externalId="${externalId}"`)
  return ((await root.get(`${management}/identities?filter=${filter}`)).body.data as []).length
}

/** Runs an action after the next write was checked and before its entry is in the log. */
function before(entry: () => Promise<unknown>): void {
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  cluster.propose = async (input) => {
    cluster.propose = propose
    await entry()
    return propose(input)
  }
}

test('a JWT enrolls no identity if enrollment is disabled on its signer before the log entry is applied', async () => {
  before(() => patch('external-jwt-signers', signerId, { enrollToTokenEnabled: false }))
  expect((await enroll(await provider.token('one'))).status).toBe(409)
  expect(await countOf('one')).toBe(0)
  await patch('external-jwt-signers', signerId, open)
})

test('a JWT enrolls no identity if the auth policy of its signer stops accepting JWTs before the log entry is applied', async () => {
  const { primary } = (await root.get(`${management}/auth-policies/default`)).body.data as {
    primary: object
  }
  const closed = { ...primary, extJwt: { allowed: false, allowedSigners: [] } }
  before(() => patch('auth-policies', 'default', { primary: closed }))
  expect((await enroll(await provider.token('two'))).status).toBe(409)
  expect(await countOf('two')).toBe(0)
  await patch('auth-policies', 'default', { primary })
})

test('a JWT that is used twice at the same time enrolls one identity', async () => {
  const token = await provider.token('three')
  before(() => enroll(token))
  expect((await enroll(token)).status).toBe(409)
  expect(await countOf('three')).toBe(1)
})

test('a JWT can neither replace an administrator’s identity nor create an administrator', async () => {
  await patch('identities', 'admin-id', { externalId: 'root@idp.test' })
  const before = [...controller.state.storedRecords()]
  expect((await enroll(await provider.token('root@idp.test'))).status).toBe(409)
  expect([...controller.state.storedRecords()]).toEqual(before)
  const claims = { isAdmin: true, permissions: ['identity'], name: 'admin' }
  await patch('external-jwt-signers', signerId, { enrollNameClaimsSelector: '/name' })
  expect((await enroll(await provider.token('four', { claims }))).status).toBe(200)
  const filter = encodeURIComponent('externalId="four"')
  const { body } = await root.get(`${management}/identities?filter=${filter}`)
  const [made] = body.data as Record<string, unknown>[]
  expect(made).toMatchObject({ isAdmin: false, isDefaultAdmin: false, permissions: null })
  await patch('external-jwt-signers', signerId, { enrollNameClaimsSelector: '/sub' })
})

test('a JWT enrolls no identity if its signer is not the signer that the client requests', async () => {
  const other = await newSigner({ ...open, jwksEndpoint: server.url })
  const refused = await enroll(await provider.token('five'), { 'ziti-token-issuer-id': other })
  expect(refused.status).toBe(400)
  expect(await countOf('five')).toBe(0)
})

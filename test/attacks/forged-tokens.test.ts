import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { expect, test } from 'vitest'
import { client, management, type Reply } from '../api/support/caller.ts'
import { controllerWithProvider } from '../api/support/external-jwt.ts'
import { listed } from '../api/support/network.ts'
import { ecKey, jwkOf, type ProviderKey, rsaKey } from '../support/identity-provider.ts'

// The attack: somebody forges tokens, modifies their own, or presents a provider's token for
// another service or person, to log in as an identity of their choice, or to fulfill a policy that
// requires a token.

const attacked = await controllerWithProvider({ tokenChecksMax: 16 })
const { controller, server, provider, signerId, root, sessionOf, newSigner, newPolicy } = attacked
const { patch, logIn } = attacked
const rsa = rsaKey('rsa')
server.keys = [jwkOf(provider.key), { ...jwkOf(rsa), alg: 'RS256' }]

const encoded = (value: unknown): string =>
  Buffer.from(JSON.stringify(value), 'utf8').toString('base64url')

/**
 * Valid claims with a header of the attacker's choice, signed with any key that the attacker has.
 */
async function forged(header: object, sign: (input: string) => string): Promise<string> {
  const [, body = ''] = (await provider.token('admin-id')).split('.')
  const input = `${encoded({ typ: 'JWT', ...header })}.${body}`
  return `${input}.${sign(input)}`
}

function expectRefused(reply: Reply): void {
  expect(reply.status, reply.text).toBe(401)
  expect(reply.body.error?.code).toBe('UNAUTHORIZED')
}

test('a JWT without a signature is refused, in any spelling of the algorithm none', async () => {
  for (const alg of ['none', 'None', 'NONE', '']) {
    for (const kid of [rsa.kid, provider.key.kid]) {
      expectRefused(await logIn(await forged({ alg, kid }, () => '')))
      expectRefused(await logIn(await forged({ alg, kid }, () => 'AA')))
    }
  }
})

test('a JWT that is signed with the public key of the provider as an HMAC secret is refused', async () => {
  const texts = [
    String(rsa.publicKey.export({ type: 'spki', format: 'pem' })),
    String(rsa.publicKey.export({ type: 'pkcs1', format: 'pem' })),
    JSON.stringify(jwkOf(rsa)),
  ]
  for (const text of texts) {
    for (const bits of ['256', '384', '512']) {
      const mac = (input: string): string =>
        createHmac(`sha${bits}`, text).update(input).digest('base64url')
      expectRefused(await logIn(await forged({ alg: `HS${bits}`, kid: rsa.kid }, mac)))
    }
  }
})

test('a JWT whose algorithm does not match the key is refused', async () => {
  const other: ProviderKey = { ...rsa, algorithm: 'RS512' }
  expectRefused(await logIn(await provider.token('admin-id', { key: other })))
  expect((await logIn(await provider.token('admin-id', { key: rsa }))).status).toBe(200)
})

test('a JWT that contains its own key, or a reference to this key, is refused', async () => {
  const own = ecKey(provider.key.kid)
  const jwk = jwkOf(own)
  const { url } = server
  const x5c = [Buffer.from('a certificate').toString('base64')]
  const before = server.requests
  for (const header of [
    { jwk },
    { jku: url },
    { x5u: url },
    { x5c },
    { jwk, jku: url, x5u: url },
    { kid: 'unknown', jwk },
  ]) {
    expectRefused(await logIn(await provider.token('admin-id', { key: own, header })))
  }
  expect(server.requests - before).toBeLessThan(2)
})

test('a JWT whose kid is a path, a query, a list, or the name of another key is refused', async () => {
  const own = ecKey('own')
  for (const kid of ['../../dev/null', "' OR 1=1 --", '__proto__', '', ' first', 'FIRST', 'rsa']) {
    expectRefused(await logIn(await provider.token('admin-id', { key: own, header: { kid } })))
  }
  for (const kid of [['first'], { first: true }, 1, null, true]) {
    expectRefused(await logIn(await provider.token('admin-id', { header: { kid } })))
  }
  // A valid signature with the name of another key.
  for (const kid of ['rsa', 'another']) {
    expectRefused(await logIn(await provider.token('admin-id', { header: { kid } })))
  }
})

test('a JWT is refused if its audience is missing or differs from the signer’s, even if only by one character', async () => {
  const { audience } = provider
  for (const aud of ['other', [], ['other'], '', `${audience}x`, audience.slice(1), undefined]) {
    expectRefused(await logIn(await provider.token('admin-id', { claims: { aud } })))
  }
})

test('a JWT for any audience is refused if the signer configures no audience', async () => {
  const issuer = 'https://no-audience.test'
  await newSigner({ issuer, audience: '', jwksEndpoint: server.url })
  for (const aud of ['', 'anything', undefined]) {
    expectRefused(await logIn(await provider.token('admin-id', { claims: { iss: issuer, aud } })))
  }
})

test('a JWT from an issuer with a similar name is refused', async () => {
  const { issuer } = provider
  for (const iss of [
    `${issuer}/`,
    issuer.toUpperCase(),
    ` ${issuer}`,
    `${issuer}.evil`,
    [issuer],
  ]) {
    expectRefused(await logIn(await provider.token('admin-id', { claims: { iss } })))
  }
})

test('a JWT without an expiry is refused', async () => {
  for (const exp of [undefined, null, '9999999999', 'never']) {
    expectRefused(await logIn(await provider.token('admin-id', { claims: { exp } })))
  }
})

test('a JWT that expires after the year 9999 is refused', async () => {
  const header = { alg: 'RS256', kid: rsa.kid }
  const signed = (input: string): string =>
    sign('sha256', Buffer.from(input), rsa.privateKey).toString('base64url')
  const claimsOf = async (exp: string): Promise<string> => {
    const [, body = ''] = (
      await provider.token('admin-id', { claims: { exp: 4_000_000_000 } })
    ).split('.')
    const claims = Buffer.from(body, 'base64url').toString('utf8').replace('4000000000', exp)
    const input = `${encoded({ typ: 'JWT', ...header })}.${Buffer.from(claims).toString('base64url')}`
    return `${input}.${signed(input)}`
  }
  for (const exp of ['1e400', '1e300', '253402300800']) {
    expectRefused(await logIn(await claimsOf(exp)))
  }
  expect((await logIn(await claimsOf('4000000000'))).status).toBe(200)
})

test('a second external JWT signer with an existing issuer and an attacker’s keys is refused', async () => {
  const body = {
    name: 'twin',
    issuer: provider.issuer,
    audience: provider.audience,
    enabled: true,
    jwksEndpoint: 'https://attacker.test/keys',
  }
  const path = `${management}/external-jwt-signers`
  const other = await newSigner({ jwksEndpoint: server.url })
  const { issuer } = provider
  const signers = await listed(root, path)
  for (const [method, url, fields] of [
    ['POST', path, body],
    ['PUT', `${path}/${other}`, body],
    ['PATCH', `${path}/${other}`, { issuer }],
  ] as const) {
    const reply = await root.call(method, url, fields)
    expect([reply.status, reply.body.error?.cause?.['field']]).toEqual([400, 'issuer'])
  }
  expect(await listed(root, path)).toEqual(signers)
})

test('a JWT with extremely nested claims, or of extreme length, is refused', async () => {
  let nested: unknown = 'leaf'
  for (let depth = 0; depth < 1000; depth += 1) nested = [nested]
  expectRefused(await logIn(await provider.token('admin-id', { claims: { nested } })))
  const filler = 'x'.repeat(20_000)
  expectRefused(await logIn(await provider.token('admin-id', { claims: { filler } })))
})

test('a JWT is refused if the selected claim is not a string, or not an own property of the claims', async () => {
  for (const selector of [
    '/__proto__/constructor/name',
    '/constructor/name',
    '/toString',
    '/a/0',
  ]) {
    await patch('external-jwt-signers', signerId, { claimsProperty: selector })
    expectRefused(await logIn(await provider.token('admin-id', { claims: { a: 'admin-id' } })))
  }
  await patch('external-jwt-signers', signerId, { claimsProperty: '/sub' })
  for (const sub of [['admin-id'], { id: 'admin-id' }, 0, true, null]) {
    expectRefused(await logIn(await provider.token('x', { claims: { sub } })))
  }
})

test('a JWT of one identity is refused as the second factor of another', async () => {
  const secondary = { requireTotp: false, requireExtJwtSigner: signerId }
  await patch('identities', 'alice-id', { authPolicyId: await newPolicy('two', { secondary }) })
  const alice = sessionOf('alice-id')
  const own = `${client}/current-identity`
  const shown = async (who: string): Promise<Record<string, string>> => ({
    authorization: `Bearer ${await provider.token(who)}`,
  })
  expect((await alice.get(own, await shown('alice-id'))).status).toBe(200)
  expect((await alice.get(own, await shown('admin-id'))).status).toBe(401)
  await patch('identities', 'alice-id', { authPolicyId: 'default' })
})

test('a log-in with a JWT is refused if the auth policy disallows JWTs before the log entry is applied', async () => {
  const closed = await newPolicy('closed', { extJwt: { allowed: false, allowedSigners: [] } })
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  cluster.propose = async (input) => {
    cluster.propose = propose
    await patch('identities', 'alice-id', { authPolicyId: closed })
    return propose(input)
  }
  const sessions = [...controller.state.table('apiSession').ids]
  expectRefused(await logIn(await provider.token('alice-id')))
  expect([...controller.state.table('apiSession').ids]).toEqual(sessions)
  await patch('identities', 'alice-id', { authPolicyId: 'default' })
})

test('a write that requires a JWT as second factor is refused if the signer is disabled before the log entry is applied', async () => {
  const secondary = { requireTotp: false, requireExtJwtSigner: signerId }
  const two = await newPolicy('two at apply', { secondary })
  await patch('identities', 'alice-id', { authPolicyId: two, isAdmin: true })
  const alice = sessionOf('alice-id')
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  cluster.propose = async (input) => {
    cluster.propose = propose
    await patch('external-jwt-signers', signerId, { enabled: false })
    return propose(input)
  }
  const authorization = `Bearer ${await provider.token('alice-id')}`
  const body = { name: 'too late', encryptionRequired: true }
  const reply = await alice.call('POST', `${management}/services`, body, { authorization })
  expect(reply.status).toBe(401)
  const names = (await listed(root, `${management}/services`)).map(({ name }) => name)
  expect(names).not.toContain('too late')
  await patch('external-jwt-signers', signerId, { enabled: true })
  const again = await alice.call('POST', `${management}/services`, body, { authorization })
  expect(again.status, again.text).toBe(201)
  await patch('identities', 'alice-id', { authPolicyId: 'default', isAdmin: false })
})

test('a JWT that is signed with a stolen key is refused once the provider has withdrawn the key', async () => {
  const token = await provider.token('alice-id')
  expect((await logIn(token)).status).toBe(200)
  const next = ecKey('next')
  server.keys = [jwkOf(next)]
  controller.clock.advance(2_000)
  expect((await logIn(await provider.token('alice-id', { key: next }))).status).toBe(200)
  expectRefused(await logIn(token))
  provider.key = next
})

test('refusals of JWTs do not reveal which identities exist, are disabled, or may log in with JWTs', async () => {
  const closed = await newPolicy('no tokens', { extJwt: { allowed: false, allowedSigners: [] } })
  await patch('identities', 'alice-id', { authPolicyId: closed })
  const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const replies = [
    await logIn(await provider.token('nobody-at-all')),
    await logIn(await provider.token('mallory-id')),
    await logIn(await provider.token('alice-id')),
    await logIn(await provider.token('admin-id', { key: { ...provider.key, ...stranger } })),
  ]
  await patch('identities', 'alice-id', { authPolicyId: 'default' })
  const told = replies.map(({ status, headers, text }) => ({
    status,
    challenge: headers['www-authenticate'],
    text: text.replace(/"requestId":"[^"]*"/, ''),
    length: headers['content-length'],
  }))
  for (const one of told) expect(one).toEqual(told[0])
})

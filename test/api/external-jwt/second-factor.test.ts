import { beforeEach, describe, expect, test } from 'vitest'
import { missingFactorChallenge } from '../../../src/auth/principal/external-jwt-factor.ts'
import { CallerOf, client, management, type Reply } from '../support/caller.ts'
import { user } from '../support/controller.ts'
import { controllerWithProvider } from '../support/external-jwt.ts'
import { ecKey } from '../../support/identity-provider.ts'

const { controller, server, provider, signerId, root, sessionOf, newPolicy, newSigner, patch } =
  await controllerWithProvider()
const required = await newPolicy('asks for a token', {
  secondary: { requireTotp: false, requireExtJwtSigner: signerId },
})
const own = `${client}/current-identity`
const session = `${client}/current-api-session`
const query = {
  typeId: 'EXT-JWT',
  provider: 'url',
  id: signerId,
  httpUrl: '',
  clientId: '',
  scopes: [],
}
const accessToken = `x.${Buffer.from('{"z_t":"a"}').toString('base64url')}.x`
const unverified = ['{"alg":"ES256","kid":"x"}', '{"iss":"https://idp.test"}', 'x']
  .map((part) => Buffer.from(part).toString('base64url'))
  .join('.')
const queriesOf = (reply: Reply): unknown => {
  expect(reply.status, reply.text).toBe(200)
  return (reply.body.data as { authQueries: unknown }).authQueries
}
const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })

beforeEach(() => patch('identities', 'alice-id', { authPolicyId: required }))

describe('a session whose policy requires an external JWT', () => {
  test('is fully authenticated in each request with a JWT, and partially in each request without a JWT', async () => {
    const alice = sessionOf('alice-id')
    const token = bearer(await provider.token('alice-id'))
    expect(queriesOf(await alice.get(session))).toEqual([query])
    expect((await alice.get(own)).status).toBe(401)
    expect((await alice.get(own, token)).status).toBe(200)
    expect(queriesOf(await alice.get(session, token))).toEqual([])
    expect((await alice.get(own)).status).toBe(401)
  })

  test('reports the JWT as missing, not as invalid, if none of its bearer tokens is a JWT of the required signer', async () => {
    const pendingFactors = [{ kind: 'extJwt', signerId } as const]
    const errorOf = (...bearers: readonly string[]): string | undefined =>
      missingFactorChallenge(controller.parts, { bearers: () => bearers }, { pendingFactors })
        ?.error
    expect(errorOf()).toBe('missing')
    expect(errorOf(accessToken)).toBe('missing')
    expect(errorOf(accessToken, 'x.y.z')).toBe('missing')
    const ofOther = await provider.token('alice-id', { claims: { iss: 'https://second.test' } })
    expect(errorOf(ofOther)).toBe('missing')
    expect(errorOf(accessToken, unverified)).toBe('invalid')
  })

  test('names the required signer in its challenge if the JWT is missing, invalid or expired', async () => {
    const alice = sessionOf('alice-id')
    const challenge = (error: string, description: string): string =>
      `Bearer realm="openziti-secondary-ext-jwt" error="${error}" error_description="${description}" id="${signerId}" issuer="https://idp.test"`
    const answered = async (token?: string): Promise<unknown> => {
      const headers = token === undefined ? {} : bearer(token)
      return (await alice.get(own, headers)).headers['www-authenticate']
    }
    const missing = challenge('missing', 'no matching token was provided')
    expect(await answered()).toBe(missing)
    expect(await answered('x.y.z')).toBe(missing)
    const invalid = challenge('invalid', 'token is invalid')
    expect(await answered(unverified)).toBe(invalid)
    const past = { claims: { exp: Math.floor(controller.clock.nowMs() / 1000) - 60 } }
    const expired = await provider.token('alice-id', past)
    expect(await answered(expired)).toBe(challenge('expired', 'token expired'))
    // If the signature were not checked first, anyone could learn which token times the controller
    // accepts.
    const forged = await provider.token('alice-id', { ...past, key: ecKey('first') })
    expect(await answered(forged)).toBe(invalid)
  })

  test('also shows the required signer in successful responses: for the log-in and for the session', async () => {
    const missing = `Bearer realm="openziti-secondary-ext-jwt" error="missing"`
    const token = bearer(await provider.token('alice-id'))
    const logIn = (headers: Record<string, string>): Promise<Reply> =>
      new CallerOf(controller).call('POST', `${client}/authenticate?method=password`, user, headers)
    const partial = await logIn({})
    expect(partial.status).toBe(200)
    expect(partial.headers['www-authenticate']).toContain(missing)
    expect((await logIn(token)).headers).not.toHaveProperty('www-authenticate')
    const alice = sessionOf('alice-id')
    expect((await alice.get(session)).headers['www-authenticate']).toContain(missing)
    expect((await alice.get(session, token)).headers).not.toHaveProperty('www-authenticate')
  })

  test('can write if the request contains a JWT, and the write is also accepted when its log entry is applied', async () => {
    const alice = sessionOf('alice-id')
    const body = { currentPassword: user.password, tags: { with: 'token' } }
    const path = `${own}/authenticators/alice-updb`
    expect((await alice.call('PATCH', path, body)).status).toBe(401)
    const token = bearer(await provider.token('alice-id'))
    const reply = await alice.call('PATCH', path, body, token)
    expect(reply.status, reply.text).toBe(200)
  })

  test('has administrator rights only in requests that also present a JWT', async () => {
    await patch('identities', 'alice-id', { isAdmin: true })
    const alice = sessionOf('alice-id')
    const token = bearer(await provider.token('alice-id'))
    const services = `${management}/services`
    expect((await alice.get(services)).status).toBe(401)
    expect((await alice.get(services, token)).status).toBe(200)
    await patch('identities', 'alice-id', { isAdmin: false })
  })

  test('is fully authenticated when the log-in request carries the JWT', async () => {
    const token = bearer(await provider.token('alice-id'))
    const reply = await new CallerOf(controller).call(
      'POST',
      `${client}/authenticate?method=password`,
      user,
      token,
    )
    expect(queriesOf(reply)).toEqual([])
    const byToken = await new CallerOf(controller).call(
      'POST',
      `${client}/authenticate?method=ext-jwt`,
      {},
      token,
    )
    expect(queriesOf(byToken)).toEqual([])
  })

  test('refuses the JWT of another identity or another signer', async () => {
    const alice = sessionOf('alice-id')
    expect((await alice.get(own, bearer(await provider.token('admin-id')))).status).toBe(401)
    await newSigner({ issuer: 'https://second.test', jwksEndpoint: server.url })
    const claims = { iss: 'https://second.test' }
    const ofOther = await provider.token('alice-id', { claims })
    expect((await alice.get(own, bearer(ofOther))).status).toBe(401)
  })

  test('becomes partially authenticated when the JWT expires', async () => {
    const alice = sessionOf('alice-id')
    const exp = Math.floor(controller.clock.nowMs() / 1000) + 60
    const token = bearer(await provider.token('alice-id', { claims: { exp } }))
    expect((await alice.get(own, token)).status).toBe(200)
    controller.clock.advance(95_000)
    expect((await alice.get(own, token)).status).toBe(401)
  })

  test('becomes partially authenticated when the signer is changed or disabled', async () => {
    const alice = sessionOf('alice-id')
    const token = bearer(await provider.token('alice-id'))
    expect((await alice.get(own, token)).status).toBe(200)
    await patch('external-jwt-signers', signerId, { audience: 'somebody else' })
    expect((await alice.get(own, token)).status).toBe(401)
    await patch('external-jwt-signers', signerId, { audience: provider.audience })
    expect((await alice.get(own, token)).status).toBe(200)
    await patch('external-jwt-signers', signerId, { enabled: false })
    expect((await alice.get(own, token)).status).toBe(401)
    await patch('external-jwt-signers', signerId, { enabled: true })
    const gone = await root.call('DELETE', `${management}/external-jwt-signers/${signerId}`)
    expect(gone.status).toBe(409)
  })
})

test('a write is refused when its log entry is applied if the signer changed after the JWT was verified', async () => {
  const alice = sessionOf('alice-id')
  const { cluster } = controller
  const propose = cluster.propose.bind(cluster)
  const before = cluster.proposals.length
  cluster.propose = async (input) => {
    cluster.propose = propose
    await patch('external-jwt-signers', signerId, { audience: provider.audience, enabled: false })
    return propose(input)
  }
  const body = { currentPassword: user.password, tags: { too: 'late' } }
  const token = bearer(await provider.token('alice-id'))
  const reply = await alice.call('PATCH', `${own}/authenticators/alice-updb`, body, token)
  expect(reply.status).toBe(401)
  expect(cluster.proposals.length).toBe(before + 2)
  await patch('external-jwt-signers', signerId, { enabled: true })
})

import { describe, expect, test } from 'vitest'
import { management } from '../support/caller.ts'
import { controllerWithProvider } from '../support/external-jwt.ts'
import { ecKey, jwkOf, type TokenWish } from '../../support/identity-provider.ts'

// Goal: an administrator sees the metadata that a provider publishes and, for a token, the result
// of each check, the claim that decides, and the identity that would be logged in.

const { root, server, provider, signerId, newSigner, newPolicy, patch } =
  await controllerWithProvider()

const issuer = `https://localhost:${server.port}/realms/staff`
const keysAnswer = server.answer
const document = {
  issuer,
  jwks_uri: server.url,
  authorization_endpoint: `${issuer}/auth`,
  scopes_supported: ['openid', 'email', 7],
}

function serve(discovery: unknown): void {
  server.answer = (request, response) => {
    if (request.url !== '/realms/staff/.well-known/openid-configuration') {
      keysAnswer(request, response)
      return
    }
    response.setHeader('content-type', 'application/json')
    response.end(typeof discovery === 'string' ? discovery : JSON.stringify(discovery))
  }
}

const discover = async (asked: unknown) =>
  await root.call('POST', `${management}/jwt-signer-setup/discover`, { issuer: asked })

describe('discovery of an identity provider', () => {
  test('returns the endpoints of the provider and the IDs of its usable keys', async () => {
    serve(document)
    const reply = await discover(issuer)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data).toEqual({
      issuer,
      jwksEndpoint: server.url,
      authorizationEndpoint: `${issuer}/auth`,
      scopes: ['openid', 'email'],
      keyIds: ['first'],
      keysFault: null,
    })
  })

  test('returns the reason why the provider’s keys cannot be fetched', async () => {
    serve({ ...document, authorization_endpoint: undefined, jwks_uri: `${issuer}/none` })
    server.keys = []
    const at = server.answer
    server.answer = (request, response) => {
      if (request.url?.endsWith('/none') === true) response.writeHead(503).end()
      else at(request, response)
    }
    expect((await discover(issuer)).body.data).toMatchObject({
      authorizationEndpoint: null,
      keyIds: null,
      keysFault: 'response status 503',
    })
    server.keys = [jwkOf(provider.key)]
  })

  test.each([
    ['is about another issuer', { ...document, issuer: 'https://evil.test' }, 'https://evil.test'],
    ['has no issuer', { jwks_uri: server.url }, 'no issuer'],
    ['has no address of keys', { issuer }, 'no jwks_uri'],
    ['is a list', [document], 'no discovery document'],
    ['is no JSON', 'issuer:', 'not JSON'],
    ['is nested too deep', `${'['.repeat(40)}${']'.repeat(40)}`, 'nested too deep'],
  ])(
    'is refused with an error that names the field issuer if the discovery document %s',
    async (_what, served, reason) => {
      serve(served)
      const { status, body } = await discover(issuer)
      expect(status).toBe(400)
      expect(body.error?.cause).toMatchObject({
        field: 'issuer',
        reason: expect.stringContaining(reason) as string,
      })
    },
  )

  test('is refused for a value that is not an issuer URL', async () => {
    for (const asked of [
      '',
      7,
      undefined,
      `https://${'a'.repeat(3000)}.test`,
      'idp',
      'ftp://idp.test',
    ]) {
      expect((await discover(asked)).status).toBe(400)
    }
  })
})

interface Check {
  readonly check: string
  readonly state: string
  readonly reason: string | null
  readonly message: string | null
  readonly claim: string | null
  readonly found: string | null
  readonly expected: string | null
}
interface Report {
  readonly logsIn: boolean
  readonly enrolls: boolean
  readonly signer: { readonly id: string; readonly name: string } | null
  readonly identity: { readonly id: string; readonly name: string } | null
  readonly checks: readonly Check[]
  readonly claimNames: readonly string[]
}

async function testOf(token: string, signer?: string): Promise<Report> {
  const body = { token, ...(signer === undefined ? {} : { signerId: signer }) }
  const reply = await root.call('POST', `${management}/jwt-signer-setup/test`, body)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as unknown as Report
}

const failed = ({ checks }: Report): readonly string[] =>
  checks.filter(({ state }) => state === 'failed').map(({ check, reason }) => `${check} ${reason}`)
const unchecked = ({ checks }: Report): readonly string[] =>
  checks.filter(({ state }) => state === 'unchecked').map(({ check }) => check)

describe('the test of a token', () => {
  test('returns the result of every check, the claim that identifies the user, and the identity', async () => {
    const token = await provider.token('alice-id')
    const { checks, ...rest } = await testOf(`${token}\n`)
    expect(rest).toEqual({
      logsIn: true,
      enrolls: false,
      signer: { id: signerId, name: 'idp 1' },
      identity: { id: 'alice-id', name: 'Alice' },
      claimNames: ['iss', 'aud', 'sub', 'iat', 'exp'],
    })
    const none = { reason: null, message: null, claim: null, found: null, expected: null }
    const passed = (check: string, values: Partial<Check> = {}): Check => ({
      check,
      state: 'passed',
      ...none,
      ...values,
    })
    expect(checks).toEqual([
      passed('form'),
      passed('issuer', { claim: 'iss', found: provider.issuer, expected: provider.issuer }),
      passed('signerEnabled'),
      passed('key', { found: 'first' }),
      passed('algorithm', { found: 'ES256' }),
      passed('signature'),
      passed('audience', { claim: 'aud', found: 'flotilla', expected: 'flotilla' }),
      passed('time', { claim: 'exp', found: expect.stringMatching(/^\d{4}-.*Z$/) as string }),
      passed('claim', { claim: '/sub', found: 'alice-id' }),
      passed('identity', { claim: '/sub', found: 'alice-id', expected: 'id' }),
      passed('policy', { expected: 'default' }),
    ])
  })

  const faults: readonly (readonly [string, TokenWish, string, string])[] = [
    ['a wrong audience', { claims: { aud: 'other' } }, 'audience TOKEN_AUDIENCE', 'aud'],
    ['an expiry in the past', { claims: { exp: 1 } }, 'time TOKEN_EXPIRED', 'exp'],
    ['no expiry', { claims: { exp: undefined } }, 'time TOKEN_CLAIM_INVALID', 'exp'],
    ['a start in the future', { claims: { nbf: 4e9 } }, 'time TOKEN_NOT_YET_VALID', 'nbf'],
    ['a number as subject', { claims: { sub: 7 } }, 'claim TOKEN_CLAIM_MISSING', '/sub'],
    ['an unknown subject', { claims: { sub: 'nobody' } }, 'identity IDENTITY_UNKNOWN', '/sub'],
  ]
  test.each(faults)(
    'names the claim that makes a token with %s invalid',
    async (_what, wish, expected, claim) => {
      const report = await testOf(await provider.token('alice-id', wish))
      expect(failed(report)).toEqual([expected])
      expect(report.logsIn).toBe(false)
      expect(report.checks.find(({ state }) => state === 'failed')?.claim).toBe(claim)
    },
  )

  test('lists the checks that an earlier failure made impossible; the audience check shows the found and the expected value', async () => {
    const other = ecKey('other')
    const wish = { key: other, claims: { aud: 'elsewhere' } }
    const report = await testOf(await provider.token('alice-id', wish))
    expect(failed(report)).toEqual(['key TOKEN_KEY_UNKNOWN'])
    expect(unchecked(report)).toEqual([
      'algorithm',
      'signature',
      'audience',
      'time',
      'claim',
      'identity',
      'policy',
    ])
    expect(report.checks.find(({ check }) => check === 'audience')).toMatchObject({
      found: 'elsewhere',
      expected: 'flotilla',
    })
  })

  test('reports an invalid signature if another key with the same key ID signed the token', async () => {
    const forged = await provider.token('alice-id', { key: ecKey('first') })
    expect(failed(await testOf(forged))).toEqual(['signature TOKEN_SIGNATURE'])
  })

  test('reports a token that is malformed or too long, and an issuer that no signer has', async () => {
    expect(failed(await testOf('no token'))).toEqual(['form TOKEN_MALFORMED'])
    expect(failed(await testOf(`a.${'b'.repeat(30_000)}.c`))).toEqual(['form TOKEN_TOO_LONG'])
    const foreign = await provider.token('alice-id', { claims: { iss: 'https://else.test' } })
    expect(await testOf(foreign)).toMatchObject({ signer: null, identity: null, logsIn: false })
    expect(failed(await testOf(foreign))).toEqual(['issuer TOKEN_ISSUER_UNKNOWN'])
    expect(failed(await testOf(foreign, signerId))).toEqual(['issuer TOKEN_ISSUER_UNKNOWN'])
  })

  test('reports that the signer is disabled or has no audience', async () => {
    const disabled = await newSigner({ enabled: false, jwksEndpoint: server.url })
    const record = (await root.get(`${management}/external-jwt-signers/${disabled}`)).body.data
    const { issuer: iss } = record as unknown as { readonly issuer: string }
    const token = await provider.token('alice-id', { claims: { iss } })
    const report = await testOf(token)
    expect(failed(report)).toEqual(['signerEnabled TOKEN_ISSUER_UNKNOWN'])
    expect([unchecked(report), report.identity?.id, report.logsIn]).toEqual([[], 'alice-id', false])
    await patch('external-jwt-signers', disabled, { audience: '', enabled: true })
    const early = await testOf(token, disabled)
    expect(failed(early)).toEqual(['audience TOKEN_AUDIENCE'])
    expect(unchecked(early).slice(0, 3)).toEqual(['key', 'algorithm', 'signature'])
  })

  test('reports that the token would enroll an identity, or that the identity’s auth policy refuses the token', async () => {
    await patch('external-jwt-signers', signerId, { enrollToTokenEnabled: true })
    expect(await testOf(await provider.token('new'))).toMatchObject({
      logsIn: false,
      enrolls: true,
      identity: null,
    })
    await patch('external-jwt-signers', signerId, { enabled: false })
    const { enrolls } = await testOf(await provider.token('new'), signerId)
    expect(enrolls, 'with a disabled signer').toBe(false)
    await patch('external-jwt-signers', signerId, { enabled: true })
    await patch('external-jwt-signers', signerId, { enrollToTokenEnabled: false })
    const policy = await newPolicy('no tokens', { extJwt: { allowed: false, allowedSigners: [] } })
    await patch('identities', 'alice-id', { authPolicyId: policy })
    const report = await testOf(await provider.token('alice-id'))
    expect(failed(report)).toEqual(['policy METHOD_NOT_ALLOWED'])
    expect(report.identity).toEqual({ id: 'alice-id', name: 'Alice' })
    await patch('identities', 'alice-id', { authPolicyId: 'default' })
  })

  test('returns 404 for an unknown signer', async () => {
    const body = { token: 'x', signerId: 'none' }
    const reply = await root.call('POST', `${management}/jwt-signer-setup/test`, body)
    expect(reply.status).toBe(404)
  })
})

import { createPrivateKey, createPublicKey } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createRootAuthority } from '../../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../../src/pki/certificate.ts'
import type { LogInRefusalReason } from '../../../src/lib/refusal-reason.ts'
import type { RefusedWrite } from '../../../src/ports/audit.ts'
import { keyJwtAlgorithm } from '../../../src/pki/jwt-verifier.ts'
import { CallerOf, client, management, type Reply } from '../support/caller.ts'
import { OidcClient } from '../support/oidc.ts'
import { controllerWithProvider } from '../support/external-jwt.ts'
import { ecKey, edKey, jwkOf, rsaKey, type TokenWish } from '../../support/identity-provider.ts'

const { controller, server, provider, signerId, newSigner, newPolicy, patch, logIn } =
  await controllerWithProvider()

const HOUR_MS = 60 * 60_000
const refusals: RefusedWrite[] = []
controller.cluster.audit = {
  refused: (write) => refusals.push(write),
  applied: () => undefined,
  answered: () => undefined,
}
const sessionOf = (reply: Reply): Record<string, unknown> => {
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as Record<string, unknown>
}

/** Errors of the challenge by reason; any other reason is `invalid`. */
const challengeErrors: Readonly<Partial<Record<LogInRefusalReason, 'expired' | 'missing'>>> = {
  TOKEN_EXPIRED: 'expired',
  TOKEN_MALFORMED: 'missing',
}
const descriptions = {
  expired: 'token expired',
  invalid: 'token is invalid',
  missing: 'no matching token was provided',
} as const

describe('a log-in by an external JWT', () => {
  test.each([client, management])(
    'at %s opens a session for the identity that the token names',
    async (base) => {
      const reply = await logIn(await provider.token('alice-id'), base)
      expect(sessionOf(reply)).toMatchObject({
        identityId: 'alice-id',
        authenticatorId: `extJwtId:${signerId}`,
        authQueries: [],
      })
      const alice = new CallerOf(controller)
      alice.token = String(reply.headers['zt-session'])
      const own = await alice.get(`${base}/current-api-session`)
      expect(sessionOf(own)).toMatchObject({ identityId: 'alice-id' })
    },
  )

  test('finds the identity by the claim that the signer configures: by external ID if the signer uses external IDs, otherwise by ID', async () => {
    await patch('identities', 'alice-id', { externalId: 'alice@idp.test' })
    await patch('external-jwt-signers', signerId, {
      useExternalId: true,
      claimsProperty: '/contact/mail',
    })
    const claims = { contact: { mail: 'alice@idp.test' } }
    expect(sessionOf(await logIn(await provider.token('x', { claims })))).toMatchObject({
      identityId: 'alice-id',
    })
    expect((await logIn(await provider.token('alice-id'))).status).toBe(401)
    await patch('external-jwt-signers', signerId, { useExternalId: false, claimsProperty: 'sub' })
    expect((await logIn(await provider.token('alice-id'))).status).toBe(200)
  })

  const refused: readonly (readonly [
    what: string,
    subject: string,
    wish: TokenWish,
    reason: LogInRefusalReason,
    claim?: string,
  ])[] = [
    ['without an expiry', 'alice-id', { claims: { exp: undefined } }, 'TOKEN_CLAIM_INVALID', 'exp'],
    ['that has expired', 'alice-id', { nowMs: Date.UTC(2026, 0, 1) }, 'TOKEN_EXPIRED', 'exp'],
    [
      'that is not valid yet',
      'alice-id',
      { claims: { nbf: Date.UTC(2027, 0) / 1000 } },
      'TOKEN_NOT_YET_VALID',
      'nbf',
    ],
    [
      'that was issued in the future',
      'alice-id',
      { claims: { iat: Date.UTC(2027, 0) / 1000 } },
      'TOKEN_NOT_YET_VALID',
      'iat',
    ],
    [
      'whose issue time is not a number',
      'alice-id',
      { claims: { iat: 'yesterday' } },
      'TOKEN_CLAIM_INVALID',
      'iat',
    ],
    ['for another audience', 'alice-id', { claims: { aud: 'other' } }, 'TOKEN_AUDIENCE', 'aud'],
    ['for no audience', 'alice-id', { claims: { aud: undefined } }, 'TOKEN_AUDIENCE', 'aud'],
    [
      'from another issuer',
      'alice-id',
      { claims: { iss: 'https://idp.test/' } },
      'TOKEN_ISSUER_UNKNOWN',
      'iss',
    ],
    [
      'signed with a key that is not published',
      'alice-id',
      { key: rsaKey('unpublished') },
      'TOKEN_KEY_UNKNOWN',
    ],
    [
      'signed with a key of another type under a known key id',
      'alice-id',
      { key: rsaKey('first') },
      'TOKEN_ALGORITHM',
    ],
    [
      'signed with another key under a known key id',
      'alice-id',
      { key: ecKey('first') },
      'TOKEN_SIGNATURE',
    ],
    ['without a key id', 'alice-id', { header: { kid: undefined } }, 'TOKEN_MALFORMED'],
    ['whose subject matches no identity', 'nobody-id', {}, 'IDENTITY_UNKNOWN', 'sub'],
    ['whose subject is a disabled identity', 'mallory-id', {}, 'IDENTITY_DISABLED'],
    ['whose claim is a number', 'x', { claims: { sub: 1 } }, 'TOKEN_CLAIM_MISSING', 'sub'],
    ['whose claim is empty', '', {}, 'TOKEN_CLAIM_MISSING', 'sub'],
  ]
  test.each(refused.map(([what, ...rest]) => [what, rest] as const))(
    'is refused for a JWT %s; the challenge says only expired, missing or invalid, and the audit entry contains the reason',
    async (_what, [subject, wish, reason, claim = '']) => {
      const token = await provider.token(subject, wish)
      const reply = await logIn(token)
      const error = challengeErrors[reason] ?? 'invalid'
      expect(reply.status).toBe(401)
      expect(reply.body.error).toEqual({
        code: 'UNAUTHORIZED',
        message: expect.any(String) as string,
        requestId: expect.any(String) as string,
      })
      expect(reply.headers['www-authenticate']).toBe(
        `Bearer realm="openziti-primary-ext-jwt" error="${error}" error_description="${descriptions[error]}" id="${signerId}" issuer="https://idp.test"`,
      )
      const isOfSigner = reason !== 'TOKEN_MALFORMED' && reason !== 'TOKEN_ISSUER_UNKNOWN'
      const { refusal } = refusals.at(-1) ?? {}
      expect(refusal).toEqual({
        reason,
        ...(isOfSigner ? { signerId } : {}),
        ...(claim === '' ? {} : { claim }),
      })
    },
  )

  test('is refused without a token', async () => {
    const caller = new CallerOf(controller)
    const reply = await caller.call('POST', `${client}/authenticate?method=ext-jwt`, {})
    expect(reply.status).toBe(401)
    expect(String(reply.headers['www-authenticate'])).toContain('error="missing"')
  })

  test('accepts a JWT signed with an Ed25519 key', async () => {
    const key = edKey('ed')
    server.keys = [...server.keys, jwkOf(key)]
    // The controller requests an unknown key from the provider at most once a second.
    controller.clock.advance(1000)
    for (const alg of ['EdDSA', 'Ed25519']) {
      const token = await provider.token('alice-id', { key, header: { alg } })
      expect((await logIn(token)).status, alg).toBe(200)
    }
  })

  test('accepts a JWT with 200 groups, and reports a JWT that exceeds the limit as too long', async () => {
    const groups = Array.from(
      { length: 200 },
      (_, at) => `cn=group-${at},ou=departments,dc=example,dc=org`,
    )
    const long = await provider.token('alice-id', { claims: { groups } })
    expect(long.length).toBeGreaterThan(12 * 1024)
    expect((await logIn(long)).status).toBe(200)
    const longer = await provider.token('alice-id', { claims: { groups: [...groups, ...groups] } })
    expect((await logIn(longer)).status).toBe(401)
    expect(refusals.at(-1)?.refusal).toEqual({ reason: 'TOKEN_TOO_LONG' })
  })

  test('accepts an audience list that contains the signer’s audience', async () => {
    const claims = { aud: ['other', provider.audience] }
    expect((await logIn(await provider.token('alice-id', { claims }))).status).toBe(200)
  })

  test('tolerates a small difference between the clocks of the provider and the controller', async () => {
    const nowMs = controller.clock.nowMs()
    const ended = { claims: { exp: Math.floor(nowMs / 1000) - 20 } }
    expect((await logIn(await provider.token('alice-id', ended))).status).toBe(200)
    const early = { nowMs: nowMs + 20_000 }
    expect((await logIn(await provider.token('alice-id', early))).status).toBe(200)
  })

  test('is refused if the auth policy of the identity does not allow external JWTs, or not those of this signer', async () => {
    const token = await provider.token('alice-id')
    const other = await newSigner({ jwksEndpoint: server.url })
    for (const [name, extJwt, status] of [
      ['none', { allowed: false, allowedSigners: [] }, 401],
      ['other', { allowed: true, allowedSigners: [other] }, 401],
      ['this', { allowed: true, allowedSigners: [other, signerId] }, 200],
    ] as const) {
      await patch('identities', 'alice-id', { authPolicyId: await newPolicy(name, { extJwt }) })
      expect((await logIn(token)).status, name).toBe(status)
    }
    await patch('identities', 'alice-id', { authPolicyId: 'default' })
  })

  test('completes the authorization code flow without another factor', async () => {
    const oidc = new OidcClient(controller)
    const authorization = `Bearer ${await provider.token('alice-id')}`
    const id = await oidc.begin()
    const step = await oidc.send('POST', '/oidc/login/ext-jwt', { id }, { authorization })
    const redeemed = await oidc.redeem(await oidc.codeOf(step))
    expect(redeemed.status, redeemed.text).toBe(200)
    const token = String(redeemed.json['access_token'])
    expect(await oidc.statusAt(`${client}/current-identity`, token)).toBe(200)
  })

  test('opens a session that ends when its signer is disabled, and stays ended if the signer is enabled again', async () => {
    const reply = await logIn(await provider.token('alice-id'))
    const alice = new CallerOf(controller)
    alice.token = String(reply.headers['zt-session'])
    expect((await alice.get(`${client}/current-identity`)).status).toBe(200)
    await patch('external-jwt-signers', signerId, { enabled: false })
    expect((await alice.get(`${client}/current-identity`)).status).toBe(401)
    expect((await logIn(await provider.token('alice-id'))).status).toBe(401)
    await patch('external-jwt-signers', signerId, { enabled: true })
    expect((await alice.get(`${client}/current-identity`)).status).toBe(401)
  })

  test('makes the controller fetch the keys of the signer again for an unknown key id, but not for each token', async () => {
    controller.clock.advance(60_000)
    const next = rsaKey('second')
    server.keys = [jwkOf(next)]
    const before = server.requests
    expect((await logIn(await provider.token('alice-id', { key: next }))).status).toBe(200)
    expect(server.requests).toBe(before + 1)
    for (const kid of ['a', 'b', 'c']) {
      const unknown = { header: { kid } }
      expect((await logIn(await provider.token('alice-id', unknown))).status).toBe(401)
    }
    expect(server.requests).toBe(before + 1)
    // The provider no longer publishes the first key.
    expect((await logIn(await provider.token('alice-id'))).status).toBe(401)
    provider.key = next
  })
})

describe('an external JWT signer with a certificate', () => {
  test('verifies tokens with the key and kid of its certificate while the certificate is valid', async () => {
    const nowMs = controller.clock.nowMs()
    const { certificatePem, privateKeyPem } = await createRootAuthority({
      commonName: 'provider',
      validity: { notBeforeMs: nowMs - 60_000, notAfterMs: nowMs + HOUR_MS },
    })
    const issuer = 'https://by-certificate.test'
    await newSigner({ issuer, certPem: certificatePem })
    const kid = parseCertificate(certificatePem).sha1
    const privateKey = createPrivateKey(privateKeyPem)
    const algorithm = keyJwtAlgorithm(privateKey)
    const key = { kid, algorithm, privateKey, publicKey: createPublicKey(privateKey) }
    const claims = { iss: issuer, exp: Math.floor(nowMs / 1000) + 24 * 3600 }
    const token = await provider.token('alice-id', { key, claims })
    expect((await logIn(token)).status).toBe(200)
    const other = await provider.token('alice-id', { key, claims, header: { kid: 'other' } })
    expect((await logIn(other)).status).toBe(401)
    controller.clock.advance(HOUR_MS + 1000)
    expect((await logIn(token)).status).toBe(401)
  })
})

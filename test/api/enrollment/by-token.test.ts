import { beforeEach, describe, expect, test } from 'vitest'
import { parseCertificates } from '../../../src/pki/certificate.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../../src/pki/authority/certificate-request.ts'
import { CallerOf, client, management, type Reply } from '../support/caller.ts'
import { controllerWithProvider } from '../support/external-jwt.ts'

const { controller, server, provider, signerId, root, newSigner, newPolicy, patch, logIn } =
  await controllerWithProvider()
const open = { enrollToCertEnabled: true, enrollToTokenEnabled: true, useExternalId: true }
let serial = 0

beforeEach(() => patch('external-jwt-signers', signerId, open))

const newRequest = (): Promise<string> =>
  createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id: 'anybody' })

/** A name that the provider knows and the controller does not. */
function somebody(): string {
  serial += 1
  return `person-${serial}@idp.test`
}

async function enroll(
  token: string | null,
  body: object = {},
  headers: Record<string, string> = {},
  path = '/enroll/token',
): Promise<Reply> {
  const shown = token === null ? {} : { authorization: `Bearer ${token}` }
  const sent = { ...shown, ...headers }
  return new CallerOf(controller).call('POST', `${client}${path}`, body, sent)
}

async function identityOf(externalId: string): Promise<Record<string, unknown>> {
  const filter = encodeURIComponent(`externalId="${externalId}"`)
  const { body } = await root.get(`${management}/identities?filter=${filter}`)
  const [found] = body.data as Record<string, unknown>[]
  expect(found).toBeDefined()
  return found ?? {}
}

describe('an enrollment by an external JWT', () => {
  test('creates an identity that authenticates with JWTs', async () => {
    const who = somebody()
    const reply = await enroll(await provider.token(who))
    expect(reply.status, reply.text).toBe(200)
    expect(Object.keys(reply.body.data as object)).toEqual(['controllers'])
    expect(await identityOf(who)).toMatchObject({
      name: who,
      externalId: who,
      typeId: 'Default',
      isAdmin: false,
      authPolicyId: 'default',
      roleAttributes: [],
      authenticators: {},
    })
    expect((await logIn(await provider.token(who))).status).toBe(200)
  })

  test('uses the name and the role attributes in the claims that the signer configures, and the auth policy of the signer; invalid claims are refused', async () => {
    const policyId = await newPolicy('of enrolled ones', {})
    await patch('external-jwt-signers', signerId, {
      enrollNameClaimsSelector: '/profile/name',
      enrollAttributeClaimsSelector: 'groups',
      enrollAuthPolicyId: policyId,
    })
    const who = somebody()
    const claims = { profile: { name: 'Alice' }, groups: ['staff', 'pilots', 'staff'] }
    expect((await enroll(await provider.token(who, { claims }))).status).toBe(200)
    expect(await identityOf(who)).toMatchObject({
      // Another identity has this name already.
      name: 'Alice000001',
      roleAttributes: ['pilots', 'staff'],
      authPolicyId: policyId,
    })
    const noName = 'the token lacks the claim of the name of the identity'
    const groups = 'role attributes in the token'
    for (const [wrong, message] of [
      [{ groups: ['staff'] }, noName],
      [{ profile: { name: 7 } }, noName],
      [{ profile: { name: '' } }, noName],
      [{ profile: { name: 'x' }, groups: [['staff']] }, `${groups} must be strings`],
      [{ profile: { name: 'x' }, groups: { staff: true } }, `${groups} must be strings`],
      [{ profile: { name: 'x' }, groups: [''] }, `${groups} must not be empty`],
      [{ profile: { name: 'x' }, groups: '#staff' }, `${groups} must not begin with # or @`],
      [
        { profile: { name: 'x' }, groups: ['x'.repeat(513)] },
        `${groups} must have at most 512 characters`,
      ],
      [
        { profile: { name: 'x' }, groups: Array.from({ length: 1025 }, (_, at) => `g${at}`) },
        `${groups} are more than 1024`,
      ],
    ] as const) {
      const refused = await enroll(await provider.token(somebody(), { claims: wrong }))
      expect(refused.status, JSON.stringify(wrong)).toBe(400)
      expect(refused.body.error).toMatchObject({
        code: 'INVALID_ENROLLMENT_TOKEN',
        cause: { message },
      })
    }
    await patch('external-jwt-signers', signerId, {
      enrollNameClaimsSelector: '/sub',
      enrollAttributeClaimsSelector: '',
      enrollAuthPolicyId: 'default',
    })
  })

  test.each(['/enroll/token', '/enroll?method=token'])(
    'at %s issues a certificate for the key in the certificate request',
    async (path) => {
      const who = somebody()
      const body = { clientCsr: await newRequest() }
      const reply = await enroll(await provider.token(who), body, {}, path)
      expect(reply.status, reply.text).toBe(200)
      const { cert, ca } = reply.body.data as { cert: string; ca: string }
      const [leaf] = parseCertificates(cert)
      const { id } = await identityOf(who)
      expect(leaf.uris).toEqual([`spiffe://test.internal/identity/${String(id)}`])
      expect(ca).toContain('BEGIN CERTIFICATE')
      expect(await identityOf(who)).toMatchObject({
        authenticators: { cert: { fingerprint: leaf.sha1 } },
      })
    },
  )

  test('is refused for an external ID that has enrolled before', async () => {
    const who = somebody()
    expect((await enroll(await provider.token(who))).status).toBe(200)
    const again = await enroll(await provider.token(who))
    expect(again.status).toBe(409)
    expect(again.body.error?.code).toBe('ENROLLMENT_IDENTITY_ALREADY_ENROLLED')
  })

  test('is refused without a JWT, with an invalid JWT, and with a JWT from another signer than the requested one', async () => {
    const other = await newSigner({ ...open, jwksEndpoint: server.url })
    const good = await provider.token(somebody())
    const replies = [
      await enroll(null),
      await enroll('x.y.z'),
      await enroll(await provider.token(somebody(), { claims: { aud: 'x' } })),
      await enroll(good, {}, { 'ziti-token-issuer-id': other }),
    ]
    for (const { status, body } of replies) {
      expect(status).toBe(400)
      expect(body.error?.code).toBe('INVALID_ENROLLMENT_TOKEN')
    }
    expect((await enroll(good, {}, { 'ziti-token-issuer-id': signerId })).status).toBe(200)
  })

  test('is refused if the signer or its auth policy does not allow it', async () => {
    const token = await provider.token(somebody())
    const clientCsr = await newRequest()
    for (const [fields, body] of [
      [{ enrollToTokenEnabled: false }, {}],
      [{ enrollToCertEnabled: false }, { clientCsr }],
      [{ useExternalId: false }, {}],
    ] as const) {
      await patch('external-jwt-signers', signerId, { ...open, ...fields })
      const refused = await enroll(token, body)
      expect(refused.status, JSON.stringify(fields)).toBe(409)
      expect(refused.body.error?.code).toBe('INVALID_ENROLLMENT_NOT_ALLOWED')
    }
    const policyId = await newPolicy('no tokens any more', {})
    await patch('external-jwt-signers', signerId, { ...open, enrollAuthPolicyId: policyId })
    await patch('auth-policies', policyId, { primary: { extJwt: { allowed: false } } })
    const refused = await enroll(token)
    expect(refused.status).toBe(409)
    expect(refused.body.error?.code).toBe('INVALID_ENROLLMENT_NOT_ALLOWED')
    await patch('external-jwt-signers', signerId, { enrollAuthPolicyId: 'default' })
    expect((await enroll(token)).status).toBe(200)
  })

  test('creates nothing for an invalid certificate request', async () => {
    const who = somebody()
    const before = controller.cluster.proposals.length
    for (const clientCsr of ['', 'no request']) {
      const refused = await enroll(await provider.token(who), { clientCsr })
      expect(refused.status).toBe(400)
      expect(refused.body.error?.code).toBe('COULD_NOT_PROCESS_CSR')
    }
    expect(controller.cluster.proposals.length).toBe(before)
  })

  test('is validated again with the current signer when its log entry is applied', async () => {
    const { cluster } = controller
    const propose = cluster.propose.bind(cluster)
    cluster.propose = async (input) => {
      cluster.propose = propose
      await patch('external-jwt-signers', signerId, { enrollToTokenEnabled: false })
      return propose(input)
    }
    const refused = await enroll(await provider.token(somebody()))
    expect(refused.status).toBe(409)
    expect(refused.body.error?.code).toBe('INVALID_ENROLLMENT_NOT_ALLOWED')
  })
})

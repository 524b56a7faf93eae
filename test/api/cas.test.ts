import { decodeJwt, decodeProtectedHeader } from 'jose'
import { describe, expect, test } from 'vitest'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { formatUuid, newUuidv7, parseUuid } from '../../src/lib/text/uuid.ts'
import { clientCertificate, newCa } from '../support/authorities.ts'
import { CallerOf, management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { makeAuthority, newRsaKey } from '../pki/support/fixtures.ts'

const { controller, root } = await controllerForFile()

const cas = `${management}/cas`
const hour = 60 * 60_000
let serial = 0
const idOf = (reply: Reply): string => {
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}
const nowMs = (): number => controller.clock.nowMs()
const flags = {
  isAuthEnabled: true,
  isAutoCaEnrollmentEnabled: false,
  isOttCaEnrollmentEnabled: true,
}

interface Made {
  readonly id: string
  readonly key: CertificateWithKey
  readonly token: string
}

function body(certPem: string, more: object = {}): Record<string, unknown> {
  serial += 1
  return { name: `ca ${serial}`, certPem, identityRoles: ['staff'], ...flags, ...more }
}
async function newCaRecord(more: object = {}): Promise<Made> {
  const key = await newCa(`authority ${serial}`, nowMs())
  const id = idOf(await root.call('POST', cas, body(key.certificatePem, more)))
  return { id, key, token: String((await shown(id))['verificationToken']) }
}
const shown = async (id: string): Promise<Record<string, unknown>> =>
  (await root.get(`${cas}/${id}`)).body.data as Record<string, unknown>
const text = { 'content-type': 'text/plain' }
const verify = (id: string, pem: string, headers: object = {}): Promise<Reply> =>
  root.call('POST', `${cas}/${id}/verify`, pem, { ...text, ...headers })
const proof = ({ key, token }: Made): Promise<string> => clientCertificate(key, token, nowMs())

test('a CA is refused if certPem contains more than one certificate', async () => {
  const [one, other] = [await newCa('one', nowMs()), await newCa('other', nowMs())]
  const both = `${one.certificatePem}${other.certificatePem}`
  const reply = await root.call('POST', cas, body(both))
  expect(reply.status).toBe(400)
  expect(reply.body.error?.cause).toMatchObject({
    field: 'certPem',
    reason: 'certPem must be one certificate; create a CA for each',
  })
})

describe('CA states (state, action: result)', () => {
  test('none, create: the CA is unverified (`isVerified` false) with a generated `verificationToken`, and its certificates are refused as authenticators', async () => {
    const made = await newCaRecord()
    const detail = await shown(made.id)
    expect(detail['isVerified']).toBe(false)
    expect(parseUuid(made.token)).not.toBeNull()
    expect(detail['_links']).toMatchObject({ verify: { href: `./cas/${made.id}/verify` } })
    const identity = { name: `early ${serial}`, type: 'User', isAdmin: false }
    const identityId = idOf(await root.call('POST', `${management}/identities`, identity))
    const certPem = await clientCertificate(made.key, 'early', nowMs())
    const credential = { identityId, method: 'cert', certPem }
    const refused = await root.call('POST', `${management}/authenticators`, credential)
    expect(refused.status).toBe(400)
    expect(refused.body.error?.cause?.['field']).toBe('certPem')
  })

  test('none, create with a certificate whose key is too weak to verify signatures: refused with the field of the certificate', async () => {
    const weak = makeAuthority('bits 1024', { keys: newRsaKey(1024) })
    const reply = await root.call('POST', cas, body(weak.certificate.pem))
    expect(reply.status).toBe(400)
    expect(reply.body.error?.cause).toMatchObject({
      field: 'certPem',
      reason: expect.stringMatching(
        /RSA of 2,048 to 8,192 bits.*; this one is RSA of 1024 bits/,
      ) as string,
    })
    const strong = makeAuthority('bits 2048', { keys: newRsaKey(2048) })
    idOf(await root.call('POST', cas, body(strong.certificate.pem)))
  })

  test('unverified, verify with a PEM certificate that the CA signed and whose common name equals `verificationToken`: verified', async () => {
    const made = await newCaRecord()
    const reply = await verify(made.id, await proof(made))
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data).toEqual({})
    const detail = await shown(made.id)
    expect(detail['isVerified']).toBe(true)
    expect(detail).not.toHaveProperty('verificationToken')
    expect(detail['_links']).not.toHaveProperty('verify')
  })

  test('verified, delete: the CA is deleted together with its certificate authenticators', async () => {
    const made = await newCaRecord()
    await verify(made.id, await proof(made))
    const identity = { name: `held ${serial}`, type: 'User', isAdmin: false }
    const identityId = idOf(await root.call('POST', `${management}/identities`, identity))
    const certPem = await clientCertificate(made.key, 'held', nowMs())
    const credential = { identityId, method: 'cert', certPem }
    const id = idOf(await root.call('POST', `${management}/authenticators`, credential))
    expect((await root.call('DELETE', `${cas}/${made.id}`)).status).toBe(200)
    expect((await root.get(`${management}/authenticators/${id}`)).status).toBe(404)
    expect((await root.get(`${management}/identities/${identityId}`)).body.data).toMatchObject({
      authenticators: {},
    })
    expect((await root.get(`${cas}/${made.id}`)).status).toBe(404)
  })
})

test('re-enrolling a certificate authenticator that a CA issued creates an ottca enrollment for that CA', async () => {
  const made = await newCaRecord()
  await verify(made.id, await proof(made))
  const identity = { name: `again ${serial}`, type: 'User', isAdmin: false }
  const identityId = idOf(await root.call('POST', `${management}/identities`, identity))
  const certPem = await clientCertificate(made.key, 'again', nowMs())
  const credential = { identityId, method: 'cert', certPem }
  const authenticators = `${management}/authenticators`
  const url = `${authenticators}/${idOf(await root.call('POST', authenticators, credential))}`
  const expiresAt = new Date(nowMs() + hour).toISOString()
  const enrollment = idOf(await root.call('POST', `${url}/re-enroll`, { expiresAt }))
  const { body: shownAs } = await root.get(`${management}/enrollments/${enrollment}`)
  expect(shownAs.data).toMatchObject({ method: 'ottca', caId: made.id, identityId, expiresAt })
  expect((await root.get(url)).status).toBe(404)
})

describe('verifying a CA', () => {
  test('returns 409 the second time, but a repetition with the same request id succeeds', async () => {
    const made = await newCaRecord()
    const pem = await proof(made)
    const headers = { 'net-request-id': formatUuid(newUuidv7(nowMs())) }
    expect((await verify(made.id, pem, headers)).status).toBe(200)
    expect((await verify(made.id, pem, headers)).status).toBe(200)
    for (const again of [pem, 'nothing']) {
      const reply = await verify(made.id, again)
      expect(reply.status).toBe(409)
      expect(reply.body.error?.code).toBe('CA_ALREADY_VERIFIED')
    }
  })

  test('is refused for a certificate that is malformed, expired or of another CA, or whose common name is not the CA’s verificationToken', async () => {
    const made = await newCaRecord()
    const other = await newCaRecord()
    const pem = await proof(made)
    const validity = { notBeforeMs: nowMs() - 2 * hour, notAfterMs: nowMs() - hour }
    for (const [code, sent] of [
      ['COULD_NOT_PARSE_BODY', ' '],
      ['COULD_NOT_PARSE_BODY', 'nothing'],
      ['COULD_NOT_PARSE_BODY', pem.slice(0, 200)],
      ['EXPECTED_PEM_CERTIFICATE', made.key.privateKeyPem],
      ['COULD_NOT_PARSE_DER_BLOCK', pem.replace(/\n[^-\n]{20}/, '\n')],
      ['INVALID_COMMON_NAME', await clientCertificate(made.key, other.token, nowMs())],
      ['CERTIFICATE_FAILED_VALIDATION', await clientCertificate(other.key, made.token, nowMs())],
      ['CERTIFICATE_FAILED_VALIDATION', await clientCertificate(made.key, made.token, validity)],
    ] as const) {
      const reply = await verify(made.id, sent)
      expect(reply.status, code).toBe(400)
      expect(reply.body.error?.code).toBe(code)
    }
    expect((await shown(made.id))['isVerified']).toBe(false)
    expect((await verify('nope', pem)).status).toBe(404)
  })

  test('accepts only a body of the type text/plain and of limited size', async () => {
    const made = await newCaRecord()
    const pem = await proof(made)
    const json = await root.call('POST', `${cas}/${made.id}/verify`, JSON.stringify(pem))
    expect(json.status).toBe(415)
    const charset = { 'content-type': 'text/plain; charset=utf-8' }
    expect((await verify(made.id, 'x'.repeat(70_000))).status).toBe(413)
    expect((await verify(made.id, pem, charset)).status).toBe(200)
  })
})

describe('a CA', () => {
  test('has OpenZiti’s defaults and the fingerprint of its certificate', async () => {
    const { id, key } = await newCaRecord()
    expect(await shown(id)).toMatchObject({
      identityNameFormat: '[caName]-[commonName]',
      identityRoles: ['staff'],
      fingerprint: parseCertificate(key.certificatePem).sha1,
      certPem: parseCertificate(key.certificatePem).pem,
      ...flags,
    })
    expect(await shown(id)).not.toHaveProperty('externalIdClaim')
  })

  test('links to its enrollment token while automatic enrollment is enabled', async () => {
    const { id } = await newCaRecord({ isAutoCaEnrollmentEnabled: true })
    expect((await shown(id))['_links']).toMatchObject({ jwt: { href: `./cas/${id}/jwt` } })
    await root.call('PATCH', `${cas}/${id}`, { isAutoCaEnrollmentEnabled: false })
    expect((await shown(id))['_links']).not.toHaveProperty('jwt')
  })

  test('cannot be created without a CA certificate', async () => {
    const key = await newCa('issuer', nowMs())
    const leaf = await clientCertificate(key, 'leaf', nowMs())
    const notCa = await root.call('POST', cas, body(leaf))
    expect(notCa.status).toBe(400)
    expect(notCa.body.error?.code).toBe('CERTIFICATE_IS_NOT_CA')
    for (const certPem of ['nothing', key.privateKeyPem, leaf.replace(/\n[^-\n]{20}/, '\n')]) {
      const reply = await root.call('POST', cas, body(certPem))
      expect(reply.body.error).toMatchObject({
        code: 'COULD_NOT_VALIDATE',
        cause: { field: 'certPem' },
      })
    }
  })

  test('needs a certificate and a name that no other CA has', async () => {
    const { key } = await newCaRecord({ name: 'the only one' })
    const twice = await root.call('POST', cas, body(key.certificatePem))
    expect(twice.status).toBe(400)
    expect(twice.body.error?.cause?.['field']).toBe('certPem')
    const { id } = await newCaRecord()
    const renamed = await root.call('PATCH', `${cas}/${id}`, { name: 'the only one' })
    expect(renamed.body.error?.cause?.['field']).toBe('name')
  })

  test('keeps its certificate and its verification when it is replaced', async () => {
    const made = await newCaRecord()
    await verify(made.id, await proof(made))
    const before = await shown(made.id)
    const { certPem, ...rest } = body((await newCa('x', nowMs())).certificatePem)
    const missing = await root.call('PUT', `${cas}/${made.id}`, { ...rest, certPem })
    expect(missing.body.error?.cause?.['field']).toBe('identityNameFormat')
    const whole = { ...rest, certPem, identityNameFormat: '', isVerified: false }
    const reply = await root.call('PUT', `${cas}/${made.id}`, whole)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.meta?.ignoredFields).toEqual(['certPem', 'isVerified'])
    const { fingerprint, certPem: kept } = before
    expect(await shown(made.id)).toMatchObject({
      fingerprint,
      certPem: kept,
      isVerified: true,
      identityNameFormat: '[caName]-[commonName]',
    })
  })

  test('returns the token for the enrollment of its clients even before it is verified', async () => {
    const { id } = await newCaRecord()
    const reply = await root.get(`${cas}/${id}/jwt`, { accept: 'application/json' })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.headers['content-type']).toBe('application/jwt')
    expect(decodeJwt(reply.text)).toEqual({
      iss: 'https://localhost:1280/',
      sub: id,
      jti: id,
      aud: ['openziti-enroller'],
      em: 'ca',
      ctrls: null,
    })
    expect(decodeProtectedHeader(reply.text)).toMatchObject({ alg: 'ES256', typ: 'JWT' })
    expect(await controller.parts.jwt.verify(reply.text)).not.toBeNull()
    expect((await root.get(`${cas}/nope/jwt`)).status).toBe(404)
  })

  test('is not accessible to an identity without permissions', async () => {
    const made = await newCaRecord()
    const alice = new CallerOf(controller)
    alice.token = controller.openSession('alice-id')
    for (const [method, path] of [
      ['GET', ''],
      ['GET', `/${made.id}`],
      ['GET', `/${made.id}/jwt`],
      ['DELETE', `/${made.id}`],
    ] as const) {
      expect((await alice.call(method, `${cas}${path}`)).status).toBe(401)
    }
    const sent = await alice.call('POST', `${cas}/${made.id}/verify`, await proof(made), text)
    expect(sent.status).toBe(401)
  })
})

describe('the external id claim of a CA', () => {
  const claim = {
    index: 0,
    location: 'SAN_URI',
    matcher: 'SCHEME',
    matcherCriteria: 'spiffe',
    parser: 'SPLIT',
    parserCriteria: '/',
  }

  test('is stored with all its fields, and refused if one of them is missing', async () => {
    const { id } = await newCaRecord({ externalIdClaim: claim })
    expect((await shown(id))['externalIdClaim']).toEqual(claim)
    for (const name of Object.keys(claim)) {
      const { certificatePem } = await newCa('x', nowMs())
      const less = { ...claim, [name]: undefined }
      const reply = await root.call('POST', cas, body(certificatePem, { externalIdClaim: less }))
      expect(reply.body.error?.cause?.['field']).toBe(`externalIdClaim.${name}`)
    }
  })

  test.each([
    ['matcher', { location: 'COMMON_NAME' }],
    ['matcher', { location: 'SAN_EMAIL' }],
    ['matcher', { matcher: 'PREFIX' }],
    ['matcher', { matcher: 'SUFFIX' }],
    ['matcher', { matcher: 'SOME' }],
    ['matcherCriteria', { matcherCriteria: '' }],
    ['matcherCriteria', { location: 'COMMON_NAME', matcher: 'PREFIX', matcherCriteria: '' }],
    ['parserCriteria', { parserCriteria: '' }],
    ['index', { index: -1 }],
    ['location', { location: 'SAN_DNS' }],
  ])('is refused, and the error names the field %s, for the change %j', async (field, change) => {
    const { certificatePem } = await newCa('x', nowMs())
    const externalIdClaim = { ...claim, ...change }
    const reply = await root.call('POST', cas, body(certificatePem, { externalIdClaim }))
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe(`externalIdClaim.${field}`)
  })

  test('is removed by the request that ziti edge update ca --clear-external-id-claim sends', async () => {
    const { id } = await newCaRecord({ externalIdClaim: claim })
    const cleared = await root.call('PATCH', `${cas}/${id}`, { identityRoles: null })
    expect(cleared.status, cleared.text).toBe(200)
    const left = await shown(id)
    expect(left).not.toHaveProperty('externalIdClaim')
    expect(left).toMatchObject({ identityRoles: ['staff'] })
  })

  test('is kept by a patch that omits the claim, removed by null, and merged with a partial value', async () => {
    const { id } = await newCaRecord({ externalIdClaim: claim })
    const patch = (change: object): Promise<Reply> => root.call('PATCH', `${cas}/${id}`, change)
    expect((await patch({ externalIdClaim: {} })).status).toBe(200)
    expect((await shown(id))['externalIdClaim']).toEqual(claim)
    const change = { externalIdClaim: { parserCriteria: ':', index: 2, matcher: null } }
    expect((await patch(change)).status).toBe(200)
    expect((await shown(id))['externalIdClaim']).toEqual({
      ...claim,
      parserCriteria: ':',
      index: 2,
    })
    const broken = await patch({ externalIdClaim: { location: 'COMMON_NAME' } })
    expect(broken.body.error?.cause?.['field']).toBe('externalIdClaim.matcher')
    serial += 1
    expect((await patch({ name: `renamed ${serial}` })).status).toBe(200)
    expect((await shown(id))['externalIdClaim']).toMatchObject({ parserCriteria: ':', index: 2 })
    for (const kept of [{}, { identityRoles: null, name: `again ${serial}` }, { tags: null }]) {
      expect((await patch(kept)).status).toBe(200)
      expect(await shown(id)).toHaveProperty('externalIdClaim')
    }
    expect((await patch({ externalIdClaim: null })).status).toBe(200)
    expect(await shown(id)).not.toHaveProperty('externalIdClaim')
    const none = await patch({ externalIdClaim: { index: 1 } })
    expect(none.body.error?.cause?.['field']).toBe('externalIdClaim.location')
    expect((await patch({ externalIdClaim: { location: 'COMMON_NAME' } })).status).toBe(200)
    expect((await shown(id))['externalIdClaim']).toMatchObject({
      location: 'COMMON_NAME',
      matcher: 'ALL',
      parser: 'NONE',
    })
  })
})

import { describe, expect, test } from 'vitest'
import { parseCertificate } from '../../src/pki/certificate.ts'
import { newCa } from '../support/authorities.ts'
import { CallerOf, client, management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { makeAuthority, newRsaKey } from '../pki/support/fixtures.ts'

const { controller, root } = await controllerForFile()

const signers = `${management}/external-jwt-signers`
let serial = 0
const idOf = (reply: Reply): string => {
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}
function body(more: object): Record<string, unknown> {
  serial += 1
  const name = `signer ${serial}`
  return { name, issuer: `https://issuer${serial}.test`, audience: 'us', enabled: true, ...more }
}
const create = async (more: object): Promise<Reply> => root.call('POST', signers, body(more))
const shown = async (id: string): Promise<Record<string, unknown>> =>
  (await root.get(`${signers}/${id}`)).body.data as Record<string, unknown>
const certificate = async (): Promise<string> =>
  (await newCa('signer of tokens', controller.clock.nowMs())).certificatePem
const jwksEndpoint = 'https://issuer.test/keys'

describe('an external JWT signer', () => {
  test('with a certificate shows the fields of the certificate, and has the certificate’s fingerprint as kid by default', async () => {
    const certPem = await certificate()
    const { sha1, notBeforeMs, notAfterMs } = parseCertificate(certPem)
    const id = idOf(await create({ certPem }))
    expect(await shown(id)).toMatchObject({
      commonName: 'signer of tokens',
      fingerprint: sha1,
      kid: sha1,
      notBefore: new Date(notBeforeMs).toISOString(),
      notAfter: new Date(notAfterMs).toISOString(),
      jwksEndpoint: null,
    })
    const other = idOf(await create({ certPem: await certificate(), kid: 'mine' }))
    expect(await shown(other)).toMatchObject({ kid: 'mine' })
  })

  test('has OpenZiti’s defaults', async () => {
    const id = idOf(await create({ jwksEndpoint }))
    expect(await shown(id)).toMatchObject({
      claimsProperty: '/sub',
      useExternalId: false,
      targetToken: 'ACCESS',
      enrollNameClaimsSelector: '/sub',
      enrollAuthPolicyId: 'default',
      scopes: null,
      clientId: null,
      externalAuthUrl: null,
      kid: null,
      certPem: null,
      jwksEndpoint,
      fingerprint: null,
      notBefore: null,
      notAfter: null,
    })
  })

  test('is refused for a certificate whose key cannot verify tokens', async () => {
    const { certificate: weak } = makeAuthority('bits 1024', { keys: newRsaKey(1024) })
    const reply = await create({ certPem: weak.pem })
    expect(reply.status).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe('certPem')
  })

  test('has either certPem or jwksEndpoint, not both', async () => {
    const certPem = await certificate()
    expect((await create({})).status).toBe(400)
    const both = await create({ certPem, jwksEndpoint })
    expect(both.status).toBe(400)
    const id = idOf(await create({ jwksEndpoint }))
    const added = await root.call('PATCH', `${signers}/${id}`, { certPem })
    expect(added.body.error?.cause?.['field']).toBe('jwksEndpoint')
    const swap = { certPem, jwksEndpoint: '' }
    expect((await root.call('PATCH', `${signers}/${id}`, swap)).status).toBe(200)
    const { sha1 } = parseCertificate(certPem)
    expect(await shown(id)).toMatchObject({ jwksEndpoint: null, fingerprint: sha1, kid: sha1 })
    const back = { certPem: '', jwksEndpoint }
    expect((await root.call('PATCH', `${signers}/${id}`, back)).status).toBe(200)
    expect(await shown(id)).toMatchObject({
      certPem: null,
      fingerprint: null,
      kid: null,
      commonName: '',
    })
  })

  test('shows the fields of a new certificate after a patch, and keeps an explicit kid', async () => {
    const id = idOf(await create({ certPem: await certificate(), kid: 'chosen' }))
    const next = await certificate()
    expect((await root.call('PATCH', `${signers}/${id}`, { certPem: next })).status).toBe(200)
    const { sha1 } = parseCertificate(next)
    expect(await shown(id)).toMatchObject({ fingerprint: sha1, kid: 'chosen' })
    const plain = idOf(await create({ certPem: await certificate() }))
    const last = await certificate()
    await root.call('PATCH', `${signers}/${plain}`, { certPem: last })
    expect(await shown(plain)).toMatchObject({ kid: parseCertificate(last).sha1 })
    const missing = await root.call('PATCH', `${signers}/nope`, { certPem: await certificate() })
    expect(missing.status).toBe(404)
  })

  test('loses all previous optional values when a PUT replaces it', async () => {
    const id = idOf(await create({ certPem: await certificate(), scopes: ['a'], clientId: 'c' }))
    const reply = await root.call('PUT', `${signers}/${id}`, body({ jwksEndpoint }))
    expect(reply.status, reply.text).toBe(200)
    expect(await shown(id)).toMatchObject({
      certPem: null,
      fingerprint: null,
      scopes: null,
      clientId: null,
      notAfter: null,
    })
  })

  test('is refused without exactly one certificate in certPem', async () => {
    const one = await certificate()
    for (const certPem of [
      'nothing',
      `${one}${one}`,
      one.replaceAll('CERTIFICATE', 'PRIVATE KEY'),
      one.slice(0, 300),
    ]) {
      const reply = await create({ certPem })
      expect(reply.status).toBe(400)
      expect(reply.body.error?.code).toBe('INVALID_CERT_PEM')
    }
  })

  test.each([
    ['externalAuthUrl', 'ftp://a.test'],
    ['externalAuthUrl', 'no url'],
    ['externalAuthUrl', 'https://me:secret@a.test'],
    ['jwksEndpoint', 'file:///etc/passwd'],
    ['jwksEndpoint', `https://a.test/${'x'.repeat(2048)}`],
    ['targetToken', 'REFRESH'],
    ['issuer', ''],
    ['audience', undefined],
    ['enabled', undefined],
  ])('is refused, and the error names the field %s, for the value %j', async (field, value) => {
    const reply = await create({ jwksEndpoint, [field]: value })
    expect(reply.status, reply.text).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe(field)
  })

  test('with an unusable jwksEndpoint is refused with OpenZiti’s error code', async () => {
    for (const address of ['file:///etc/passwd', 'http://169.254.169.254/latest/meta-data/']) {
      const reply = await create({ jwksEndpoint: address })
      expect(reply.body.error?.code, address).toBe('INVALID_FIELD')
    }
  })

  test('is refused if another signer has the same issuer, kid or fingerprint; a patch to the issuer of another signer is refused as well', async () => {
    const certPem = await certificate()
    const first = body({ certPem, kid: `kid ${serial}` })
    idOf(await root.call('POST', signers, first))
    const clash = async (more: object): Promise<unknown> =>
      (await create(more)).body.error?.cause?.['field']
    expect(await clash({ jwksEndpoint, issuer: first['issuer'] })).toBe('issuer')
    expect(await clash({ certPem: await certificate(), kid: first['kid'] })).toBe('kid')
    expect(await clash({ certPem, kid: 'another' })).toBe('fingerprint')
    const other = idOf(await create({ jwksEndpoint }))
    const reply = await root.call('PATCH', `${signers}/${other}`, { issuer: first['issuer'] })
    expect(reply.status).toBe(400)
  })

  test('is refused if it enables enrollment with a kind of credential that the auth policy for its enrollments disallows', async () => {
    const primary = {
      cert: { allowed: false, allowExpiredCerts: false },
      extJwt: { allowed: false, allowedSigners: [] },
      updb: {
        allowed: true,
        lockoutDurationMinutes: 0,
        maxAttempts: 0,
        minPasswordLength: 5,
        requireMixedCase: false,
        requireNumberChar: false,
        requireSpecialChar: false,
      },
    }
    const policy = { name: 'passwords alone', primary, secondary: { requireTotp: false } }
    const enrollAuthPolicyId = idOf(await root.call('POST', `${management}/auth-policies`, policy))
    for (const field of ['enrollToCertEnabled', 'enrollToTokenEnabled']) {
      const refused = await create({ jwksEndpoint, enrollAuthPolicyId, [field]: true })
      expect(refused.body.error?.cause?.['field']).toBe(field)
      idOf(await create({ jwksEndpoint, [field]: true }))
    }
    const unknown = await create({ jwksEndpoint, enrollAuthPolicyId: 'nope' })
    expect(unknown.status).toBe(404)
  })
})

describe('the list of external JWT signers on the client API', () => {
  test('shows any caller the enabled signers, with only the fields that a client needs', async () => {
    const anybody = new CallerOf(controller)
    const more = {
      jwksEndpoint,
      clientId: 'app',
      externalAuthUrl: 'https://log.in/',
      scopes: ['s'],
    }
    const id = idOf(await create({ ...more, name: 'shown' }))
    idOf(await create({ ...more, name: 'hidden', enabled: false }))
    const names = async (query = ''): Promise<unknown[]> => {
      const reply = await anybody.get(`${client}/external-jwt-signers?limit=500${query}`)
      expect(reply.status, reply.text).toBe(200)
      return (reply.body.data as { name: string }[]).map(({ name }) => name)
    }
    expect(await names()).toContain('shown')
    expect(await names()).not.toContain('hidden')
    const filter = encodeURIComponent('clientId = "app"')
    const reply = await anybody.get(`${client}/external-jwt-signers?filter=${filter}`)
    const [row] = reply.body.data as Record<string, unknown>[]
    expect(row).toEqual({
      _links: { self: { href: `./external-jwt-signers/${id}` } },
      audience: 'us',
      clientId: 'app',
      createdAt: expect.any(String),
      externalAuthUrl: 'https://log.in/',
      id,
      name: 'shown',
      scopes: ['s'],
      tags: {},
      targetToken: 'ACCESS',
      updatedAt: expect.any(String),
    })
    await root.call('PATCH', `${signers}/${id}`, { enabled: false })
    expect(await names()).not.toContain('shown')
  })

  test('cannot be filtered by fields that the list does not show', async () => {
    const anybody = new CallerOf(controller)
    for (const field of ['issuer', 'claimsProperty', 'certPem', 'enrollAuthPolicyId']) {
      const filter = encodeURIComponent(`${field} contains "a"`)
      const reply = await anybody.get(`${client}/external-jwt-signers?filter=${filter}`)
      expect(reply.body.error?.code).toBe('INVALID_FILTER')
    }
  })
})

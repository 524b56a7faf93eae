import { describe, expect, test } from 'vitest'
import { management, type Reply } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

const { root } = await controllerForFile()

const policies = `${management}/auth-policies`
const signers = `${management}/external-jwt-signers`
const primary = {
  cert: { allowed: true, allowExpiredCerts: false },
  extJwt: { allowed: false, allowedSigners: [] as string[] },
  updb: {
    allowed: true,
    lockoutDurationMinutes: 5,
    maxAttempts: 3,
    minPasswordLength: 8,
    requireMixedCase: true,
    requireNumberChar: false,
    requireSpecialChar: false,
  },
}
const secondary = { requireTotp: true, requireExtJwtSigner: null as string | null }
let serial = 0

const idOf = (reply: Reply): string => {
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}
const newPolicy = async (body: object = {}): Promise<string> => {
  serial += 1
  const whole = { name: `policy ${serial}`, primary, secondary, ...body }
  return idOf(await root.call('POST', policies, whole))
}
const newSigner = async (): Promise<string> => {
  serial += 1
  const name = `signer ${serial}`
  const jwksEndpoint = 'https://issuer.test/keys'
  const body = { name, issuer: name, audience: 'us', enabled: true, jwksEndpoint }
  return idOf(await root.call('POST', signers, body))
}
const shown = async (id: string): Promise<Record<string, unknown>> =>
  (await root.get(`${policies}/${id}`)).body.data as Record<string, unknown>

describe('an auth policy', () => {
  test('can be created, read, replaced and deleted, and lists of policies can be filtered by nested fields', async () => {
    const id = await newPolicy({ name: 'strict', tags: { a: 1 } })
    expect(await shown(id)).toMatchObject({ name: 'strict', primary, secondary, tags: { a: 1 } })
    const body = { name: 'lax', primary, secondary: { requireTotp: false } }
    expect((await root.call('PUT', `${policies}/${id}`, body)).status).toBe(200)
    expect(await shown(id)).toMatchObject({
      name: 'lax',
      tags: {},
      secondary: { requireTotp: false, requireExtJwtSigner: null },
    })
    const filter = encodeURIComponent('primary.updb.maxAttempts = 3 and name = "lax"')
    const found = await root.get(`${policies}?filter=${filter}`)
    expect(found.body.meta?.pagination?.totalCount).toBe(1)
    expect((await root.call('DELETE', `${policies}/${id}`)).status).toBe(200)
    expect((await root.get(`${policies}/${id}`)).status).toBe(404)
  })

  test.each([
    ['primary', { primary: undefined }],
    [
      'primary.updb.maxAttempts',
      { primary: { ...primary, updb: { ...primary.updb, maxAttempts: undefined } } },
    ],
    ['primary.extJwt', { primary: { ...primary, extJwt: null } }],
    ['secondary.requireTotp', { secondary: {} }],
    [
      'primary.updb.minPasswordLength',
      { primary: { ...primary, updb: { ...primary.updb, minPasswordLength: 101 } } },
    ],
  ])('is refused with 400 without a valid value for %s', async (field, body) => {
    const reply = await root.call('POST', policies, { name: 'x', primary, secondary, ...body })
    expect(reply.status).toBe(400)
    expect(reply.body.error?.cause?.['field']).toBe(field)
  })

  test('ignores unknown fields of its rules', async () => {
    const id = await newPolicy({
      primary: { ...primary, sso: true, cert: { ...primary.cert, x: 1 } },
    })
    expect((await shown(id))['primary']).toEqual(primary)
  })

  test('raises a minimum password length below 5 to 5, and other negative numbers to 0', async () => {
    const low = { minPasswordLength: 1, maxAttempts: -2, lockoutDurationMinutes: -1 }
    const raised = { minPasswordLength: 5, maxAttempts: 0, lockoutDurationMinutes: 0 }
    const id = await newPolicy({ primary: { ...primary, updb: { ...primary.updb, ...low } } })
    expect(await shown(id)).toMatchObject({ primary: { updb: raised } })
    const patch = { primary: { updb: { minPasswordLength: 2, maxAttempts: -9 } } }
    expect((await root.call('PATCH', `${policies}/${id}`, patch)).status).toBe(200)
    expect(await shown(id)).toMatchObject({ primary: { updb: raised } })
  })

  test('keeps a minimum password length of 5 or more, and sets 5 if the length is lower', async () => {
    const unset = { minPasswordLength: 0 }
    const id = await newPolicy({ primary: { ...primary, updb: { ...primary.updb, ...unset } } })
    const length = async (minPasswordLength: number): Promise<unknown> => {
      await root.call('PATCH', `${policies}/${id}`, { primary: { updb: { minPasswordLength } } })
      return (await shown(id))['primary']
    }
    expect(await shown(id)).toMatchObject({ primary: { updb: { minPasswordLength: 5 } } })
    expect(await length(6)).toMatchObject({ updb: { minPasswordLength: 6 } })
    expect(await length(-1)).toMatchObject({ updb: { minPasswordLength: 5 } })
  })

  test('keeps all other nested fields if a patch changes one of them', async () => {
    const id = await newPolicy()
    const patch = {
      name: null,
      primary: { cert: null, updb: { maxAttempts: 7, requireMixedCase: null } },
      secondary: { requireTotp: null },
    }
    const reply = await root.call('PATCH', `${policies}/${id}`, patch)
    expect(reply.status, reply.text).toBe(200)
    expect(await shown(id)).toMatchObject({
      primary: { ...primary, updb: { ...primary.updb, maxAttempts: 7 } },
      secondary,
    })
    expect((await root.call('PATCH', `${policies}/${id}`, {})).status).toBe(200)
    const wrong = { primary: { updb: { maxAttempts: 'many' } } }
    expect((await root.call('PATCH', `${policies}/${id}`, wrong)).status).toBe(400)
    expect(await shown(id)).toMatchObject({ primary: { updb: { maxAttempts: 7 } } })
  })

  test('keeps both changes of two concurrent patches', async () => {
    const id = await newPolicy()
    await Promise.all([
      root.call('PATCH', `${policies}/${id}`, { primary: { updb: { maxAttempts: 9 } } }),
      root.call('PATCH', `${policies}/${id}`, { primary: { updb: { requireNumberChar: true } } }),
    ])
    expect(await shown(id)).toMatchObject({
      primary: { updb: { maxAttempts: 9, requireNumberChar: true } },
    })
  })

  test('is refused with 404 and the name of the field if it references an unknown signer', async () => {
    const signer = await newSigner()
    const withSigners = (allowedSigners: string[]): object => ({
      primary: { ...primary, extJwt: { allowed: true, allowedSigners } },
    })
    const unknown = await root.call('POST', policies, {
      name: 'x',
      secondary,
      ...withSigners([signer, 'nobody']),
    })
    expect(unknown.status).toBe(404)
    expect(unknown.body.error?.cause).toMatchObject({
      field: 'primary.extJwt.allowedExtJwtSigners[1]',
    })
    const required = await root.call('POST', policies, {
      name: 'x',
      primary,
      secondary: { requireTotp: false, requireExtJwtSigner: 'nobody' },
    })
    expect(required.status).toBe(404)
    expect(required.body.error?.cause?.['field']).toBe('secondary.requiredExtJwtSigner')
    const id = await newPolicy(withSigners([signer]))
    const patch = { primary: { extJwt: { allowedSigners: ['nobody'] } } }
    expect((await root.call('PATCH', `${policies}/${id}`, patch)).status).toBe(404)
  })

  test('prevents the deletion of the signers that it references', async () => {
    const signer = await newSigner()
    const id = await newPolicy({
      primary: { ...primary, extJwt: { allowed: true, allowedSigners: [signer] } },
      secondary: { requireTotp: false, requireExtJwtSigner: signer },
    })
    const held = await root.call('DELETE', `${signers}/${signer}`)
    expect(held.status).toBe(409)
    expect(held.body.error).toMatchObject({
      code: 'CAN_NOT_DELETE_REFERENCED_ENTITY',
      cause: {
        field: 'primary.extJwt.allowedSigners',
        reason: `entity type externalJwtSigners referenced by authPolicies: [${id}]`,
      },
    })
    await root.call('PATCH', `${policies}/${id}`, { primary: { extJwt: { allowedSigners: [] } } })
    const required = await root.call('DELETE', `${signers}/${signer}`)
    expect(required.status).toBe(409)
    expect(required.body.error?.cause?.['field']).toBe('secondary.requireExtJwtSigner')
    await root.call('PATCH', `${policies}/${id}`, { secondary: { requireExtJwtSigner: '' } })
    expect(await shown(id)).toMatchObject({ secondary: { requireExtJwtSigner: null } })
    expect((await root.call('DELETE', `${signers}/${signer}`)).status).toBe(200)
  })

  test('with the id `default` can be changed but not deleted', async () => {
    const patch = { primary: { updb: { minPasswordLength: 6 } } }
    expect((await root.call('PATCH', `${policies}/default`, patch)).status).toBe(200)
    const refused = await root.call('DELETE', `${policies}/default`)
    expect(refused.status).toBe(409)
    expect(refused.body.error?.code).toBe('CAN_NOT_DELETE_REFERENCED_ENTITY')
  })

  test('cannot be deleted while an identity or a signer references it', async () => {
    const id = await newPolicy()
    const body = { name: 'bob', type: 'User', isAdmin: false, authPolicyId: id }
    const identity = idOf(await root.call('POST', `${management}/identities`, body))
    expect((await root.call('DELETE', `${policies}/${id}`)).status).toBe(409)
    await root.call('DELETE', `${management}/identities/${identity}`)
    const signer = await newSigner()
    await root.call('PATCH', `${signers}/${signer}`, { enrollAuthPolicyId: id })
    expect((await root.call('DELETE', `${policies}/${id}`)).status).toBe(409)
    await root.call('PATCH', `${signers}/${signer}`, { enrollAuthPolicyId: '' })
    expect((await root.call('DELETE', `${policies}/${id}`)).status).toBe(200)
  })

  test('applies a change of its password rules to the next password', async () => {
    const id = await newPolicy()
    const body = { name: 'carol', type: 'User', isAdmin: false, authPolicyId: id }
    const identityId = idOf(await root.call('POST', `${management}/identities`, body))
    const credentials = { identityId, method: 'updb', username: 'carol', password: 'abcdefgh' }
    const weak = await root.call('POST', `${management}/authenticators`, credentials)
    expect(weak.body.error?.cause?.['field']).toBe('password')
    await root.call('PATCH', `${policies}/${id}`, {
      primary: { updb: { requireMixedCase: false } },
    })
    const taken = await root.call('POST', `${management}/authenticators`, credentials)
    expect(taken.status, taken.text).toBe(201)
  })
})

import { describe, expect, test } from 'vitest'
import { client, fabric, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { openToPartial } from '../api/support/matrix.ts'

const { controller, root, sessionOf } = await controllerForFile()

interface Described {
  readonly 'x-permission': string
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}

async function operationsOf(base: string): Promise<{ name: string; permission: string }[]> {
  const answer = await controller.app.inject(`${base}/openapi.json`)
  const { paths } = JSON.parse(answer.payload) as Document
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, described]) => ({
      name: `${method.toUpperCase()} ${path}`,
      permission: described['x-permission'],
    })),
  )
}

const openPolicy = {
  cert: { allowed: true, allowExpiredCerts: true },
  extJwt: { allowed: true, allowedSigners: [] },
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

async function made(collection: string, body: object): Promise<string> {
  const reply = await root.call('POST', `${management}/${collection}`, body)
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

const jwksEndpoint = 'https://issuer.test/keys'
const signerBody = { name: 's', issuer: 's', audience: 'us', enabled: true, jwksEndpoint }
const signer = await made('external-jwt-signers', signerBody)
const policies = {
  'a TOTP code': await made('auth-policies', {
    name: 'totp',
    primary: openPolicy,
    secondary: { requireTotp: true },
  }),
  'an external JWT': await made('auth-policies', {
    name: 'jwt',
    primary: openPolicy,
    secondary: { requireTotp: false, requireExtJwtSigner: signer },
  }),
}

describe.each(Object.entries(policies))('a session that still lacks %s', (factor, authPolicyId) => {
  test('may call no operation of any API except the public ones and those in the list openToPartial, even if its identity is an administrator', async () => {
    const name = `administrator without ${factor}`
    const adminId = await made('identities', { name, type: 'User', isAdmin: true, authPolicyId })
    const permissions = ['admin_readonly', 'identity', 'ops', 'service']
    const heldBody = { name: `helper without ${factor}`, type: 'User', isAdmin: false }
    const helperId = await made('identities', { ...heldBody, permissions, authPolicyId })
    for (const id of [adminId, helperId]) {
      const caller = sessionOf(id)
      for (const base of [client, management, fabric]) {
        for (const { name: operation, permission } of await operationsOf(base)) {
          if (permission === 'public') continue
          if (openToPartial.includes(operation)) continue
          const [method = '', path = ''] = operation.split(' ')
          const reply = await caller.call(method, base + path.replace(/\{\w+\}/g, 'default'))
          expect(reply.status, `${operation} of ${base}`).toBe(401)
        }
      }
    }
  })
})

test('a fully authenticated session becomes partially authenticated when its policy begins to require a second factor', async () => {
  const authPolicyId = await made('auth-policies', {
    name: 'none at first',
    primary: openPolicy,
    secondary: { requireTotp: false },
  })
  const id = await made('identities', {
    name: 'in time',
    type: 'User',
    isAdmin: true,
    authPolicyId,
  })
  const caller = sessionOf(id)
  expect((await caller.get(`${management}/services`)).status).toBe(200)
  const asked = { secondary: { requireTotp: true } }
  await root.call('PATCH', `${management}/auth-policies/${authPolicyId}`, asked)
  expect((await caller.get(`${management}/services`)).status).toBe(401)
})

test('the operations with the permission for sessions without their second factor are exactly those in the list openToPartial', async () => {
  for (const [base, expected] of [
    [client, openToPartial],
    [management, openToPartial],
    [fabric, []],
  ] as const) {
    const open = (await operationsOf(base)).filter(({ permission }) => permission === 'partial')
    expect(open.map(({ name }) => name).sort()).toEqual(expected)
  }
})

import { beforeEach, expect, test } from 'vitest'
import { CallerOf, management } from '../api/support/caller.ts'
import { admin } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { turnOnMfa } from '../api/support/mfa.ts'
import { made, newIdentity, shown } from '../api/support/network.ts'

const { controller, root } = await controllerForFile()
const policies = `${management}/auth-policies`
const identities = `${management}/identities`
const { primary } = await shown(root, `${policies}/default`)
const signer = await made(root, `${management}/external-jwt-signers`, {
  name: 's',
  issuer: 's',
  audience: 'us',
  enabled: true,
  jwksEndpoint: 'https://issuer.test/keys',
})
const strict = await made(root, policies, {
  name: 'strict',
  primary,
  secondary: { requireTotp: false, requireExtJwtSigner: signer },
})
/**
 * An administrator that cannot log in, because it has no credential or a policy that no one can
 * fulfill.
 */
await newIdentity(root, 'without a credential', { isAdmin: true })
const partialId = await newIdentity(root, 'partial', { isAdmin: true, authPolicyId: strict })
const credential = { method: 'updb', username: 'partial', password: 'a password of mine' }
await made(root, `${management}/authenticators`, { identityId: partialId, ...credential })

beforeEach(() => {
  root.token = controller.openSession('admin-id')
})

const noPasswords = { primary: { updb: { allowed: false } } }
const { updb } = primary as { updb: object }
const withoutPasswords = { ...(primary as object), updb: { ...updb, allowed: false } }
const jwt = { secondary: { requireTotp: false, requireExtJwtSigner: signer } }

test.each([
  ['a policy that allows no passwords', 'PATCH', `${policies}/default`, noPasswords],
  ['a policy that requires a second factor', 'PATCH', `${policies}/default`, jwt],
  [
    'another policy for the administrator',
    'PATCH',
    `${identities}/admin-id`,
    { authPolicyId: strict },
  ],
  [
    'the removal of the administrator rights',
    'PATCH',
    `${identities}/admin-id`,
    { isAdmin: false },
  ],
  [
    'a replacement without the administrator rights',
    'PUT',
    `${identities}/admin-id`,
    { name: 'Default Admin', type: 'User', isAdmin: false },
  ],
  [
    'a replacement of the policy',
    'PUT',
    `${policies}/default`,
    {
      name: 'Default',
      primary: withoutPasswords,
      secondary: { requireTotp: false },
    },
  ],
  ['a temporary disablement', 'POST', `${identities}/admin-id/disable`, { durationMinutes: 1 }],
  ['the deletion of the password', 'DELETE', `${management}/authenticators/admin-updb`, undefined],
  [
    'a re-enrollment that replaces the password',
    'POST',
    `${management}/authenticators/admin-updb/re-enroll`,
    { expiresAt: new Date(controller.clock.nowMs() + 60_000).toISOString() },
  ],
])(
  'no write can leave the network without an administrator who can log in: %s',
  async (_, method, url, body) => {
    const before = [...controller.state.storedRecords()]
    const reply = await root.call(method, url, body)
    expect(reply.status, reply.text).toBe(400)
    expect([...controller.state.storedRecords()]).toEqual(before)
    expect(reply.body.error?.code).toMatch(/^ENTITY_CAN_NOT_BE_/)
    expect(reply.body.error?.cause?.['message']).toMatch(/no administrator could log in/)
    const caller = new CallerOf(controller)
    expect((await caller.logIn(admin)).status).toBe(200)
    expect((await caller.get(identities)).status).toBe(200)
  },
)

test('a policy that requires TOTP codes does not lock out an administrator, because a partial session can enroll in MFA', async () => {
  const totp = { secondary: { requireTotp: true } }
  expect((await root.call('PATCH', `${policies}/default`, totp)).status).toBe(200)
  const caller = new CallerOf(controller)
  expect((await caller.logIn(admin)).status).toBe(200)
  expect((await caller.get(identities)).status).toBe(401)
  await turnOnMfa(controller, caller)
  expect((await caller.get(identities)).status).toBe(200)
  const open = { secondary: { requireTotp: false } }
  expect((await caller.call('PATCH', `${policies}/default`, open)).status).toBe(200)
  const mfa = await caller.call('DELETE', `${identities}/admin-id/mfa`)
  expect(mfa.status).toBe(200)
})

test('a change that locks out one administrator is allowed while another administrator can log in', async () => {
  const spareId = await newIdentity(root, 'spare', { isAdmin: true })
  const spare = { identityId: spareId, method: 'updb', username: 'spare', password: 'a password' }
  const spareCredential = await made(root, `${management}/authenticators`, spare)
  const body = { authPolicyId: strict }
  expect((await root.call('PATCH', `${identities}/admin-id`, body)).status).toBe(200)
  // The other administrator is now the last one that can log in.
  const other = new CallerOf(controller)
  expect((await other.logIn(spare)).status).toBe(200)
  const gone = await other.call('DELETE', `${management}/authenticators/${spareCredential}`)
  expect(gone.status).toBe(400)
})

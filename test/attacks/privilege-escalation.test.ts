import { expect, test } from 'vitest'
import { type CallerOf, management, type Reply } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { turnOnMfa } from '../api/support/mfa.ts'
import { made, newIdentity } from '../api/support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()
const identities = `${management}/identities`
const expiresAt = new Date(controller.clock.nowMs() + 3_600_000).toISOString()
let serial = 0

async function holderOf(...permissions: readonly string[]): Promise<string> {
  serial += 1
  return newIdentity(root, `holder ${serial}`, { permissions })
}

/**
 * Tries all ways in which a caller who may write identities and enrollments could act as another
 * identity, or interfere with it.
 */
async function attemptsOn(helper: CallerOf, id: string): Promise<Record<string, Reply>> {
  const url = `${identities}/${id}`
  const enrollment = { identityId: id, method: 'ott', expiresAt }
  const policy = { authPolicyId: 'default' }
  return {
    enroll: await helper.call('POST', `${management}/enrollments`, enrollment),
    patch: await helper.call('PATCH', url, policy),
    replace: await helper.call('PUT', url, { name: 'mine', type: 'Device', isAdmin: false }),
    disable: await helper.call('POST', `${url}/disable`, { durationMinutes: 5 }),
    enable: await helper.call('POST', `${url}/enable`),
    configs: await helper.call('POST', `${url}/service-configs`, []),
    trace: await helper.call('PUT', `${url}/trace`, { enabled: true, duration: '10m' }),
    mfa: await helper.call('DELETE', `${url}/mfa`),
    delete: await helper.call('DELETE', url),
  }
}

const helperId = await holderOf('identity', 'enrollment', 'service.read')

test.each([
  ['write CAs', ['ca']],
  ['update external JWT signers', ['external-jwt-signer.update']],
  ['write all services', ['service']],
  ['read everything', ['admin_readonly']],
  ['write identities and create services', ['identity', 'service.create']],
])(
  'a caller who may write identities cannot act on an identity that may %s',
  async (_what, permissions) => {
    const helper = sessionOf(helperId)
    const id = await holderOf(...permissions)
    const before = [...controller.state.storedRecords()]
    const attempts = await attemptsOn(helper, id)
    expect([...controller.state.storedRecords()]).toEqual(before)
    for (const [name, reply] of Object.entries(attempts)) {
      expect(reply.status, `${name}: ${reply.text}`).toBe(401)
      if (name === 'replace') continue
      expect(reply.body.error?.cause?.['message'], name).toMatch(/permissions you lack/)
    }
  },
)

test('a caller who may write identities cannot change an administrator, start a trace of the administrator or remove the second factor', async () => {
  const adminId = await newIdentity(root, 'another administrator', { isAdmin: true })
  await turnOnMfa(controller, sessionOf(adminId))
  const helper = sessionOf(helperId)
  const before = [...controller.state.storedRecords()]
  for (const [name, reply] of Object.entries(await attemptsOn(helper, adminId))) {
    expect(reply.status, `${name}: ${reply.text}`).toBe(401)
  }
  expect([...controller.state.storedRecords()]).toEqual(before)
  const state = await root.call('PUT', `${identities}/${adminId}/trace`, { enabled: false })
  expect(state.body.data).toMatchObject({ traceId: '' })
})

test('a caller who may write identities can change and delete, but not replace, an identity that has no more rights than the caller', async () => {
  const same = await holderOf('identity.update', 'enrollment', 'service.read')
  const helper = sessionOf(helperId)
  const { replace, ...attempts } = await attemptsOn(helper, same)
  expect(replace?.status, 'a replacement names the permissions').toBe(401)
  for (const [name, reply] of Object.entries(attempts)) {
    expect([200, 201], `${name}: ${reply.text}`).toContain(reply.status)
  }
})

test('the enrollment token of an identity with permissions is shown to an administrator, but not to a caller without these permissions', async () => {
  const id = await holderOf('ca')
  const wanted = { identityId: id, method: 'ott', expiresAt }
  const enrollmentId = await made(root, `${management}/enrollments`, wanted)
  const token = String(controller.state.get('enrollment', enrollmentId)?.['token'])
  const helper = sessionOf(helperId)
  for (const [url, status] of [
    [`${identities}/${id}`, 200],
    [`${identities}?limit=500`, 200],
    [`${identities}/${id}/enrollments`, 200],
    [`${management}/enrollments?limit=500`, 200],
    [`${management}/enrollments/${enrollmentId}`, 401],
  ] as const) {
    const reply = await helper.get(url)
    expect(reply.status, url).toBe(status)
    expect(reply.text, url).not.toContain(token)
  }
  expect((await root.get(`${management}/enrollments/${enrollmentId}`)).text).toContain(
    String(token),
  )
})

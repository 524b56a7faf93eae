import { expect, test } from 'vitest'
import { client, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { giveCode, mfaPath, turnOnMfa } from '../api/support/mfa.ts'
import { newIdentity } from '../api/support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()

async function isMfaEnabled(id: string): Promise<unknown> {
  const reply = await root.get(`${management}/identities/${id}`)
  return (reply.body.data as Record<string, unknown>)['isMfaEnabled']
}

test('neither a caller who may write identities nor a caller without permissions can remove MFA from an administrator', async () => {
  const boss = await newIdentity(root, 'boss', { isAdmin: true })
  await turnOnMfa(controller, sessionOf(boss))
  const helper = await newIdentity(root, 'helper', { permissions: ['identity'] })
  const plain = await newIdentity(root, 'plain', {})
  for (const id of [helper, plain]) {
    const reply = await sessionOf(id).call('DELETE', `${management}/identities/${boss}/mfa`)
    expect(reply.status).toBe(401)
  }
  expect(await isMfaEnabled(boss)).toBe(true)
})

test('MFA codes of one identity are refused for another identity, and the MFA operations always apply to the caller', async () => {
  const ann = await newIdentity(root, 'ann', {})
  const ben = await newIdentity(root, 'ben', {})
  const ofAnn = await turnOnMfa(controller, sessionOf(ann))
  const ofBen = await turnOnMfa(controller, sessionOf(ben))
  const session = sessionOf(ben)
  const [recovery = ''] = ofAnn.recoveryCodes
  for (const code of [recovery, ofAnn.freshCode()]) {
    expect((await giveCode(session, code)).status).toBe(400)
  }
  const remove = async (path: string, code: string): Promise<number> =>
    (await session.call('DELETE', path, undefined, { 'mfa-validation-code': code })).status
  const before = controller.machine.findAll('mfa', 'identityId', ann)
  expect(await remove(`${mfaPath}?id=${ann}`, recovery)).toBe(401)
  expect(await remove(`${client}/current-identity/${ann}/mfa`, recovery)).toBe(404)
  expect((await giveCode(session, ofBen.code())).status).toBe(200)
  expect(await remove(`${mfaPath}?id=${ann}`, ofBen.recoveryCodes[0] ?? '')).toBe(200)
  expect([await isMfaEnabled(ann), await isMfaEnabled(ben)]).toEqual([true, false])
  expect(controller.machine.findAll('mfa', 'identityId', ann)).toEqual(before)
})

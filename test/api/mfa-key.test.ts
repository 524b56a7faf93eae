import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { CommandKind, SecretRotateSchema } from '../../proto/gen/command_pb.ts'
import { secretLimits } from '../../src/fsm/cluster/secret.ts'
import { commandData } from '../support/commands.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { controllerForFile } from './support/for-file.ts'
import { giveCode, mfaPath, turnOnMfa } from './support/mfa.ts'
import { newIdentity } from './support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()
const { cluster, state, keys, parts, scheduler } = controller

function versions(): number[] {
  const record = requirePresent(state.get('sharedSecret', 'factorKey'), 'the factor key')
  return record.versions.map(({ version }) => version)
}

/**
 * Activates the next version of the key, as after the removal of a controller. @returns the result
 * of the rotation.
 */
function rotate(): string {
  const version = (versions().at(-1) ?? 0) + 1
  const message = create(SecretRotateSchema, { name: 'factorKey', version })
  const data = commandData(CommandKind.SECRET_ROTATE, toBinary(SecretRotateSchema, message))
  const { outcome } = cluster.apply(data)
  if (!outcome.ok) return outcome.code
  const kept = new Set(versions())
  keys.rotateFactorKey(controller.clock.nowMs(), (one) => kept.has(one))
  return 'done'
}

async function resealed(identityId: string): Promise<void> {
  scheduler.run(parts.limits.sweepMs)
  await expect.poll(() => state.get('mfa', identityId)?.['keyVersion']).toBe(versions().at(-1))
}

test('a rotation of the MFA key keeps every TOTP factor valid: the old key version decrypts a factor until the leader re-encrypts it', async () => {
  const ann = await newIdentity(root, 'ann', {})
  const app = await turnOnMfa(controller, sessionOf(ann))
  const [recovery = ''] = app.recoveryCodes
  expect(rotate()).toBe('done')
  expect(versions()).toEqual([1, 2])
  expect((await giveCode(sessionOf(ann), app.freshCode())).status).toBe(200)
  cluster.leader = 'ctrl2'
  scheduler.run(parts.limits.sweepMs)
  cluster.leader = null
  expect(state.get('mfa', ann)?.['keyVersion']).toBe(1)
  await resealed(ann)
  const session = sessionOf(ann)
  expect((await giveCode(session, recovery)).status).toBe(200)
  const view = await session.call('GET', `${mfaPath}/recovery-codes`, { code: app.freshCode() })
  expect(view.body.data).toMatchObject({ recoveryCodes: app.recoveryCodes.slice(1) })
  // No secret is encrypted with the first version any more.
  expect(rotate()).toBe('done')
  expect(versions()).toEqual([2, 3])
  expect((await giveCode(session, app.freshCode())).status).toBe(200)
  await resealed(ann)
})

test('a version of the MFA key is kept while a TOTP factor uses it; with the maximum number of versions, a rotation is refused until the factors of the oldest one are re-encrypted', async () => {
  for (let made = 0; versions().length < secretLimits.versionsMax; made += 1) {
    await turnOnMfa(controller, sessionOf(await newIdentity(root, `one of many ${made}`, {})))
    expect(rotate()).toBe('done')
  }
  const last = await newIdentity(root, 'the last', {})
  const app = await turnOnMfa(controller, sessionOf(last))
  expect(rotate()).toBe('COULD_NOT_VALIDATE')
  await resealed(last)
  scheduler.run(parts.limits.sweepMs)
  await expect.poll(() => state.tables.get('mfa')?.indexes.ids('keyVersion', '4').size).toBe(0)
  await expect.poll(() => rotate()).toBe('done')
  expect((await giveCode(sessionOf(last), app.freshCode())).status).toBe(200)
})

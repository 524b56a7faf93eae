import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'

import {
  AccessRevokeSchema,
  CommandKind,
  FeatureLevelRaiseSchema,
} from '../../proto/gen/command_pb.ts'
import {
  rotateSecretsAfterRemoval,
  isSecretRotationDue,
} from '../../src/cluster/secrets/secret-rotation.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { SecretsCluster } from '../cluster/secrets-fixture.ts'
import { Joining } from '../fsm/support/joining.ts'
import { anySystem } from '../support/commands.ts'

// The attack: before it was removed as compromised, a controller created a join ticket, or had
// another controller admitted that never connected. With either of them it joins again, and gets
// every new secret.

const thief = { nodeId: 'ctrl9', key: 'key-ctrl9', store: 'ctrl9' }

function revokeAccess(cluster: Joining): void {
  const payload = toBinary(AccessRevokeSchema, create(AccessRevokeSchema, { nodeId: 'ctrl3' }))
  expect(cluster.log.command(CommandKind.ACCESS_REVOKE, payload).outcome).toMatchObject({
    ok: true,
  })
}

async function formed(ids: readonly string[]): Promise<SecretsCluster> {
  const cluster = await SecretsCluster.form(ids)
  const level = create(FeatureLevelRaiseSchema, { level: FEATURE_LEVEL })
  const payload = toBinary(FeatureLevelRaiseSchema, level)
  await cluster.propose({ kind: CommandKind.FEATURE_LEVEL_RAISE, payload, actor: anySystem })
  return cluster
}

describe('after the removal of a compromised controller', () => {
  test('no join ticket from before the removal admits a controller', () => {
    const cluster = new Joining()
    expect(cluster.invite('ticket-a').ok).toBe(true)
    revokeAccess(cluster)
    expect(cluster.redeem('ticket-a', thief)).toMatchObject({ ok: false, code: 'TICKET_REFUSED' })
    expect(cluster.admission('ctrl9')).toBeUndefined()
  })

  test('a controller that was admitted before the removal but never connected has to join again', () => {
    const cluster = new Joining()
    cluster.join('ctrl1')
    cluster.members([{ id: 'ctrl1', key: 'key-ctrl1' }])
    cluster.join('ctrl9')
    revokeAccess(cluster)
    expect(cluster.admission('ctrl9')).toBeUndefined()
    expect(cluster.redeem('ticket-of-ctrl9', thief)).toMatchObject({ code: 'TICKET_REFUSED' })
    expect(cluster.admission('ctrl1')).toBeDefined()
  })

  test('a controller admitted before the removal can decrypt no secret that is still valid', async () => {
    const cluster = await formed(['ctrl1', 'ctrl2', 'ctrl3', 'ctrl9'])
    const leaves = ['ctrl1', 'ctrl2'].map((id) => [id, cluster.member(id).leaf] as const)
    cluster.configure(new Map(leaves))
    await rotateSecretsAfterRemoval(cluster.member('ctrl1').rotation, 'ctrl3', {
      isCompromised: true,
    })
    expect(cluster.machine.get('admission', 'ctrl9')).toBeUndefined()
    expect(isSecretRotationDue(cluster.machine)).toBe(false)
    await cluster.member('ctrl9').keyring.refresh()
    expect(cluster.member('ctrl9').keyring.clusterKeys()).toEqual([])
    await cluster.member('ctrl2').keyring.refresh()
    expect(cluster.member('ctrl2').keyring.clusterKeys()).toHaveLength(1)
    expect(cluster.recorded.lines.join('\n')).toContain('ctrl9')
  })

  test('all access is revoked even if the ID of the removed controller has been admitted again, and the new admission stays', async () => {
    const cluster = await formed(['ctrl1', 'ctrl2', 'ctrl3'])
    cluster.expel('ctrl3')
    const before = cluster.proposals.length
    const manner = { isCompromised: true, isAdmittedAgain: true }
    await rotateSecretsAfterRemoval(cluster.member('ctrl1').rotation, 'ctrl3', manner)
    const kinds = cluster.proposals.slice(before).map(({ kind }) => kind)
    expect(kinds).toContain(CommandKind.ACCESS_REVOKE)
    expect(kinds).not.toContain(CommandKind.ADMISSION_DELETE)
  })
})

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  rotateSecretsAfterRemoval,
  installIssuingAuthority,
  isSecretRotationDue,
  admittedIdsLackingSecrets,
  rotateClusterKey,
  rotateSecretsIfDue,
  wrapMissingSecrets,
} from '../../src/cluster/secrets/secret-rotation.ts'
import { CommandKind, SecretRotateSchema } from '../../proto/gen/command_pb.ts'
import { createIssuingAuthority, validityStartingAt } from '../../src/pki/authority/authority.ts'
import { newClusterKey } from '../../src/pki/secrets/cluster-key.ts'
import { Keyring } from '../../src/cluster/secrets/keyring.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import { wrapSecret } from '../../src/pki/secrets/wrapped-secret.ts'
import { wrapSecretsForAll } from '../../src/cluster/secrets/wrap-secrets.ts'
import { create, toBinary } from '@bufbuild/protobuf'
import type { RecordOf } from '../../src/entities/kind-records.ts'
import { until } from './mesh-fixture.ts'
import { OVERLAP_MS, SecretsCluster, spkiOf, startMs } from './secrets-fixture.ts'
import { anySystem } from '../support/commands.ts'

let cluster: SecretsCluster

beforeEach(async () => {
  cluster = await SecretsCluster.form(['ctrl1', 'ctrl2', 'ctrl3'])
})
afterEach(async () => {
  await cluster.machine.close()
})

const inPeace = { isCompromised: false }
const compromised = { isCompromised: true }

function keysOf(id: string): string[] {
  return cluster
    .member(id)
    .keyring.clusterKeys()
    .map(({ secret }) => Buffer.from(secret).toString('hex'))
}

async function refreshAll(): Promise<void> {
  for (const { keyring } of cluster.members.values()) await keyring.refresh()
}

describe('The initial secrets of a cluster', () => {
  test('are the same for every member, and are never stored in plaintext', () => {
    const [key = ''] = keysOf('ctrl1')
    expect(key).toHaveLength(64)
    for (const id of ['ctrl2', 'ctrl3']) {
      expect(keysOf(id)).toEqual([key])
      expect(cluster.member(id).keyring.issuing()).toEqual({ version: 1, ...cluster.issuing })
    }
    const records = ['clusterKey', 'issuingAuthority'].map((name) =>
      JSON.stringify(cluster.machine.get('sharedSecret', name)),
    )
    const text = records.join()
    expect(text).not.toContain('PRIVATE KEY')
    expect(text).not.toContain(Buffer.from(key, 'hex').toString('base64url'))
    expect(text).not.toContain(key)
  })

  test('cannot be decrypted by a controller with another key, which logs this once', async () => {
    const stranger = await cluster.add('ctrl1', cluster.member('ctrl2').leaf)
    expect(stranger.keyring.clusterKeys()).toEqual([])
    expect(stranger.keyring.issuing()).toBeNull()
    const before = cluster.recorded.lines.length
    await rotateClusterKey(cluster.member('ctrl2').rotation, 'a test', inPeace)
    await stranger.keyring.refresh()
    const told = cluster.recorded.lines
      .slice(before)
      .filter((line) => line.includes('cannot decrypt'))
    expect(told, 'only the new version is reported').toHaveLength(1)
  })
})

describe('A key rotation', () => {
  test('reaches a member that only follows the log, without a separate call', async () => {
    const { keyring } = cluster.member('ctrl3')
    keyring.start(cluster.machine)
    await rotateClusterKey(cluster.member('ctrl1').rotation, 'a test', inPeace)
    await until('ctrl3 holds the new key', () => keysOf('ctrl3').length === 2)
    keyring.stop()
  })

  test('gives every member the new key, and sets the end of the overlap period for the previous key', async () => {
    const before = keysOf('ctrl1')
    await rotateClusterKey(cluster.member('ctrl1').rotation, 'a test', inPeace)
    await refreshAll()
    expect(keysOf('ctrl2')).toEqual(keysOf('ctrl1'))
    expect(keysOf('ctrl2')[0]).toBe(before[0])
    const keys = cluster.member('ctrl3').keyring.clusterKeys()
    expect(keys.map(({ version, overlapEndsAtMs }) => [version, overlapEndsAtMs])).toEqual([
      [1, startMs + OVERLAP_MS],
      [2, null],
    ])
  })

  test('creates two key versions if it runs twice at the same time', async () => {
    cluster.beforePropose = () =>
      rotateClusterKey(cluster.member('ctrl2').rotation, 'the other', inPeace)
    await rotateClusterKey(cluster.member('ctrl1').rotation, 'a test', inPeace)
    await refreshAll()
    expect(keysOf('ctrl3')).toHaveLength(3)
    expect(keysOf('ctrl3')).toEqual(keysOf('ctrl1'))
  })

  test('notifies its listeners once', async () => {
    let changes = 0
    const { keyring } = cluster.member('ctrl2')
    keyring.onChange(() => (changes += 1))
    await rotateClusterKey(cluster.member('ctrl1').rotation, 'a test', inPeace)
    await Promise.all([keyring.refresh(), keyring.refresh()])
    await keyring.refresh()
    expect(changes).toBe(1)
  })
})

test('the secrets in a replaced state are decrypted again, even if their revision is unchanged', async () => {
  const { leaf } = cluster.member('ctrl2')
  const { machine, log } = cluster
  const right = machine.get('sharedSecret', 'clusterKey')
  const version = right?.versions[0]
  if (right === undefined || version === undefined) throw new Error('there is a cluster key')
  const context = { clusterId: machine.clusterId, name: right.id, version: 1, nodeId: 'ctrl2' }
  const jwe = await wrapSecret(newClusterKey(), spkiOf(leaf.certificatePem), context)
  const wrong = { ...right, versions: [{ ...version, wrapped: { ctrl2: jwe } }] }
  let inPlace: RecordOf<'sharedSecret'> = wrong
  const keyring = new Keyring({
    state: {
      clusterId: machine.clusterId,
      get: <R extends EntityRecord>(_entity: string, id: string) =>
        (id === right.id ? inPlace : undefined) as R | undefined,
    },
    selfId: 'ctrl2',
    privateKeyPem: () => leaf.privateKeyPem,
    log,
  })
  await keyring.refresh()
  expect(keyring.clusterKeys()).not.toEqual(cluster.member('ctrl2').keyring.clusterKeys())
  inPlace = right
  await keyring.refresh()
  expect(keyring.clusterKeys()).toEqual(cluster.member('ctrl2').keyring.clusterKeys())
})

describe('The rotation of secrets after the removal of a controller', () => {
  test('leaves the removed controller without an admission and unable to decrypt the new key', async () => {
    cluster.expel('ctrl3')
    await rotateSecretsAfterRemoval(cluster.member('ctrl1').rotation, 'ctrl3', inPeace)
    await refreshAll()
    expect(cluster.machine.get('admission', 'ctrl3')).toBeUndefined()
    expect(cluster.member('ctrl3').keyring.clusterKeys()).toEqual([])
    expect(keysOf('ctrl2')).toHaveLength(2)
    expect(keysOf('ctrl2')).toEqual(keysOf('ctrl1'))
    expect(isSecretRotationDue(cluster.machine)).toBe(false)
  })

  test('revokes the previous key immediately if the controller was compromised', async () => {
    const before = keysOf('ctrl1')
    cluster.expel('ctrl3')
    await rotateSecretsAfterRemoval(cluster.member('ctrl1').rotation, 'ctrl3', compromised)
    await refreshAll()
    expect(keysOf('ctrl2')).toHaveLength(1)
    expect(keysOf('ctrl2')).not.toEqual(before)
    expect(cluster.recorded.lines.join('\n')).toContain('renew-issuing')
  })

  test('also revokes the previous key if the controller is reported as compromised later', async () => {
    cluster.expel('ctrl3')
    const { rotation } = cluster.member('ctrl1')
    await rotateSecretsAfterRemoval(rotation, 'ctrl3', inPeace)
    const [before] = keysOf('ctrl1')
    await rotateSecretsAfterRemoval(cluster.member('ctrl2').rotation, 'ctrl3', compromised)
    await refreshAll()
    expect(keysOf('ctrl1')).toHaveLength(1)
    expect(keysOf('ctrl1')).not.toContain(before)
    expect(cluster.recorded.lines.join('\n')).toContain('renew-issuing')
    const proposals = cluster.proposals.length
    await rotateSecretsAfterRemoval(rotation, 'ctrl3', compromised)
    expect(cluster.proposals, 'a repetition changes nothing').toHaveLength(proposals)
  })

  test('may be requested again with the same parameters, and then changes nothing', async () => {
    cluster.expel('ctrl3')
    const { rotation } = cluster.member('ctrl1')
    await rotateSecretsAfterRemoval(rotation, 'ctrl3', inPeace)
    const proposals = cluster.proposals.length
    await rotateSecretsAfterRemoval(rotation, 'ctrl3', inPeace)
    expect(cluster.proposals).toHaveLength(proposals)
  })

  test('is done by the next leader if the leader was replaced between the removal and the rotation', async () => {
    cluster.expel('ctrl3')
    const dies = new Error('the leader died')
    const { rotation } = cluster.member('ctrl1')
    const dying = {
      ...rotation,
      proposer: {
        propose: async (input: Parameters<SecretsCluster['propose']>[0]) => {
          if (input.kind === CommandKind.SECRET_ROTATE) throw dies
          return await cluster.propose(input)
        },
      },
    }
    await expect(rotateSecretsAfterRemoval(dying, 'ctrl3', compromised)).rejects.toBe(dies)
    expect(isSecretRotationDue(cluster.machine)).toBe(true)
    await cluster.member('ctrl2').keyring.refresh()
    await rotateSecretsIfDue(cluster.member('ctrl2').rotation, 'found due')
    expect(isSecretRotationDue(cluster.machine)).toBe(false)
    // The state records that the controller was compromised, so none of its former keys is valid.
    expect(keysOf('ctrl2')).toHaveLength(1)
  })

  test('is refused for a controller that is still a member, and does not revoke the member’s secrets', async () => {
    await expect(
      rotateSecretsAfterRemoval(cluster.member('ctrl1').rotation, 'ctrl3', compromised),
    ).rejects.toMatchObject({ code: 'MEMBERSHIP_REFUSED' })
    expect(isSecretRotationDue(cluster.machine)).toBe(false)
    expect(keysOf('ctrl3')).toHaveLength(1)
  })
})

describe('The key that encrypts MFA secrets', () => {
  const versionsAt = (id: string) =>
    cluster
      .member(id)
      .keyring.factorKeys()
      .map(({ version, secret }) => `${version} ${Buffer.from(secret).toString('hex')}`)

  test('differs from the key that signs tokens, and is the same on every member', async () => {
    await refreshAll()
    expect(versionsAt('ctrl1')).toHaveLength(1)
    expect(versionsAt('ctrl2')).toEqual(versionsAt('ctrl1'))
    expect(versionsAt('ctrl1')[0]).not.toContain(keysOf('ctrl1')[0])
  })

  test('is rotated when a compromised controller is removed, and not when the token key is rotated', async () => {
    await rotateClusterKey(cluster.member('ctrl1').rotation, 'a test', inPeace)
    await refreshAll()
    const [before = ''] = versionsAt('ctrl1')
    expect(before).toMatch(/^1 /)
    cluster.expel('ctrl3')
    await rotateSecretsAfterRemoval(cluster.member('ctrl1').rotation, 'ctrl3', compromised)
    await refreshAll()
    // No secret is encrypted with the first version, so it was deleted.
    expect(versionsAt('ctrl2')).toEqual([expect.stringMatching(/^2 /)])
    expect(versionsAt('ctrl2')).toEqual(versionsAt('ctrl1'))
    expect(versionsAt('ctrl3')).toEqual([])
    expect(isSecretRotationDue(cluster.machine)).toBe(false)
  })
})

describe('A member that lacks a shared secret', () => {
  test('receives this secret from a member that has it', async () => {
    await cluster.machine.close()
    cluster = await SecretsCluster.form(['ctrl1', 'ctrl2', 'ctrl3'], 'ctrl3')
    expect(keysOf('ctrl3')).toEqual([])
    expect(admittedIdsLackingSecrets(cluster.machine)).toEqual(['ctrl3'])
    expect(await wrapMissingSecrets(cluster.member('ctrl2').rotation)).toBe(true)
    await refreshAll()
    expect(admittedIdsLackingSecrets(cluster.machine)).toEqual([])
    expect(keysOf('ctrl3')).toEqual(keysOf('ctrl1'))
    expect(cluster.member('ctrl3').keyring.issuing()).toEqual({ version: 1, ...cluster.issuing })
    expect(
      await wrapMissingSecrets(cluster.member('ctrl1').rotation),
      'no secret remains to be wrapped',
    ).toBe(false)
  })

  test('cannot result from a rotation, because a rotation that omits an admitted controller is refused', async () => {
    const secret = newClusterKey()
    const version = { name: 'clusterKey', version: 2, secret } as const
    const { rotation } = cluster.member('ctrl1')
    const own = cluster.machine.get('admission', 'ctrl1')
    const recipient = {
      nodeId: 'ctrl1',
      publicKeySpki: Uint8Array.from(Buffer.from(own?.publicKeySpki ?? '', 'base64')),
    }
    const message = create(SecretRotateSchema, {
      name: 'clusterKey',
      version: 2,
      wrapped: await wrapSecretsForAll(cluster.machine.clusterId, [version], [recipient]),
    })
    const payload = toBinary(SecretRotateSchema, message)
    const actor = anySystem
    const kind = CommandKind.SECRET_ROTATE
    expect((await rotation.proposer.propose({ kind, payload, actor })).outcome).toMatchObject({
      code: 'REVISION_MOVED',
    })
  })
})

describe('A new issuing CA', () => {
  test('is active on every member once it is installed, and the key of the old issuing CA is deleted', async () => {
    const { root } = cluster
    const validity = validityStartingAt(startMs, 3_600_000)
    const next = await createIssuingAuthority({ commonName: 'next', root, validity })
    await installIssuingAuthority(cluster.member('ctrl1').rotation, next)
    await refreshAll()
    for (const { keyring } of cluster.members.values()) {
      expect(keyring.issuing()).toEqual({ version: 2, ...next })
    }
    const record = cluster.machine.get('sharedSecret', 'issuingAuthority')
    expect(record?.versions).toHaveLength(1)
  })

  test('is rejected when its key does not match its certificate', async () => {
    const { issuing, root } = cluster
    const mixed = { ...issuing, privateKeyPem: root.privateKeyPem }
    await expect(
      installIssuingAuthority(cluster.member('ctrl1').rotation, mixed),
    ).rejects.toMatchObject({
      fault: 'key-mismatch',
    })
    expect(cluster.proposals).toEqual([])
  })
})

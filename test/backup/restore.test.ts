import { existsSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import type { KindName } from '../../src/entities/kind-records.ts'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { fillDataFolderFromBackup, type RestoreTarget } from '../../src/backup/restore-backup.ts'
import { Keyring } from '../../src/cluster/secrets/keyring.ts'
import { StateMachine } from '../../src/fsm/state-machine.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import {
  type CertificateWithKey,
  issueControllerCertificate,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { createDataFolderWithState } from '../../src/store/folder/create-data-folder.ts'
import { LevelStateStore } from '../../src/store/state/level-state-store.ts'
import { openLog } from '../../src/store/log/open-log.ts'
import { startMs, TRUST_DOMAIN } from '../cluster/secrets-fixture.ts'
import { smallLog, temporaryFolder } from '../store/support/folders.ts'
import { BackedUp, factorSeed, faultOf, newKeyPair, pieces } from './backup-fixture.ts'

// Goal: a backup becomes a new cluster with all of its records, to which no token of the old
// cluster gives access.

const source = await BackedUp.make()
const key = newKeyPair()
const sealed = await source.save({ publicPem: key.publicPem })

const who = {
  nodeId: 'ctrlA',
  storeId: Uint8Array.from(Buffer.alloc(16, 7)),
  clusterId: 'another-cluster',
  generation: 2,
}

interface Restored {
  readonly dir: string
  readonly leaf: CertificateWithKey
}

async function restore(bytes = sealed, privateKeyPem: string | null = key.privatePem) {
  const dir = `${temporaryFolder()}/data`
  let made: CertificateWithKey | null = null
  const first: RestoreTarget = {
    ...who,
    address: 'ctrlA:1480',
    timeMs: startMs + 60_000,
    freeBytesMin: 0,
    leaf: async (issuer) => {
      const validity = validityStartingAt(startMs, 3_600_000)
      const hosts = ['ctrlA']
      made = await issueControllerCertificate({
        issuer,
        trustDomain: TRUST_DOMAIN,
        id: 'ctrlA',
        hosts,
        validity,
      })
      return made
    },
  }
  await createDataFolderWithState(
    dir,
    who,
    (folder) =>
      fillDataFolderFromBackup(folder, pieces(bytes, 64 * 1024), { privateKeyPem }, first),
    smallLog,
  )
  if (made === null) throw new Error('a restore asks for a certificate')
  return { dir, leaf: made } satisfies Restored
}

/** The folder as the controller opens it at its start, with the log applied. */
async function opened({ dir, leaf }: Restored) {
  const store = await LevelStateStore.open(dir)
  const machine = await StateMachine.open({ store, clock: source.cluster.clock })
  const mark = machine.persistedMark()
  const { restored, disk } = openLog(dir, {
    ...smallLog,
    statePosition: mark.position,
    stateCameBySnapshot: mark.cameBySnapshot,
    hasOtherVoters: false,
  })
  disk.closeNow()
  for (const entry of restored.entries) machine.apply(entry)
  const keyring = new Keyring({
    state: machine,
    selfId: 'ctrlA',
    log: source.cluster.log,
    privateKeyPem: () => leaf.privateKeyPem,
  })
  await keyring.refresh()
  return { machine, mark, restored, keyring }
}

function recordsOf(state: StateMachine, kind: KindName): readonly EntityRecord[] {
  return [...state.ids(kind)].sort().flatMap((id) => state.get(kind, id) ?? [])
}

test('a restore keeps identities, authenticators, services, auth policies and config types unchanged, and the log continues after the restored records', async () => {
  const { machine, mark, restored } = await opened(await restore())
  const before = source.cluster.machine
  for (const kind of [
    'identity',
    'service',
    'authenticator',
    'authPolicy',
    'configType',
  ] as const) {
    expect(recordsOf(machine, kind), kind).toEqual(recordsOf(before, kind))
  }
  expect(recordsOf(machine, 'service')).toHaveLength(3)
  const index = before.appliedIndex + 1
  expect(mark.position).toEqual({ index, term: 2 })
  expect(restored.base).toEqual(mark.position)
  expect(restored.commit).toBe(index + 1)
  expect(machine.appliedIndex).toBe(index + 1)
  const [told] = (await machine.listAudit({ limit: 1 })).records
  expect(told).toMatchObject({ action: 'cluster-restore', entityId: 'ctrlA', outcome: 'done' })
  await machine.close()
})

test('a restore creates a new cluster whose only controller is the one for which the backup is restored', async () => {
  const { machine, mark } = await opened(await restore())
  expect(machine.clusterId).toBe('another-cluster')
  const { configuration } = mark
  expect(configuration.$typeName).toBe(fromBinary(ConfigurationSchema, new Uint8Array()).$typeName)
  expect(configuration.members.map(({ id, voter, address }) => ({ id, voter, address }))).toEqual([
    { id: 'ctrlA', voter: true, address: 'ctrlA:1480' },
  ])
  expect(recordsOf(machine, 'admission').map(({ id }) => id)).toEqual(['ctrlA'])
  await machine.close()
})

test('a restore ends all API sessions, and replaces the key of session tokens by a new one', async () => {
  const { machine, keyring } = await opened(await restore())
  expect(source.cluster.machine.get('apiSession', 'a-session')).toBeDefined()
  expect(recordsOf(machine, 'apiSession')).toEqual([])
  const before = source.cluster.member('ctrl1').keyring.clusterKeys()
  const [now, ...more] = keyring.clusterKeys()
  expect(more).toEqual([])
  expect(now?.version).toBe((before.at(-1)?.version ?? 0) + 1)
  expect(before.map(({ secret }) => Buffer.from(secret).toString('hex'))).not.toContain(
    Buffer.from(now?.secret ?? []).toString('hex'),
  )
  await machine.close()
})

test('only the new controller can decrypt the restored keys of certificates and MFA enrollments', async () => {
  const { machine, keyring } = await opened(await restore())
  const before = source.cluster.member('ctrl1').keyring
  expect(keyring.factorKeys()).toEqual(before.factorKeys())
  expect(keyring.issuing()).toEqual(before.issuing())
  for (const record of recordsOf(machine, 'sharedSecret')) {
    const { versions } = record as unknown as { versions: { wrapped: object }[] }
    for (const { wrapped } of versions) expect(Object.keys(wrapped)).toEqual(['ctrlA'])
  }
  await machine.close()
})

test('two restores of one backup create clusters with different keys, and a restored cluster can be backed up and restored again', async () => {
  const [first, second] = [await opened(await restore()), await opened(await restore())]
  expect(first.keyring.clusterKeys()).not.toEqual(second.keyring.clusterKeys())
  const cluster = { ...source.parts.cluster, clusterId: who.clusterId }
  const parts = { ...source.parts, cluster, machine: first.machine, secrets: first.keyring }
  const again = Object.assign(Object.create(BackedUp.prototype) as BackedUp, {
    parts,
    refused: null,
  })
  const saved = await again.save({ publicPem: key.publicPem, isLinearizable: false })
  const third = await opened(await restore(saved))
  expect(recordsOf(third.machine, 'service')).toEqual(recordsOf(first.machine, 'service'))
  for (const { machine } of [first, second, third]) await machine.close()
})

test('a restore leaves no files behind if it fails because the backup has no secrets, because the backup is damaged, or because the key is missing', async () => {
  const without = await source.save({ hasSecrets: false })
  const damaged = Buffer.from(sealed)
  damaged[sealed.length >> 1] = (damaged[sealed.length >> 1] ?? 0) ^ 1
  const folders: string[] = []
  const failing = async (bytes: Buffer, pem: string | null): Promise<string> => {
    const folder = temporaryFolder()
    folders.push(folder)
    return await faultOf(
      createDataFolderWithState(
        `${folder}/data`,
        who,
        (building) =>
          fillDataFolderFromBackup(
            building,
            pieces(bytes, 64 * 1024),
            { privateKeyPem: pem },
            {
              ...who,
              address: 'ctrlA:1480',
              timeMs: startMs,
              freeBytesMin: 0,
              leaf: () => Promise.reject(new Error('nothing is to be signed')),
            },
          ),
        smallLog,
      ),
    )
  }
  expect(await failing(without, null)).toBe('NO_SECRETS')
  expect(await failing(damaged, key.privatePem)).toBe('DAMAGED')
  expect(await failing(sealed, null)).toBe('KEY_NEEDED')
  for (const folder of folders) expect(readdirSync(folder)).toEqual([])
})

test('a restore into a folder that is not empty is refused, and leaves no partial folder', async () => {
  const { dir } = await restore()
  const again = createDataFolderWithState(
    dir,
    who,
    () => Promise.reject(new Error('not asked')),
    smallLog,
  )
  await expect(again).rejects.toMatchObject({ code: 'NOT_EMPTY' })
  expect(existsSync(`${dirname(dir)}/.data.forming`)).toBe(false)
})

test('a backup with MFA enrollments cannot be restored without the key that encrypts them', async () => {
  const own = await BackedUp.make(0)
  const without = await own.saveSecrets(({ name }) => name !== 'factorKey')
  const { machine, keyring } = await opened(await restore(without, null))
  expect(keyring.factorKeys()).toEqual([])
  await machine.close()
  const guarded = await BackedUp.make(0, [factorSeed()])
  const lost = await guarded.saveSecrets(({ name }) => name !== 'factorKey')
  expect(await faultOf(restore(lost, null))).toBe('NO_SECRETS')
  expect(await faultOf(restore(await guarded.save(), null))).toBe('none')
})

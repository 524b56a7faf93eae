import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import { beforeEach, expect, test } from 'vitest'

import { CommandKind, FeatureLevelRaiseSchema } from '../../proto/gen/command_pb.ts'
import type { RestoreIntoClusterResult } from '../../src/cli/snapshot/restore-running.ts'
import { readFileChunks } from '../../src/backup/backup-files.ts'
import { loadBackup } from '../../src/backup/load-backup.ts'
import { BackupWriter } from '../../src/backup/write-backup.ts'
import { createRestoreControl } from '../../src/controller/backups/restore-control.ts'
import { createBackupControl } from '../../src/controller/backups/backup-control.ts'
import { SnapshotFolder } from '../../src/controller/backups/snapshot-folder.ts'
import type { BackupDeps } from '../../src/controller/backups/start-backup.ts'
import { currentStorePosition } from '../../src/fsm/records/write-behind.ts'
import { Problem } from '../../src/lib/problems.ts'
import { decryptFactorSecrets, encryptFactorSecrets } from '../../src/pki/secrets/factor-secrets.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { BackedUp, newKeyPair } from '../backup/backup-fixture.ts'
import { temporaryFolder } from '../store/support/folders.ts'
import { anySystem } from '../support/commands.ts'
import { RecordedActions } from '../support/recorded-actions.ts'
import { runHere } from './run-here.ts'
import { type ServedSocket, serveSocket } from './served-socket.ts'

// Goal: a restore into the running cluster shows its effects, requires a confirmation that nobody
// types by mistake, and either changes everything or states in one sentence why nothing was
// changed.

const key = newKeyPair()
let dir = ''
let file = ''
let keyFile = ''

beforeEach(() => {
  dir = temporaryFolder()
  file = join(dir, 'a.backup')
  keyFile = join(dir, 'backup.key')
  writeFileSync(keyFile, key.privatePem, { mode: 0o600 })
})

/** A cluster that was backed up; afterwards, a service was deleted and another one renamed. */
class Damaged implements AsyncDisposable {
  readonly of: BackedUp
  readonly unexpected: string[] = []
  /** IDs of voters that are not reachable. */
  away: readonly string[] = []
  level = 2
  #server: ServedSocket | null = null

  private constructor(of: BackedUp) {
    this.of = of
  }

  static async make(): Promise<Damaged> {
    const made = new Damaged(await BackedUp.make(3))
    const { of } = made
    await of.cluster.propose({
      kind: CommandKind.FEATURE_LEVEL_RAISE,
      payload: toBinary(FeatureLevelRaiseSchema, create(FeatureLevelRaiseSchema, { level: 2 })),
      actor: anySystem,
    })
    writeFileSync(file, await of.save({ publicPem: key.publicPem }))
    await of.remove('service', 's1')
    await of.patch('service', 's0', { name: 'renamed' })
    await made.#serve()
    return made
  }

  async #serve(): Promise<void> {
    const { parts, cluster: proposer } = this.of
    const cluster = this.#view()
    const actions = new RecordedActions()
    this.#server = await serveSocket(dir, {
      backups: createBackupControl({ ...parts, cluster, actions, folder: () => null }),
      restores: createRestoreControl({ ...parts, cluster, proposer }),
      logger: {
        warn: () => undefined,
        error: (fields) => this.unexpected.push(String(fields['err'])),
      },
    })
  }

  #view(): BackupDeps['cluster'] {
    const { cluster } = this.of.parts
    const progress = () => ({
      role: 'follower' as const,
      term: 1,
      commit: 0,
      persisted: 0,
      digestIndex: 0,
      digest: '',
      entitiesDigest: '',
      applied: this.of.cluster.machine.appliedIndex,
    })
    const self = (): Damaged => this
    return {
      ...cluster,
      get featureLevel() {
        return self().level
      },
      members: () =>
        cluster.members().map((member) => {
          return { ...member, connected: !this.away.includes(member.id), progress: progress() }
        }),
      readIndex: () => Promise.resolve(this.of.cluster.machine.appliedIndex),
    }
  }

  name(id: string): unknown {
    return this.of.cluster.machine.get('service', id)?.['name']
  }

  get clusterId(): string {
    return this.of.cluster.machine.clusterId
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.close()
    expect(this.unexpected).toEqual([])
  }
}

function restore(...words: readonly string[]) {
  const own = ['cluster', 'snapshot', 'restore', file, '--data', dir, '--key', keyFile]
  return runHere([...own, ...words])
}

test('a restore into a running cluster restores the records, after a preview and a confirmation', async () => {
  await using damaged = await Damaged.make()
  const silent = await restore()
  expect(silent.code).toBe(1)
  expect(silent.stdout).toMatch(/^apiSession +0 +0 +1\nservice +1 +1 +0$/m)
  expect(silent.stderr).toMatch(/nothing was changed\. Pass --confirm \S+ to proceed\n$/)
  const mistyped = await restore('--confirm', 'yes')
  expect(mistyped.stderr).toMatch(/confirmation does not match .*; nothing was changed\n$/)
  expect([damaged.name('s0'), damaged.name('s1')]).toEqual(['renamed', undefined])

  const restored = await restore('--confirm', damaged.clusterId)
  expect(restored.code, restored.stderr).toBe(0)
  expect(restored.stdout).toMatch(/^replaced the records at index \d+; applied by ctrl1, ctrl2$/m)
  expect(restored.stderr).toContain('staged 100 %\n')
  expect([damaged.name('s0'), damaged.name('s1')]).toEqual(['s0', 's1'])
  const { records } = await damaged.of.cluster.machine.listAudit({ limit: 3 })
  expect(records.map(({ action, reason }) => [action, reason])).toEqual([
    ['restore-end', expect.stringMatching(/^from a backup with SHA-256 \w{16}: cluster /)],
    ['restore-begin', ''],
    expect.anything(),
  ])

  const again = await restore('--json')
  expect(again.code, again.stderr).toBe(0)
  expect(JSON.parse(again.stdout)).toMatchObject({ changes: [], isRestored: false })
})

test('preview and result of a restore name the routers and identities that must enroll again', async () => {
  await using damaged = await Damaged.make()
  const { of } = damaged
  const ids = Array.from({ length: 32 }, (_, n) => `r${n + 10}`)
  for (const id of ids) await of.put('edgeRouter', id, { name: id })
  writeFileSync(file, await of.save({ publicPem: key.publicPem }))
  for (const id of ids) {
    await of.set('edgeRouter', id, { fingerprint: `f${id}`, certPem: `PEM ${id}` })
  }
  const fields = { method: 'cert', identityId: 'alice', fingerprint: 'a1', certPem: 'PEM a1' }
  await of.set('authenticator', 'cert of alice', fields, true)
  const lines = `must enroll again, because the backup does not contain their certificate:
  routers: ${ids.slice(0, 20).join(', ')} and 12 more (new token: flotilla re-enroll edge-router NAME)
  identities: Alice (new token: flotilla re-enroll identity NAME)
`
  const words = ['cluster', 'snapshot', 'diff', file, '--data', dir, '--key', keyFile]
  expect((await runHere(words)).stdout).toContain(lines)
  const asJson = JSON.parse((await runHere([...words, '--json'])).stdout) as object
  expect(asJson).toMatchObject({
    mustEnrollAgain: {
      routers: { count: 32, first: { length: 20 } },
      identities: { count: 1, first: [{ id: 'alice', name: 'Alice' }] },
    },
  })
  const refused = await restore()
  expect(refused.code).toBe(1)
  expect(refused.stdout).toContain(lines)
  const restored = await restore('--confirm', damaged.clusterId)
  expect(restored.code, restored.stderr).toBe(0)
  expect(restored.stdout.split('all sessions have ended')[1]).toContain(lines)
})

test('a database snapshot of the same cluster is restored without a key', async () => {
  await using damaged = await Damaged.make()
  const snapshots = new SnapshotFolder({ ...damaged.of.parts, dir, freeBytesMin: 0 })
  const snapshot = await snapshots.take(null)
  await damaged.of.remove('service', 's0')
  const { clusterId } = damaged
  const words = ['cluster', 'snapshot', 'restore', snapshot, '--data', dir, '--confirm', clusterId]
  const { code, stdout, stderr } = await runHere(words)
  expect(code, stderr).toBe(0)
  expect(stdout).toMatch(/^replaced the records at index \d+; applied by ctrl1, ctrl2$/m)
  expect([damaged.name('s0'), damaged.name('s1')]).toEqual(['renamed', undefined])
})

test('a restore into a running cluster prints one JSON document for scripts', async () => {
  await using damaged = await Damaged.make()
  const { code, stdout, stderr } = await restore('--confirm', damaged.clusterId, '--json')
  expect(code, stderr).toBe(0)
  const told = JSON.parse(stdout) as RestoreIntoClusterResult
  expect(told).toMatchObject({ isRestored: true, applied: ['ctrl1', 'ctrl2'] })
  expect(told.changes.find(({ kind }) => kind === 'service')?.ids).toEqual({
    created: ['s1'],
    changed: ['s0'],
    deleted: [],
  })
})

test('a refused restore into a running cluster prints one sentence and changes nothing', async () => {
  await using damaged = await Damaged.make()
  const refused = async (...words: readonly string[]): Promise<string> => {
    const { code, stderr } = await restore('--confirm', damaged.clusterId, ...words)
    expect(code, stderr).toBe(1)
    expect([damaged.name('s0'), damaged.name('s1')]).toEqual(['renamed', undefined])
    expect(stderr.match(/^flotilla: [^\n]*$/gm)).toHaveLength(1)
    return stderr
  }
  damaged.away = ['ctrl2']
  expect(await refused()).toMatch(/unreachable: ctrl2; start or remove first/)
  damaged.away = []
  damaged.level = 1
  expect(await refused()).toMatch(/needs feature level 2, the cluster is at 1/)
  damaged.level = 2
  expect(await refused('--if-index', '5')).toMatch(
    /after index 5; nothing was changed; look at .*snapshot diff/,
  )
  expect(await refused('--sha256', 'ab'.repeat(32))).toMatch(/use another copy/)
  damaged.of.refused = 'NODE_QUARANTINED'
  expect(await refused()).toMatch(/is quarantined because its state/)
  damaged.of.refused = null
  const whole = readFileSync(file)
  writeFileSync(file, whole.subarray(0, -40))
  expect(await refused()).toMatch(/cut off|end of the backup|damaged/)
  const flipped = Buffer.from(whole)
  flipped.writeUInt8(whole.readUInt8(3000) ^ 0xff, 3000)
  writeFileSync(file, flipped)
  expect(await refused()).toMatch(/use another copy or an older backup/)
})

const factor = { secret: Uint8Array.from(Buffer.alloc(20, 7)), recoveryCodes: ['abc', 'def'] }
const ofAdmin = { identityId: 'admin', secretId: 'one', codesId: 'two' }

/** The backup as if it came from another cluster, with a second factor of its administrator. */
async function ofAnotherCluster(): Promise<Buffer> {
  const store = new MemoryStateStore()
  const { state, manifest, secrets } = await loadBackup(readFileChunks(file), store, {
    privateKeyPem: key.privatePem,
  })
  const clusterId = 'another-cluster'
  state.clusterId = clusterId
  const own = {
    name: 'factorKey',
    version: 1,
    secret: Uint8Array.from(Buffer.alloc(32, 9)),
  } as const
  const sealed = encryptFactorSecrets(own.secret, factor, { ...ofAdmin, clusterId })
  const base = { id: 'admin', createdAt: 1, updatedAt: 1, revision: 1, keyVersion: 1 }
  state.put('mfa', { ...base, ...ofAdmin, isVerified: true, sealed })
  await store.write(state.takeDirty(), currentStorePosition(state))
  const { format: _format, encryption: _encryption, ...origin } = manifest
  const writer = await BackupWriter.begin({
    origin: { ...origin, clusterId },
    snapshot: await store.snapshot(),
    recipient: null,
    secrets: [...(secrets ?? []).filter(({ name }) => name !== 'factorKey'), own],
  })
  const pieces: Uint8Array[] = []
  for await (const piece of writer.chunks()) pieces.push(piece)
  return Buffer.concat(pieces)
}

test('a restore from another cluster requires --other-cluster, and then the restored second factors keep working', async () => {
  await using damaged = await Damaged.make()
  const { machine } = damaged.of.cluster
  writeFileSync(file, await ofAnotherCluster())
  const refused = await restore('--confirm', damaged.clusterId)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toMatch(
    /belongs to cluster another-cluster, this is .*pass --other-cluster/,
  )
  expect(damaged.name('s1')).toBeUndefined()
  const restored = await restore('--confirm', damaged.clusterId, '--other-cluster')
  expect(restored.code, restored.stderr).toBe(0)
  expect(damaged.name('s1')).toBe('s1')
  expect(machine.get('service', 's1')?.revision).toBe(machine.appliedIndex)
  const [inForce] = damaged.of.parts.secrets.held().filter(({ name }) => name === 'factorKey')
  const mfa = machine.get('mfa', 'admin')
  const context = { ...ofAdmin, clusterId: damaged.clusterId }
  expect(
    decryptFactorSecrets(inForce?.secret ?? Buffer.alloc(32), mfa?.sealed ?? '', context),
  ).toEqual(factor)
})

test('a failed restore into a running cluster removes its staged data, so that the next restore can begin', async () => {
  await using damaged = await Damaged.make()
  const { cluster } = damaged.of
  const propose = cluster.propose.bind(cluster)
  let isBroken = true
  cluster.propose = async (input) => {
    if (isBroken && input.kind === CommandKind.RESTORE_CHUNK) throw new Problem('UNHANDLED')
    return await propose(input)
  }
  const broken = await restore('--confirm', damaged.clusterId)
  expect(broken.code).toBe(1)
  expect(broken.stderr).toMatch(/nothing was changed\n$/)
  isBroken = false
  const restored = await restore('--confirm', damaged.clusterId)
  expect(restored.code, restored.stderr).toBe(0)
})

test('a restore into a running cluster repeats requests that find no leader or whose outcome is unknown', async () => {
  await using damaged = await Damaged.make()
  const { cluster } = damaged.of
  const propose = cluster.propose.bind(cluster)
  const lost = new Set<number>()
  cluster.propose = async (input) => {
    // Loses the response to each request once before, and once after it took effect.
    if (!lost.has(input.kind)) {
      lost.add(input.kind)
      throw new Problem('CLUSTER_NO_LEADER')
    }
    const applied = await propose(input)
    if (!lost.has(-input.kind)) {
      lost.add(-input.kind)
      throw new Problem('OUTCOME_UNKNOWN')
    }
    return applied
  }
  const restored = await restore('--confirm', damaged.clusterId)
  expect(restored.code, restored.stderr).toBe(0)
  expect([damaged.name('s0'), damaged.name('s1')]).toEqual(['s0', 's1'])
})

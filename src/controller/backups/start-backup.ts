import type { BackupRecipient } from '../../backup/encryption.ts'
import type { BackupSecret } from '../../backup/content.ts'
import { BackupWriter } from '../../backup/write-backup.ts'
import type { Keyring } from '../../cluster/secrets/keyring.ts'
import type { Clock } from '../../lib/clock.ts'
import { isSecretVersionNeeded, type SharedSecretName } from '../../lib/shared-secrets.ts'
import { Problem, type ProblemCode } from '../../lib/problems.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { ReplicatedStateMachine } from '../../ports/replicated-state-machine.ts'
import type { StateView } from '../../ports/state-view.ts'

export interface BackupDeps {
  readonly cluster: Pick<
    ClusterView,
    'clusterId' | 'generation' | 'selfId' | 'featureLevel' | 'members' | 'readIndex'
  >
  readonly machine: Pick<ReplicatedStateMachine, 'snapshot' | 'waitForApplied'> &
    Pick<StateView, 'get' | 'logTimeMs'>
  readonly secrets: Pick<Keyring, 'refresh' | 'held'>
  readonly clock: Clock
  readonly trustDomain: string
  readonly version: string
  readonly caPem: () => string
  /** Code of the problem while this controller must not answer from its state; otherwise null. */
  readonly refusal: () => ProblemCode | null
}

export interface StartBackupOptions {
  readonly recipient: BackupRecipient | null
  readonly hasSecrets: boolean
  /**
   * True: the backup contains every acknowledged write. False: the backup contains the state that
   * this controller has applied, without contact to the leader.
   */
  readonly isLinearizable: boolean
}

export interface StartedBackup {
  readonly writer: BackupWriter
  /** Closes the snapshot. The caller must always call it. */
  readonly close: () => Promise<void>
}

const APPLY_TIMEOUT_MS = 10_000
/**
 * Names of the secrets in a backup. The cluster key is not among them, because a restored cluster
 * creates a new one.
 */
const KEPT: readonly SharedSecretName[] = ['factorKey', 'issuingAuthority']

/** Starts a backup of the current state. @throws {Problem} */
export async function startBackup(
  deps: BackupDeps,
  options: StartBackupOptions,
): Promise<StartedBackup> {
  const { cluster, machine, clock, trustDomain, version, caPem } = deps
  requireServableState(deps)
  if (options.isLinearizable) await reachNow(deps)
  const before = options.hasSecrets ? held(deps) : []
  const snapshot = await machine.snapshot()
  const close = async (): Promise<void> => {
    // If the store was replaced meanwhile, the snapshot is already closed, and closing it again may
    // fail.
    await snapshot.close().catch(() => undefined)
  }
  try {
    const secrets = options.hasSecrets ? await openSecrets(deps, before) : null
    const origin = {
      trustDomain,
      version,
      caPem: caPem(),
      takenAtMs: clock.nowMs(),
      clusterId: cluster.clusterId,
      generation: cluster.generation,
      controllerId: cluster.selfId,
      members: cluster.members().map(({ id }) => id),
    }
    const { recipient } = options
    return { writer: await BackupWriter.begin({ origin, snapshot, secrets, recipient }), close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * The bytes of a backup. Throws if this controller must no longer answer from its state while the
 * bytes are read.
 */
export async function* streamBackupBytes(
  deps: Pick<BackupDeps, 'refusal'>,
  { writer, close }: StartedBackup,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of writer.chunks()) {
      requireServableState(deps)
      yield chunk
    }
    requireServableState(deps)
  } finally {
    await close()
  }
}

/**
 * Checks that this controller may answer from its state.
 * @throws {Problem} while it must not.
 */
export function requireServableState({ refusal }: Pick<BackupDeps, 'refusal'>): void {
  const code = refusal()
  if (code !== null) throw new Problem(code)
}

/** Waits until the state contains every write that was acknowledged before the request. */
async function reachNow({ cluster, machine }: BackupDeps): Promise<void> {
  const index = await cluster.readIndex()
  if (await machine.waitForApplied(index, APPLY_TIMEOUT_MS)) return
  throw new Problem('INDEX_NOT_REACHED')
}

function held({ secrets }: BackupDeps): readonly BackupSecret[] {
  return secrets.held().filter(({ name }) => KEPT.includes(name))
}

/**
 * The secrets that were available before or after the snapshot. Together they include every secret
 * to which the snapshot refers.
 */
async function openSecrets(
  deps: BackupDeps,
  before: readonly BackupSecret[],
): Promise<readonly BackupSecret[]> {
  await deps.secrets.refresh()
  const all = new Map([...before, ...held(deps)].map((one) => [`${one.name} ${one.version}`, one]))
  requireOpened(deps, all)
  return [...all.values()].map(({ name, version, secret }) => ({ name, version, secret }))
}

function requireOpened({ machine }: BackupDeps, opened: ReadonlyMap<string, BackupSecret>): void {
  for (const name of KEPT) {
    const versions = machine.get('sharedSecret', name)?.versions ?? []
    const missing = versions
      .filter((version) => isSecretVersionNeeded(name, version, machine.logTimeMs))
      .some(({ version }) => !opened.has(`${name} ${version}`))
    if (!missing && (name === 'factorKey' || versions.length > 0)) continue
    throw new Problem('CLUSTER_NO_LEADER', {
      detail: `this controller has no ${name} yet; retry in a moment, or ask another controller`,
    })
  }
}

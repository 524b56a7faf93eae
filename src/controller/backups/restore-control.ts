import { create, toBinary } from '@bufbuild/protobuf'

import {
  CommandKind,
  RestoreBeginSchema,
  RestoreChunkSchema,
  RestoreEndSchema,
} from '../../../proto/gen/command_pb.ts'
import { fieldProblem, Problem, type ProblemCode } from '../../lib/problems.ts'
import { refusalProblem } from '../../lib/refusal-problem.ts'
import type { Actor } from '../../ports/actor.ts'
import type { MemberView } from '../../ports/cluster-view.ts'
import { commandFeatureLevel } from '../../ports/feature-level.ts'
import type { AppliedProposal, Proposer } from '../../ports/proposer.ts'
import type {
  DecryptedFactor,
  RestoreBeginRequest,
  RestoreControl,
  RestoreEndRequest,
  ReencryptedFactor,
} from '../../api/backups/restore-control.ts'
import { type BackupDeps, requireServableState } from './start-backup.ts'
import { encryptFactorSecrets } from '../../pki/secrets/factor-secrets.ts'

interface RestoreDeps extends Pick<BackupDeps, 'cluster' | 'machine' | 'secrets' | 'refusal'> {
  readonly proposer: Proposer
}

const RETRY_MS = 500
/** Maximum retries; together they last much longer than an election takes. */
const RETRIES_MAX = 60
const APPLIED_POLL_MS = 100
const APPLIED_MS_MAX = 60_000
/**
 * Error codes after which a retry may succeed. A repeated restore command takes effect only once.
 */
const passing: ReadonlySet<ProblemCode> = new Set([
  'CLUSTER_NO_LEADER',
  'OUTCOME_UNKNOWN',
  'SERVER_TOO_MANY_REQUESTS',
])

/** Restores a backup into the running cluster at the request of an operator. */
export function createRestoreControl(deps: RestoreDeps): RestoreControl {
  return {
    begin: async (announced, by) => {
      requireReady(deps)
      await propose(deps, CommandKind.RESTORE_BEGIN, beginOf(announced), by)
    },
    stage: async (chunk, by) => {
      requireServableState(deps)
      const payload = toBinary(RestoreChunkSchema, create(RestoreChunkSchema, chunk))
      await propose(deps, CommandKind.RESTORE_CHUNK, payload, by)
    },
    end: async (ending, by) => {
      if (!ending.isAbandoned) requireReady(deps)
      const { index } = await propose(deps, CommandKind.RESTORE_END, endOf(ending), by)
      return { index, applied: ending.isAbandoned ? [] : await appliedBy(deps.cluster, index) }
    },
    seal: (factors) => sealFactors(deps, factors),
  }
}

/**
 * Checks that all voters can take part in a restore.
 * @throws {Problem} if this controller cannot serve its state, the feature level is too low, or a
 * voter is unreachable or failing.
 */
function requireReady(deps: RestoreDeps): void {
  requireServableState(deps)
  const { cluster } = deps
  const level = commandFeatureLevel(CommandKind.RESTORE_END)
  if (cluster.featureLevel < level) {
    throw new Problem('FEATURE_LEVEL_NOT_RAISED', {
      detail: `a restore into the running cluster needs feature level ${level}, the cluster is at ${cluster.featureLevel}; upgrade every controller to this release first`,
    })
  }
  const away = voters(cluster).filter(({ connected, vitals }) => !connected || vitals?.isFailing)
  if (away.length === 0) return
  throw new Problem('RESTORE_REFUSED', {
    detail: `unreachable: ${away.map(({ id }) => id).join(', ')}; start or remove first, as every controller takes part in a restore`,
  })
}

function voters(cluster: BackupDeps['cluster']): MemberView[] {
  return cluster.members().filter(({ voter }) => voter)
}

/**
 * Proposes a step of the restore. After a temporary error, repeats it up to `RETRIES_MAX` times.
 * @throws {Problem} the error with which the state machine refuses the restore; the temporary error
 * after the last retry.
 */
async function propose(
  { proposer }: RestoreDeps,
  kind: CommandKind,
  payload: Uint8Array,
  actor: Actor,
): Promise<AppliedProposal> {
  for (let left = RETRIES_MAX; ; left -= 1) {
    try {
      const applied = await proposer.propose({ kind, payload, actor })
      if (applied.outcome.ok) return applied
      throw refusalProblem(applied.outcome)
    } catch (error) {
      if (!(error instanceof Problem) || !passing.has(error.code) || left === 0) throw error
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

/**
 * Waits until all voters have applied the index, but at most `APPLIED_MS_MAX`. A slower voter
 * restores later, when it reaches that index of its log.
 */
async function appliedBy(cluster: BackupDeps['cluster'], index: number): Promise<string[]> {
  const endMs = performance.now() + APPLIED_MS_MAX
  for (;;) {
    const all = voters(cluster)
    const applied = all.filter(({ progress }) => (progress?.applied ?? 0) >= index)
    if (applied.length === all.length || performance.now() > endMs) {
      return applied.map(({ id }) => id)
    }
    await new Promise((resolve) => setTimeout(resolve, APPLIED_POLL_MS))
  }
}

function beginOf({ bytes, sha256, ...announced }: RestoreBeginRequest): Uint8Array {
  const message = create(RestoreBeginSchema, {
    ...announced,
    bytes: String(bytes),
    sha256: Buffer.from(sha256, 'hex'),
  })
  return toBinary(RestoreBeginSchema, message)
}

function endOf({ sha256, ifIndex, ...ending }: RestoreEndRequest): Uint8Array {
  const message = create(RestoreEndSchema, {
    ...ending,
    ifIndex: String(ifIndex),
    sha256: Buffer.from(sha256, 'hex'),
  })
  return toBinary(RestoreEndSchema, message)
}

/** Maximum second factors in one request. */
const FACTORS_MAX = 64

/**
 * Encrypts second factors from another cluster's backup with this cluster's key. The caller has the
 * key of the backup and so already knows the content of the factors.
 * @throws {Problem} CLUSTER_NO_LEADER while this controller has no current key; COULD_NOT_VALIDATE.
 */
async function sealFactors(
  { cluster, secrets }: Pick<BackupDeps, 'cluster' | 'secrets'>,
  factors: readonly DecryptedFactor[],
): Promise<readonly ReencryptedFactor[]> {
  if (factors.length > FACTORS_MAX) {
    throw fieldProblem('factors', `must be at most ${FACTORS_MAX} second factors`)
  }
  await secrets.refresh()
  const key = secrets
    .held()
    .find(({ name, overlapEndsAtMs }) => name === 'factorKey' && overlapEndsAtMs === null)
  if (key === undefined) {
    throw new Problem('CLUSTER_NO_LEADER', {
      detail: 'this controller does not have the key of second factors yet; retry in a moment',
    })
  }
  const { clusterId } = cluster
  return factors.map(({ secret, recoveryCodes, ...whose }) => ({
    sealed: encryptFactorSecrets(key.secret, { secret, recoveryCodes }, { clusterId, ...whose }),
    keyVersion: key.version,
  }))
}

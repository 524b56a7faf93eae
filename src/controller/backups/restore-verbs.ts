import { create, toBinary } from '@bufbuild/protobuf'

import {
  CommandKind,
  RestoreBeginSchema,
  RestoreChunkSchema,
  RestoreEndSchema,
} from '../../../proto/gen/command_pb.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import type { ProblemCode } from '../../lib/problems.ts'
import type { Actor } from '../../ports/actor.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import { levelOfKind } from '../../ports/feature-level.ts'
import type { Applied, Proposer } from '../../ports/proposer.ts'
import type { AdminVerbs } from '../admin/server.ts'
import type { BackupParts } from './take-backup.ts'
import { sealFactors } from './seal-factors.ts'

export interface RestoreParts extends Pick<
  BackupParts,
  'cluster' | 'machine' | 'secrets' | 'refusal'
> {
  readonly proposer: Proposer
}

/** What `restore-end` answers once the records are replaced. */
export interface RestoredIndex {
  /** Of the entry that replaced them. */
  readonly index: number
  /** Voters that have applied it, sorted by id. */
  readonly applied: readonly string[]
}

type Params = Readonly<Record<string, unknown>>

const RETRY_MS = 500
/** A new leader is there long before. */
const RETRIES_MAX = 60
const APPLIED_POLL_MS = 100
const APPLIED_MS_MAX = 60_000
/** What a new leader, or a moment, puts right. Each command of a restore takes effect once, however often it is proposed. */
const passing: ReadonlySet<ProblemCode> = new Set([
  'CLUSTER_NO_LEADER',
  'OUTCOME_UNKNOWN',
  'SERVER_TOO_MANY_REQUESTS',
])

/** The verbs by which `cluster snapshot restore` puts the records of a backup into the running cluster. */
export function restoreVerbs(parts: RestoreParts): AdminVerbs {
  return {
    'restore-begin': async (params, by) => {
      requireReady(parts)
      const id = textIn(params, 'id')
      await propose(parts, CommandKind.RESTORE_BEGIN, beginOf(params), by)
      return { id }
    },
    'restore-chunk': async (params, by) => {
      requireServing(parts)
      await propose(parts, CommandKind.RESTORE_CHUNK, chunkOf(params), by)
      return null
    },
    'restore-end': async (params, by) => {
      const isAbandoned = params['isAbandoned'] === true
      if (!isAbandoned) requireReady(parts)
      const { index } = await propose(parts, CommandKind.RESTORE_END, endOf(params), by)
      return { index, applied: isAbandoned ? [] : await appliedBy(parts.cluster, index) }
    },
    'restore-factors': (params) => sealFactors(parts, params),
  }
}

/** @throws {Problem} unless a restore could go through now. */
function requireReady(parts: RestoreParts): void {
  requireServing(parts)
  const { cluster } = parts
  const level = levelOfKind(CommandKind.RESTORE_END)
  if (cluster.featureLevel < level) {
    throw new Problem('FEATURE_LEVEL_NOT_RAISED', {
      detail: `a restore into the running cluster needs feature level ${level} and level ${cluster.featureLevel} is in force; run this release on every controller first`,
    })
  }
  const away = voters(cluster).filter(({ connected, vitals }) => !connected || vitals?.isFailing)
  if (away.length === 0) return
  throw new Problem('RESTORE_REFUSED', {
    detail: `${away.map(({ id }) => id).join(', ')} cannot be reached; start or remove what is away, so that every controller takes the same step`,
  })
}

function requireServing({ refusal }: RestoreParts): void {
  const code = refusal()
  if (code !== null) throw new Problem(code)
}

function voters(cluster: ClusterView): MemberView[] {
  return cluster.members().filter(({ voter }) => voter)
}

/** Proposes until it is known what came of it. @throws {Problem} what it was refused for. */
async function propose(
  { proposer }: RestoreParts,
  kind: CommandKind,
  payload: Uint8Array,
  actor: Actor,
): Promise<Applied> {
  for (let left = RETRIES_MAX; ; left -= 1) {
    try {
      const applied = await proposer.propose({ kind, payload, actor })
      const { outcome } = applied
      if (outcome.ok) return applied
      const { code, fault, detail } = outcome
      throw new Problem(code, {
        ...(fault === null ? {} : { fault }),
        ...(detail === null ? {} : { detail }),
      })
    } catch (error) {
      if (!(error instanceof Problem) || !passing.has(error.code) || left === 0) throw error
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

/** Waits for the voters, in bounded time: one that is slower takes the step from its log. */
async function appliedBy(cluster: ClusterView, index: number): Promise<string[]> {
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

function beginOf(params: Params): Uint8Array {
  const message = create(RestoreBeginSchema, {
    id: textIn(params, 'id'),
    chunks: countIn(params, 'chunks'),
    bytes: String(countIn(params, 'bytes')),
    sha256: Buffer.from(textIn(params, 'sha256'), 'hex'),
    clusterId: textIn(params, 'clusterId'),
    featureLevel: countIn(params, 'featureLevel'),
    allowsOtherCluster: params['allowsOtherCluster'] === true,
  })
  return toBinary(RestoreBeginSchema, message)
}

function chunkOf(params: Params): Uint8Array {
  const message = create(RestoreChunkSchema, {
    id: textIn(params, 'id'),
    number: countIn(params, 'number'),
    bytes: Buffer.from(textIn(params, 'bytes'), 'base64'),
    endsBlock: params['endsBlock'] === true,
  })
  return toBinary(RestoreChunkSchema, message)
}

function endOf(params: Params): Uint8Array {
  const message = create(RestoreEndSchema, {
    id: textIn(params, 'id'),
    isAbandoned: params['isAbandoned'] === true,
    sha256: Buffer.from(textIn(params, 'sha256'), 'hex'),
    ifIndex: String(countIn(params, 'ifIndex')),
    reason: textIn(params, 'reason'),
  })
  return toBinary(RestoreEndSchema, message)
}

function textIn(params: Params, name: string): string {
  const value = params[name]
  if (typeof value === 'string') return value
  throw fieldProblem(name, 'must be a text')
}

function countIn(params: Params, name: string): number {
  const value = params[name]
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value)
  throw fieldProblem(name, 'must be a whole number')
}

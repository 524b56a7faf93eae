import { fromBinary } from '@bufbuild/protobuf'

import {
  type RestoreBegin,
  RestoreBeginSchema,
  RestoreChunkSchema,
  type RestoreEnd,
  RestoreEndSchema,
} from '../../../proto/gen/command_pb.ts'
import { applyAllExpiries } from '../expiry/apply-expiries.ts'
import { entitiesByName } from '../../entities/registry.ts'
import { toHex } from '../../lib/text/to-hex.ts'
import type { Outcome } from '../../ports/proposer.ts'
import {
  applyRecordReplacement,
  planRecordReplacement,
  restoredKinds,
  findUnreadableFactor,
} from './replacement.ts'
import { restoreLimits } from '../records/restore-limits.ts'
import type { StagedHead } from '../records/staged-restore.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'
import { createWriteConsequences } from '../apply/references.ts'

const ID = /^[A-Za-z0-9_.-]{1,64}$/
const SHA256_BYTES = 32

/**
 * Creates the staging area for one restore. A repeated command with the same id changes nothing.
 */
export function beginRestore(
  state: State,
  payload: Uint8Array,
  { logTimeMs }: CommandContext,
): Outcome {
  const message = fromBinary(RestoreBeginSchema, payload)
  const { head } = state.staged
  if (head !== null && head.id === message.id) return acceptedOutcome(message.id)
  // @guard restore-one-at-a-time, 44-restore-takes-effect-twice:1
  if (head !== null)
    return refusedOutcome('RESTORE_UNDER_WAY', `another one may go on until ${untilText(head)}`)
  const fault = beginFault(state, message)
  if (fault !== null) return fault
  const { id, chunks, clusterId } = message
  state.staged.begin({
    id,
    chunks,
    clusterId,
    bytes: Number(message.bytes),
    sha256: toHex(message.sha256),
    expiresAtMs: logTimeMs + restoreLimits.lifetimeMs,
  })
  return acceptedOutcome(id)
}

function untilText({ expiresAtMs }: StagedHead): string {
  return new Date(expiresAtMs).toISOString()
}

function beginFault(state: State, message: RestoreBegin): Outcome | null {
  const { id, chunks, sha256, clusterId, featureLevel, allowsOtherCluster } = message
  const bytes = Number(message.bytes)
  if (!ID.test(id)) return fieldFaultOutcome({ field: 'id', reason: 'id is not usable' })
  if (id === state.staged.lastId)
    return refusedOutcome('RESTORE_REFUSED', 'this restore is complete')
  if (chunks < 1 || bytes < chunks || bytes > chunks * restoreLimits.chunkBytesMax) {
    return fieldFaultOutcome({ field: 'chunks', reason: 'chunks and bytes do not fit together' })
  }
  if (bytes > restoreLimits.stagedBytesMax) {
    return refusedOutcome(
      'RESTORE_REFUSED',
      `at most ${restoreLimits.stagedBytesMax} bytes can be staged`,
    )
  }
  if (sha256.length !== SHA256_BYTES) {
    return fieldFaultOutcome({ field: 'sha256', reason: 'sha256 is not usable' })
  }
  if (featureLevel > state.featureLevel) {
    return refusedOutcome(
      'RESTORE_REFUSED',
      `the backup is of feature level ${featureLevel} and level ${state.featureLevel} is in force`,
    )
  }
  if (clusterId === state.clusterId || allowsOtherCluster) return null
  return refusedOutcome(
    'RESTORE_REFUSED',
    `the backup is of another cluster, ${clusterId.slice(0, 64)}`,
  )
}

/**
 * Stages the next chunk. A chunk that is already staged (for example because of a retry) changes
 * nothing.
 */
export function stageRestoreChunk(state: State, payload: Uint8Array): Outcome {
  const { id, number, bytes, endsBlock } = fromBinary(RestoreChunkSchema, payload)
  const { staged } = state
  const { head } = staged
  if (head?.id !== id) return notStaged()
  if (number < staged.received) return acceptedOutcome(id)
  if (number > staged.received) {
    return refusedOutcome('RESTORE_REFUSED', `chunk ${staged.received} is the next one`)
  }
  const isTooLarge = bytes.length === 0 || bytes.length > restoreLimits.chunkBytesMax
  if (isTooLarge || number >= head.chunks || staged.bytes + bytes.length > head.bytes) {
    return refusedOutcome('RESTORE_REFUSED', 'the chunk is not what was announced')
  }
  // @guard restore-chunks-change-no-record
  if (staged.add(bytes, endsBlock, restoredKinds)) return acceptedOutcome(id)
  return refusedOutcome('RESTORE_REFUSED', 'the chunk holds no records that can be restored')
}

function notStaged(): Outcome {
  return refusedOutcome('RESTORE_REFUSED', 'it is not staged, or no longer; begin again')
}

/**
 * Ends a restore: replaces the records of all `restoredKinds` with the staged ones and ends all
 * sessions, or drops the staged records.
 */
export function endRestore(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const message = fromBinary(RestoreEndSchema, payload)
  const { staged } = state
  // The restore has taken effect: the command repeats its end, or would drop it too late.
  // @guard restore-takes-effect-once, 44-restore-takes-effect-twice:2
  if (message.id === staged.lastId) return acceptedOutcome(message.id)
  if (staged.head?.id !== message.id)
    return message.isAbandoned ? acceptedOutcome(message.id) : notStaged()
  if (message.isAbandoned) {
    staged.clear()
    return acceptedOutcome(message.id)
  }
  return swapFault(state, staged.head, message) ?? swapIn(state, staged.head, context)
}

function swapFault(state: State, head: StagedHead, message: RestoreEnd): Outcome | null {
  // @guard restore-digest-of-the-whole
  if (!state.staged.isWhole || toHex(message.sha256) !== head.sha256) {
    return refusedOutcome('RESTORE_REFUSED', 'what is staged is not whole; begin again')
  }
  const index = Number(message.ifIndex)
  if (index === 0 || !hasWritesAfter(state, index)) return null
  return refusedOutcome('RESTORE_REFUSED', `records were written after index ${index}`)
}

/**
 * Whether a record that the restore would replace was written after the index. Also true if the
 * index is too old to decide this.
 */
function hasWritesAfter(state: State, index: number): boolean {
  for (const record of state.audit.newestFirst()) {
    if (Number(record['index']) <= index) return false
    if (record['outcome'] === 'done' && isOfRecords(record)) return true
  }
  return true
}

function isOfRecords({ entity, action }: Readonly<Record<string, unknown>>): boolean {
  const table = entitiesByName.get(String(entity))?.table
  return action === 'restore-end' || (table !== undefined && restoredKinds.has(table))
}

function swapIn(state: State, { id, clusterId }: StagedHead, context: CommandContext): Outcome {
  const revision = clusterId === state.clusterId ? null : context.index
  const replacement = planRecordReplacement(state, state.staged.records(restoredKinds), revision)
  const unreadable = findUnreadableFactor(state, replacement)
  if (unreadable !== null) {
    const { identityId, keyVersion } = unreadable
    return refusedOutcome(
      'RESTORE_REFUSED',
      `the second factor of ${identityId.slice(0, 64)} is encrypted by version ${keyVersion} of a key that this cluster does not hold`,
    )
  }
  // @guard tokens-after-a-restore
  revokeSessions(state, context)
  applyRecordReplacement(state, replacement)
  // @guard access-that-ended--restored
  applyAllExpiries(state, context)
  state.staged.clear(id)
  return acceptedOutcome(id)
}

/**
 * Revokes the tokens of the sessions that the restore ends. Otherwise routers would accept these
 * tokens, which they verify without a query to a controller, and an unredeemed code could open such
 * a session again.
 */
function revokeSessions(state: State, context: CommandContext): void {
  const { afterDelete } = context.rulesOf('apiSession')
  const consequences = createWriteConsequences(state, context)
  for (const id of Array.from(state.table('apiSession').ids)) {
    const session = state.get('apiSession', id)
    if (session !== undefined) afterDelete?.(session, consequences)
  }
}

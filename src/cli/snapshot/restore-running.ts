import { BackupFault } from '../../backup/backup-fault.ts'
import { readFileChunks } from '../../backup/backup-files.ts'
import { loadBackup, type LoadedBackup } from '../../backup/load-backup.ts'
import { type RestoreContent, splitRestoreContent } from '../../backup/restore-content.ts'
import type { RestoreProgress } from '../../api/backups/restore-control.ts'
import type {
  restoreBeginSchema,
  restoreChunkSchema,
  restoreEndSchema,
} from '../../api/backups/restores-schema.ts'
import type { SchemaValue } from '../../api/schemas/typed-schema.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { newShortId } from '../../lib/random.ts'
import { MemoryStateStore } from '../../store/state/memory-state-store.ts'
import { AdminSocketError, sendToAdminSocket } from '../client/admin-socket.ts'
import { type Interrupts, delayInterrupts } from '../terminal/interrupts.ts'
import { printJson, printLine, quoteShellWord } from '../terminal/output.ts'
import { promptExactText } from '../terminal/prompt.ts'
import { prefixErrorsWithFile } from './backup-file.ts'
import { type BackupPosition, backupPositionJson, backupOriginText } from './backup-text.ts'
import {
  findRestoreEffects,
  loadRunningState,
  type RestoreEffects,
  reEnrollmentsText,
  restoreChangesText,
} from './diff.ts'
import { reencryptFactorsForRunningCluster } from './restored-factors.ts'
import { chooseDataFolder } from './save.ts'
import { readBackupKey, requireSha256 } from './verify.ts'
import { errorMessage } from '../../lib/error-code.ts'

export interface RestoreIntoClusterOptions {
  readonly config?: string
  readonly data?: string
  readonly key?: string
  readonly sha256?: string
  readonly confirm?: string
  readonly ifIndex?: number
  readonly otherCluster?: boolean
  readonly json?: boolean
}

/** Output of `cluster snapshot restore FILE --json`. */
export interface RestoreIntoClusterResult extends Partial<RestoreProgress>, RestoreEffects {
  readonly clusterId: string
  readonly from: BackupPosition
  /** False if no record differs, so that nothing was changed. */
  readonly isRestored: boolean
}

/**
 * Time limit for one step. A step waits until the cluster has a leader, and the last step waits for
 * every voter.
 */
const STEP_TIMEOUT_MS = 120_000
const PROGRESS_PERCENT = 10

/**
 * `cluster snapshot restore FILE --config CONFIG` replaces the records of the running cluster with
 * those in a backup, in one step.
 * @throws {CommandFailure} with nothing changed, unless its message states that the outcome is
 * unknown.
 */
export async function restoreIntoCluster(
  path: string,
  options: RestoreIntoClusterOptions,
): Promise<void> {
  const data = chooseDataFolder(options)
  const backup = await prefixErrorsWithFile(path, () => load(path, options))
  const live = await loadRunningState(data, false)
  await prefixErrorsWithFile(path, () => Promise.resolve(refuseOther(live, backup, options)))
  await prefixErrorsWithFile(path, () => reencryptFactorsForRunningCluster(data, live, backup))
  const effects = findRestoreEffects(live, backup)
  const isJson = options.json === true
  if (!isJson) printLine(restoreChangesText(live, backup, effects).join('\n'))
  const result = {
    clusterId: live.manifest.clusterId,
    from: backupPositionJson(backup.manifest),
    ...effects,
    isRestored: false,
  }
  if (effects.changes.length === 0) {
    if (isJson) printJson(result)
    return
  }
  await confirm(live.manifest.clusterId, options)
  const content = await prefixErrorsWithFile(path, () =>
    Promise.resolve(splitRestoreContent(backup.state)),
  )
  const restored = await carryOut({ data, content, backup, options })
  if (isJson) printJson({ ...result, ...restored, isRestored: true })
  else printRestored(restored, effects)
}

async function load(
  path: string,
  { key, sha256 }: RestoreIntoClusterOptions,
): Promise<LoadedBackup> {
  const privateKeyPem = readBackupKey(key)
  const backup = await loadBackup(readFileChunks(path), new MemoryStateStore(), { privateKeyPem })
  requireSha256(path, backup, sha256)
  return backup
}

/**
 * Refuses a backup that the controllers would refuse. Called before the operator is prompted for a
 * confirmation.
 * @throws {BackupFault}
 */
function refuseOther(
  live: LoadedBackup,
  backup: LoadedBackup,
  { otherCluster }: RestoreIntoClusterOptions,
): void {
  const [now, then] = [live.manifest, backup.manifest]
  if (then.featureLevel > now.featureLevel) {
    throw new BackupFault(
      'NEWER_LEVEL',
      `the backup has feature level ${then.featureLevel}, the cluster is at ${now.featureLevel}; upgrade every controller to the release that wrote the backup first`,
    )
  }
  if (then.clusterId === now.clusterId || otherCluster === true) return
  throw new BackupFault(
    'OTHER_CLUSTER',
    `the backup belongs to cluster ${then.clusterId}, this is cluster ${now.clusterId}; pass --other-cluster to restore it here, or restore it as a new cluster`,
  )
}

/**
 * Prompts for the confirmation on a terminal, or reads it from an option. A wrong confirmation
 * changes nothing.
 */
async function confirm(clusterId: string, options: RestoreIntoClusterOptions): Promise<void> {
  const canAsk = options.json !== true && options.key !== '-' && process.stdin.isTTY
  const given = options.confirm ?? (canAsk ? await promptExactText(clusterId) : undefined)
  if (given === clusterId) return
  throw new CommandFailure(
    EXIT_FAILED,
    given === undefined
      ? `this replaces all records of the cluster and ends all sessions; nothing was changed. Pass --confirm ${quoteShellWord(clusterId)} to proceed`
      : `confirmation does not match "${clusterId}"; nothing was changed`,
  )
}

interface Restoring {
  readonly data: string
  readonly content: RestoreContent
  readonly backup: LoadedBackup
  readonly options: RestoreIntoClusterOptions
}

/**
 * Sends the content to the controllers, which store it without using it, and then activates it with
 * one last step. If a step fails, the stored content is discarded, unless the outcome of the last
 * step is unknown.
 */
async function carryOut(restoring: Restoring): Promise<RestoreProgress> {
  const id = newShortId()
  // Before the last step, an interrupt discards the stored content. During the last step, the
  // restore can no longer be cancelled.
  const interrupts = delayInterrupts('nothing was changed')
  let isSwapping = false
  try {
    await stage(restoring, id, interrupts)
    isSwapping = true
    return (await ask(restoring.data, 'end', endParams(restoring, id))) as RestoreProgress
  } catch (error) {
    const isKnown = !isSwapping || (error instanceof AdminSocketError && isRefusal(error))
    if (isKnown) await abandon(restoring, id)
    throw isKnown ? failureOf(error) : outcomeUnknown(error)
  } finally {
    interrupts.end()
  }
}

async function stage(
  { data, content, backup, options }: Restoring,
  id: string,
  interrupts: Interrupts,
): Promise<void> {
  const { chunks, bytes, sha256 } = content
  const { clusterId, featureLevel } = backup.manifest
  const allowsOtherCluster = options.otherCluster === true
  await ask(data, 'begin', {
    id,
    chunks: chunks.length,
    bytes,
    sha256,
    clusterId,
    featureLevel,
    allowsOtherCluster,
  })
  const progress = new Progress(chunks.length)
  for (const [number, chunk] of chunks.entries()) {
    interrupts.check()
    const { endsBlock } = chunk
    const text = Buffer.from(chunk.bytes).toString('base64')
    await ask(data, 'chunk', { id, number, endsBlock, bytes: text })
    progress.report(number + 1)
  }
  interrupts.check()
}

function endParams({ content, backup, options }: Restoring, id: string): StepBodies['end'] {
  return {
    id,
    sha256: content.sha256,
    ifIndex: options.ifIndex ?? 0,
    reason: `from a backup with SHA-256 ${backup.sha256.slice(0, 16)}: ${backupOriginText(backup.manifest)}`,
  }
}

async function abandon({ data, content }: Restoring, id: string): Promise<void> {
  const params = { id, isAbandoned: true, sha256: content.sha256, ifIndex: 0, reason: 'abandoned' }
  // If the stored content cannot be discarded here, the controllers discard it later.
  await ask(data, 'end', params).catch(() => undefined)
}

/** Request bodies for the steps of a restore. */
interface StepBodies {
  readonly begin: SchemaValue<typeof restoreBeginSchema.schema>
  readonly chunk: SchemaValue<typeof restoreChunkSchema.schema>
  readonly end: SchemaValue<typeof restoreEndSchema.schema>
}

async function ask<S extends keyof StepBodies>(
  data: string,
  step: S,
  body: StepBodies[S],
): Promise<unknown> {
  const path = `/fabric/v1/cluster/restore/${step}`
  return await sendToAdminSocket(data, { method: 'POST', path, body, timeoutMs: STEP_TIMEOUT_MS })
}

/** True if the controller reported that it changed nothing. */
function isRefusal({ code }: AdminSocketError): boolean {
  return !['NO_ANSWER', 'OUTCOME_UNKNOWN', 'UNHANDLED'].includes(code)
}

function failureOf(error: unknown): unknown {
  if (!(error instanceof AdminSocketError)) return error
  const remedy = RECORDS_MOVED.test(error.message)
    ? `; look at 'flotilla cluster snapshot diff' again, and give the index that it names`
    : ''
  return new CommandFailure(EXIT_FAILED, `${error.message}; nothing was changed${remedy}`, error)
}

const RECORDS_MOVED = /^records were written after index/

function outcomeUnknown(error: unknown): CommandFailure {
  const why = errorMessage(error)
  return new CommandFailure(
    EXIT_FAILED,
    `the connection was lost while the records were being replaced (${why}); outcome unknown, check it with 'flotilla cluster snapshot diff'`,
    error,
  )
}

/**
 * Shows progress on stderr: on a terminal one line that is overwritten, otherwise one line for each
 * tenth.
 */
class Progress {
  readonly #total: number
  #printedPercent = 0

  constructor(total: number) {
    this.#total = total
  }

  report(done: number): void {
    const percent = Math.floor((100 * done) / this.#total)
    const isNew = percent >= this.#printedPercent + PROGRESS_PERCENT || done === this.#total
    if (!isNew) return
    this.#printedPercent = percent
    const isOnTerminal = process.stderr.isTTY
    const end = isOnTerminal && done < this.#total ? '' : '\n'
    process.stderr.write(`${isOnTerminal ? '\r' : ''}staged ${percent} %${end}`)
  }
}

function printRestored(
  { index, applied }: RestoreProgress,
  { mustEnrollAgain }: RestoreEffects,
): void {
  printLine(`replaced the records at index ${index}; applied by ${applied.join(', ')}`)
  printLine('all sessions have ended; log in again')
  for (const line of reEnrollmentsText(mustEnrollAgain)) printLine(line)
}

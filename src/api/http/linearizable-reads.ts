import { Problem, fieldProblem } from '../../lib/problems.ts'
import { parseUuid, uuidv7TimeMs } from '../../lib/text/uuid.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ApiLimits } from '../limits.ts'

/** The part of the state that is needed to wait for a log index. */
export type AppliedIndexView = Pick<StateView, 'appliedIndex' | 'waitForApplied'>

const MIN_INDEX = /^([0-9]{1,15}):([0-9]{1,15})$/

/**
 * Parses `net-min-index: <generation>:<index>`, the minimum index that a response must reflect. An
 * index of an older generation is refused: the cluster was recovered or restored since, and may
 * lack the entry. If the generation is newer, this controller does not know it yet.
 * @throws {Problem} COULD_NOT_VALIDATE, or INDEX_NOT_REACHED for a newer generation.
 */
export function parseMinIndex(text: string, generation: number): number {
  const match = MIN_INDEX.exec(text)
  if (match === null) throw fieldProblem('net-min-index', 'must be <generation>:<index>', text)
  const asked = Number(match[1])
  if (asked > generation) {
    throw new Problem('INDEX_NOT_REACHED', {
      detail: `generation ${asked} is unknown; this controller is in generation ${generation}`,
      retryAfterSeconds: 1,
    })
  }
  if (asked < generation) {
    throw fieldProblem(
      'net-min-index',
      `generation ${asked} has ended; the cluster is in generation ${generation}, read again without net-min-index`,
      text,
    )
  }
  return Number(match[2])
}

/**
 * Parses `net-request-id`.
 * @throws {Problem} COULD_NOT_VALIDATE if it is not a UUIDv7.
 */
export function parseNetRequestId(text: string): Uint8Array {
  const bytes = parseUuid(text)
  if (bytes === null || uuidv7TimeMs(bytes) === null) {
    throw fieldProblem('net-request-id', 'must be a UUID of version 7', text)
  }
  return bytes
}

/**
 * Linearizable reads: the state that is read includes all writes that any controller acknowledged
 * before the read.
 */
export class LinearizableReads implements LatestReads {
  readonly #cluster: Pick<ClusterView, 'readIndex'>
  readonly #log: AppliedIndexView
  readonly #indexWaitMs: number

  constructor(
    cluster: Pick<ClusterView, 'readIndex'>,
    log: AppliedIndexView,
    { indexWaitMs }: Pick<ApiLimits, 'indexWaitMs'>,
  ) {
    this.#cluster = cluster
    this.#log = log
    this.#indexWaitMs = indexWaitMs
  }

  /**
   * Waits until this controller has applied all writes that were acknowledged before the call (read
   * index, Raft dissertation 6.4). Concurrent callers share a read-index round, so the cost does
   * not grow with their number.
   * @throws {Problem} CLUSTER_NO_LEADER when no leader confirms the read index; INDEX_NOT_REACHED.
   */
  async reachLatest(): Promise<void> {
    await this.reachIndex(await this.#cluster.readIndex())
  }

  /**
   * Waits until this controller has applied `index`.
   * @throws {Problem} INDEX_NOT_REACHED when the time limit passes first.
   */
  async reachIndex(index: number): Promise<void> {
    const log = this.#log
    if (log.appliedIndex >= index || (await log.waitForApplied(index, this.#indexWaitMs))) return
    throw new Problem('INDEX_NOT_REACHED', {
      detail: `asked for ${index}, applied ${log.appliedIndex}`,
      retryAfterSeconds: 1,
    })
  }

  /**
   * Reads locally; if the record is missing, reads again at the latest commit, because another
   * controller may have just created it.
   * @throws {Problem} CLUSTER_NO_LEADER; INDEX_NOT_REACHED.
   */
  async latest<T>(read: () => T | undefined): Promise<T | undefined> {
    const found = read()
    if (found !== undefined) return found
    await this.reachLatest()
    return read()
  }

  /**
   * Responds immediately from the local state, if it contains the record. Otherwise reads again
   * after a read-index round with the leader, because another controller may have just created the
   * record. Concurrent requests share the round.
   * @param answer if there is a second read, its index is set to the log index of that read.
   * @param what description of the record for the error, such as `service x`.
   * @param read returns null if the local state lacks the record.
   * @throws {Problem} NOT_FOUND; CLUSTER_NO_LEADER; INDEX_NOT_REACHED.
   */
  found<T>(
    answer: { index: number },
    what: string,
    read: () => T | Promise<T> | null,
  ): T | Promise<T> {
    return read() ?? this.#confirm(answer, what, read)
  }

  async #confirm<T>(
    answer: { index: number },
    what: string,
    read: () => T | Promise<T> | null,
  ): Promise<T> {
    await this.reachLatest()
    answer.index = this.#log.appliedIndex
    const found = read()
    if (found !== null) return found
    throw new Problem('NOT_FOUND', { detail: `${what} not found` })
  }
}

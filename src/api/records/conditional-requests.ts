import { hash } from 'node:crypto'
import type { KindName } from '../../entities/kind-records.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { SlotCache } from '../../lib/slot-cache.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import type { ProposalInput } from '../../ports/proposer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { Reply, EncodedJsonReply } from '../http/responses/envelope.ts'
import { ETAGS_MAX, matchesEtag, type IfMatchPrecondition } from '../http/responses/etag.ts'

type JudgedOn = NonNullable<ProposalInput['judgedOn']>

const TAG = /^(W\/)?"([\x21\x23-\x7e]{0,128})"$/
const REVISION = /^([1-9][0-9]{0,14})(\.[A-Za-z0-9_-]{0,64})?$/
const HASH_CHARACTERS = 12

/**
 * An ETag `"<revision>.<hash>"`. If-Match compares only the revision of the record. The hash covers
 * the body, because a detail also shows data from other records, whose changes do not affect this
 * record's revision.
 */
function etagOf({ revision }: EntityRecord, { body }: EncodedJsonReply): string {
  const known = recentTags.get(revision)
  if (known?.revision === revision && known.body === body) return known.etag
  const etag = `"${revision}.${hash('sha256', body, 'base64url').slice(0, HASH_CHARACTERS)}"`
  if (body.length <= KEPT_CHARACTERS_MAX) recentTags.set(revision, { revision, body, etag })
  return etag
}

/** Cached ETags: the same body at the same revision has the same ETag. */
const recentTags = new SlotCache<{
  readonly revision: number
  readonly body: string
  readonly etag: string
}>(4096)
const KEPT_CHARACTERS_MAX = 2048

/** A detail with its ETag, or 304 without a body if the client has the same version. */
export function responseWithEtag(
  call: RequestContext,
  record: EntityRecord,
  answer: EncodedJsonReply,
): Reply {
  const etag = etagOf(record, answer)
  const isKnown = call.ifNoneMatch !== null && matchesEtag(call.ifNoneMatch, etag)
  const shown = isKnown ? { ...answer, status: 304, body: '' } : answer
  return { ...shown, headers: { ...answer.headers, etag } }
}

/**
 * Parses the If-Match header of a write. A weak or unknown tag matches no record (RFC 9110,
 * 13.1.1).
 * @throws {Problem} COULD_NOT_VALIDATE if the header is not a list of tags.
 */
export function parseIfMatch(text: string): IfMatchPrecondition {
  if (text.trim() === '*') return 'any'
  const revisions: number[] = []
  const tags = text.split(',', ETAGS_MAX + 1)
  if (tags.length > ETAGS_MAX) throw fieldProblem('If-Match', `has at most ${ETAGS_MAX} tags`)
  for (const tag of tags) {
    const match = TAG.exec(tag.trim())
    if (match === null) throw fieldProblem('If-Match', 'must be * or a list of entity tags')
    const revision = match[1] === undefined ? REVISION.exec(match[2] ?? '') : null
    if (revision !== null) revisions.push(Number(revision[1]))
  }
  return revisions
}

/**
 * Writes under the condition of If-Match, if the request has one: the state machine refuses the
 * write unless the record then has one of the given revisions. So the result does not depend on how
 * far this controller has applied the log.
 * @throws {Problem} PRECONDITION_FAILED when the record has another revision, or does not exist.
 */
export async function writeIfPreconditionHolds<T>(
  { precondition }: RequestContext,
  state: Pick<StateView, 'get'>,
  record: { readonly entity: KindName; readonly id: string },
  write: (judgedOn: JudgedOn) => Promise<T>,
): Promise<T> {
  if (precondition === null) return await write([])
  if (precondition === 'any') return await ifThere(() => write([]))
  const revisionHere = (): number => state.get(record.entity, record.id)?.revision ?? 0
  for (let tries = 0; tries <= precondition.length; tries += 1) {
    const here = revisionHere()
    const revision = precondition.includes(here) ? here : precondition[0]
    if (revision === undefined) break
    try {
      return await write([{ ...record, revision }])
    } catch (error) {
      const hasMoved = error instanceof Problem && error.code === 'REVISION_MOVED'
      if (!hasMoved) throw error
      // This controller has applied the refused entry, so the local revision is the revision that
      // caused the refusal, or a later one.
      const now = revisionHere()
      if (now === revision) throw error
      if (!precondition.includes(now)) break
    }
  }
  throw new Problem('PRECONDITION_FAILED')
}

async function ifThere<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    const isGone = error instanceof Problem && error.code === 'NOT_FOUND'
    throw isGone ? new Problem('PRECONDITION_FAILED', { cause: error }) : error
  }
}

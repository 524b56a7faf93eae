import { pageLimits } from '../../../fsm/query/list.ts'
import { FairShare } from '../../../lib/bounds/fair-share.ts'
import { Problem, fieldProblem } from '../../../lib/problems.ts'
import type { RequestContext } from '../request-context.ts'
import { listMetaText, type Pagination, type Reply } from './envelope.ts'
import type { ListResult, SteppedListing } from '../../../ports/state-view.ts'
import type { ApiLimits } from '../../limits.ts'
import type { ProcessorShare } from '../../../lib/bounds/processor-share.ts'
import { unreadResponsesLimitProblem, type UnreadResponses } from '../transport/unread-responses.ts'

type ListLimits = Pick<
  ApiLimits,
  'longListBytesMin' | 'longListsMax' | 'longListBytesMax' | 'longListBytesOfOthersMax'
>

/** The records of a list response, and the function that serializes one of them as JSON. */
interface Rows<T> {
  readonly records: readonly T[]
  readonly serialize: (record: T) => string
  readonly pagination: Pagination
  readonly filterableFields: readonly string[]
}

/**
 * Creates a function that serializes a record as JSON.
 * @param show returns the data to serialize for a record.
 */
export function createRowSerializer<T>(show: (record: T) => unknown): (record: T) => string {
  return (record) => JSON.stringify(show(record))
}

/**
 * Text is converted into buffers of about this many characters; buffers are outside of the
 * JavaScript heap.
 */
const PACK_CHARACTERS = 64 * 1024

/** A list that is being serialized for a response, record by record. */
class Rendering<T> {
  readonly #rows: Rows<T>
  readonly #chunks: Buffer[] = []
  #text = '{"data":['
  #at = 0
  #packedBytes = 0

  constructor(rows: Rows<T>) {
    this.#rows = rows
  }

  get bytes(): number {
    return this.#packedBytes + this.#text.length
  }

  /**
   * Serializes the next record.
   * @returns true once all records are serialized.
   */
  showNext(): boolean {
    const { records, serialize } = this.#rows
    if (this.#at < records.length) {
      if (this.#at > 0) this.#text += ','
      this.#text += serialize(records[this.#at] as T)
      this.#at += 1
    }
    return this.#at >= records.length
  }

  pack(): void {
    if (this.#text.length < PACK_CHARACTERS) return
    const chunk = Buffer.from(this.#text)
    this.#chunks.push(chunk)
    this.#packedBytes += chunk.length
    this.#text = ''
  }

  answer(): Reply {
    const { pagination, filterableFields } = this.#rows
    const body = `${this.#text}],"meta":${listMetaText(pagination, filterableFields)}}`
    const answer = { status: 200, contentType: 'application/json' }
    if (this.#chunks.length === 0) return { ...answer, body }
    return { ...answer, body: [...this.#chunks, Buffer.from(body)] }
  }
}

/**
 * Serializes lists of records as JSON, and yields between steps, so that requests of other callers
 * can run. Only a few long lists are serialized at the same time. A response that would be too
 * large is refused, never truncated: a client that requests the whole list would take the truncated
 * list for the whole list.
 */
export class ListResponseSerializer {
  readonly #processor: ProcessorShare
  readonly #limits: ListLimits
  readonly #room: FairShare
  readonly #unsent: UnreadResponses

  constructor(limits: ListLimits, processor: ProcessorShare, unsent: UnreadResponses) {
    this.#processor = processor
    this.#limits = limits
    this.#unsent = unsent
    this.#room = new FairShare(limits.longListsMax)
  }

  /**
   * Runs a listing and returns its response.
   * @throws {Problem} in the same cases as `StateView.list`; also COULD_NOT_VALIDATE (field
   * `limit`) and SERVER_TOO_MANY_REQUESTS.
   */
  found<T>(
    call: RequestContext,
    listing: SteppedListing,
    rowsOf: (found: ListResult) => Rows<T>,
  ): Reply | Promise<Reply> {
    return this.#processor.finish(call.sharer, this.#listed(call, listing, rowsOf))
  }

  /** @throws {Problem} COULD_NOT_VALIDATE (field `limit`), SERVER_TOO_MANY_REQUESTS. */
  answer<T>(call: RequestContext, rows: Rows<T>): Reply | Promise<Reply> {
    return this.#processor.finish(call.sharer, this.#rendered(call, rows))
  }

  *#listed<T>(
    call: RequestContext,
    listing: SteppedListing,
    rowsOf: (found: ListResult) => Rows<T>,
  ): Generator<void, Reply> {
    for (let step = listing.next(); ; step = listing.next()) {
      if (step.done === true) return yield* this.#rendered(call, rowsOf(step.value))
      yield
      checkWanted(call)
    }
  }

  *#rendered<T>(call: RequestContext, rows: Rows<T>): Generator<void, Reply> {
    const rendering = new Rendering(rows)
    const { longListBytesMin, longListBytesMax, longListBytesOfOthersMax } = this.#limits
    const bytesMax = call.caller?.isAdmin === true ? longListBytesMax : longListBytesOfOthersMax
    let isLong = rows.records.length > pageLimits.limitMax
    if (isLong) this.#takeRoom(call)
    const { source } = call.credentials
    let heldBytes = 0
    try {
      while (!rendering.showNext()) {
        if (!isLong && rendering.bytes > longListBytesMin) {
          isLong = true
          this.#takeRoom(call)
        }
        if (rendering.bytes > bytesMax) throw tooLong(bytesMax)
        if (rendering.bytes > heldBytes + PACK_CHARACTERS) {
          if (!this.#unsent.hasRoomFor(source, PACK_CHARACTERS)) throw unreadResponsesLimitProblem()
          this.#unsent.take(source, PACK_CHARACTERS)
          heldBytes += PACK_CHARACTERS
        }
        rendering.pack()
        yield
        checkWanted(call)
      }
    } finally {
      // Releases the bytes that were reserved while the list was serialized. Sending the response
      // reserves all of its bytes again.
      this.#unsent.giveBack(source, heldBytes)
    }
    if (isLong && rendering.bytes > bytesMax) throw tooLong(bytesMax)
    return rendering.answer()
  }

  /**
   * Occupies one of the slots for long lists until the client has read the response, because memory
   * holds the response until then.
   */
  #takeRoom(call: RequestContext): void {
    const sharer = call.sharer
    if (!this.#room.hasRoomFor(sharer)) throw new Problem('SERVER_TOO_MANY_REQUESTS')
    this.#room.take(sharer)
    call.onAnswerGone = () => {
      this.#room.giveBack(sharer)
    }
  }
}

/**
 * Checks that the caller still waits for the list.
 * @throws {Problem} TIMEOUT if it has already received a response, or its connection has closed.
 */
function checkWanted(call: RequestContext): void {
  if (call.isGone) throw new Problem('TIMEOUT')
}

function tooLong(bytesMax: number): Problem {
  const reason = `the response would exceed ${bytesMax} bytes; use limit and offset, or a narrower filter`
  return fieldProblem('limit', reason)
}

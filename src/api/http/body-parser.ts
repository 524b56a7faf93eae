import { jsonDepth } from '../../lib/bounds/json-depth.ts'
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyContentTypeParser } from 'fastify'
import { releaseBuffer } from '../../lib/bounds/release-buffer.ts'
import { Problem } from '../../lib/problems.ts'
import type { RequestContext } from './request-context.ts'
import { sendContinue } from './transport/expect-continue.ts'
import type { LargeBodyQueue } from './large-body-queue.ts'
import type { ApiLimits } from '../limits.ts'

interface BodyParserDeps {
  readonly limits: Pick<ApiLimits, 'bodyBytesMax' | 'bodyDepthMax'>
  readonly largeBodies: LargeBodyQueue
}

/**
 * Parses the body only if the operation accepts a body, and only with one of the operation's
 * content types. `application/json` with an empty body means no body.
 */
export function bodyParser({ limits, largeBodies }: BodyParserDeps): FastifyContentTypeParser {
  return (request, payload, done) => {
    const { call } = request
    if (call?.operation?.body === undefined) {
      done(null, undefined)
      return
    }
    const { 'content-type': type, 'content-length': declared } = request.headers
    const read = (): Promise<unknown> => {
      sendContinue(request.raw)
      return readBody(call, type, payload, limits)
    }
    const room = roomFor(call, declared, payload, largeBodies, limits)
    const reading = room === null ? read() : room.then(read)
    reading.then(
      (body) => {
        done(null, body)
      },
      (error: unknown) => {
        call.releaseBody?.()
        done(error as Error)
      },
    )
  }
}

/**
 * Reads and parses the body if the operation accepts one. `application/json` with an empty body
 * means no body; other types are returned as text.
 * @throws {Problem} UNSUPPORTED_CONTENT_TYPE, REQUEST_ENTITY_TOO_LARGE, COULD_NOT_PARSE_BODY.
 */
async function readBody(
  call: RequestContext,
  contentType: string | undefined,
  stream: Readable,
  limits: Pick<ApiLimits, 'bodyBytesMax' | 'bodyDepthMax'>,
): Promise<unknown> {
  const { type = 'application/json', textTypes = [] } = call.operation?.body ?? {}
  const given = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const isText = textTypes.includes(given)
  if (given !== type && !isText) {
    const reason = `must be ${[type, ...textTypes].join(', ')}`
    throw new Problem('UNSUPPORTED_CONTENT_TYPE', {
      fault: { field: 'Content-Type', reason, value: contentType },
    })
  }
  call.isTextBody = isText
  const bytesMax = Math.min(limits.bodyBytesMax, call.operation?.bodyBytesMax ?? Infinity)
  const bytes = await readBytes(stream, bytesMax)
  const text = decode(bytes)
  releaseBuffer(bytes)
  if (call.metadata.requestId !== null) call.bodyText = text
  if (isText || type !== 'application/json') return text
  return text.trim() === '' ? undefined : parseJson(text, limits.bodyDepthMax)
}

/**
 * Reserves memory for a body of the declared length, or of the maximum length if none is declared
 * or the declared one is longer.
 * `call.releaseBody` frees the memory; so does a connection that closes before the operation
 * begins.
 * @returns null for a small body, which needs no reservation; otherwise a promise that may reject
 * with the Problem SERVER_TOO_MANY_REQUESTS, or COULD_NOT_PARSE_BODY if the request has ended.
 */
function roomFor(
  call: RequestContext,
  declared: string | undefined,
  stream: IncomingMessage,
  bodies: LargeBodyQueue,
  limits: Pick<ApiLimits, 'bodyBytesMax'>,
): Promise<void> | null {
  const bytesMax = Math.min(limits.bodyBytesMax, call.operation?.bodyBytesMax ?? Infinity)
  const bytes = declared === undefined ? bytesMax : Math.min(bytesMax, Number(declared))
  return bodies.isLarge(bytes) ? takeRoom(call, bytes, stream, bodies) : null
}

async function takeRoom(
  call: RequestContext,
  bytes: number,
  stream: IncomingMessage,
  bodies: LargeBodyQueue,
): Promise<void> {
  const giveBack = await bodies.take(bytes)
  const { socket } = stream
  const onGone = (): void => {
    if (!call.isAtWork) call.releaseBody?.()
  }
  call.releaseBody = (): void => {
    socket.off('close', onGone)
    giveBack()
  }
  socket.on('close', onGone)
  if (!stream.destroyed) return
  call.releaseBody?.()
  throw unparsable('the request ended before its body did')
}

/**
 * Reads a body up to a limit. Counts the received bytes, because a chunked body declares no length.
 */
function readBytes(stream: Readable, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const onData = (chunk: Buffer): void => {
      length += chunk.length
      if (length > bytesMax) {
        stream.off('data', onData)
        stream.pause()
        reject(new Problem('REQUEST_ENTITY_TOO_LARGE'))
      } else {
        chunks.push(chunk)
      }
    }
    stream.on('data', onData)
    stream.on('end', () => {
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks))
    })
    stream.on('error', (error) => {
      reject(unparsable('the request ended before its body did', error))
    })
  })
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch (error) {
    throw unparsable('it is not UTF-8', error)
  }
}

function parseJson(text: string, depthMax: number): unknown {
  if (jsonDepth(text) > depthMax) throw unparsable(`nested deeper than ${depthMax}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // Replaces the parser's message, which would quote the body: the body may contain a password.
    throw unparsable('it is not JSON', error)
  }
  if (PROTOTYPE_KEY.test(text) && hasPrototypeKey(value)) {
    throw unparsable('it has a member named __proto__')
  }
  return value
}

function unparsable(why: string, cause?: unknown): Problem {
  return new Problem('COULD_NOT_PARSE_BODY', {
    detail: `parsing the body failed, because ${why}`,
    cause,
  })
}

/**
 * Matches the text of bodies that may contain a member named `__proto__`: the name itself, or an
 * escape of a character below U+0100, because JSON may write the letters of the name as escapes.
 * Only matching bodies are searched member by member.
 */
// @guard prototype-member-written-with-escapes
const PROTOTYPE_KEY = /__proto__|\\u00/i

/**
 * Whether a value contains a member named `__proto__`: code that copies the value would change the
 * prototype of the copy. The caller has already limited the depth of the value.
 */
function hasPrototypeKey(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return false
  return Object.entries(value).some(
    ([key, member]) => key === '__proto__' || hasPrototypeKey(member),
  )
}

import type { ChannelMessage } from '../../channel/frame.ts'
import { messageRefusalReason } from '../../channel/message-bounds.ts'
import { channelContentType, channelHeaderKey } from '../../channel/numbers.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorMessage } from '../../lib/error-code.ts'
import {
  type LineFile,
  NEWLINE,
  NEWLINE_BYTES,
  RotatingFile,
  systemLineFile,
} from '../../lib/runtime/rotating-file.ts'
import { readInspectionRequest } from '../../channel/messages/reports.ts'
import { reportLimits } from './limits.ts'
import { ProgramFailure } from '../../overlay/failure.ts'
import { readAddresses } from '../controllers/addresses-update.ts'
import { circuitRequestHeaderKey } from '../../channel/messages/circuit-requests.ts'
import { controlContentType, readLeaderIndex } from '../../channel/messages/control.ts'

const { sessionToken, apiSessionToken } = circuitRequestHeaderKey
/** Headers with tokens of clients, by content type; the trace contains only their length. */
const tokenHeaders: ReadonlyMap<number, readonly number[]> = new Map(
  [controlContentType.createCircuitV2, controlContentType.createCircuitV3].map(
    (type) => [type, [sessionToken, apiSessionToken]] as const,
  ),
)
const VALUE_BYTES_MAX = 256

const names = new Map<number, string>([
  ...Object.entries(channelContentType).map(([name, type]) => [type, name] as const),
  ...Object.entries(controlContentType).map(([name, type]) => [type, name] as const),
])

const decoders: Readonly<Record<number, (body: Uint8Array) => unknown>> = {
  [controlContentType.updateCtrlAddresses]: readAddresses,
  [controlContentType.updateClusterLeader]: readLeaderIndex,
  [controlContentType.inspect]: readInspectionRequest,
}

/**
 * Writes sent and received messages as JSON lines to a file of mode 0600. A full file is renamed
 * and replaces the previous one. If the disk is full, lines are lost and counted, but no channel is
 * closed; the next line that can be written follows a line with their number.
 */
export class MessageTrace {
  readonly #clock: Clock
  readonly #file: RotatingFile
  readonly #disk: Pick<LineFile, 'writeSync'>
  #dropped = 0

  /**
   * @param disk file system calls; by default those of the operating system.
   * @throws {ProgramFailure} when the file cannot be written.
   */
  constructor(path: string, clock: Clock, disk: Pick<LineFile, 'writeSync'> = systemLineFile) {
    this.#clock = clock
    this.#disk = disk
    try {
      this.#file = new RotatingFile({ path, bytesMax: reportLimits.traceBytesMax, keep: 1 })
    } catch (error) {
      const reason = errorMessage(error)
      throw new ProgramFailure(`trace.path: ${path} cannot be written: ${reason}`, { cause: error })
    }
  }

  write(peer: string, direction: 'in' | 'out', message: ChannelMessage): void {
    const nowMs = this.#clock.nowMs()
    try {
      if (this.#dropped > 0) this.#put({ at: timeText(nowMs), dropped: this.#dropped })
      this.#dropped = 0
      this.#put(lineOf(nowMs, peer, direction, message))
    } catch {
      this.#dropped += 1
    }
  }

  close(): void {
    this.#file.close()
  }

  #put(line: object): void {
    const file = this.#file
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
    const fd = file.fdFor(bytes.length + (file.isMidLine ? 1 : 0))
    let left = file.isMidLine ? Buffer.concat([NEWLINE_BYTES, bytes]) : bytes
    while (left.length > 0) {
      const written = this.#disk.writeSync(fd, left)
      if (written > 0) file.isMidLine = left[written - 1] !== NEWLINE
      left = left.subarray(written)
    }
  }
}

function timeText(nowMs: number): string {
  return new Date(nowMs).toISOString()
}

function lineOf(nowMs: number, peer: string, direction: string, message: ChannelMessage): object {
  const { contentType: type, sequence, headers, body } = message
  return {
    at: timeText(nowMs),
    peer,
    direction,
    contentType: type,
    name: names.get(type) ?? 'unknown',
    sequence,
    headers: Object.fromEntries(
      [...headers].map(([key, value]) => [key, shownHeader(type, key, value)]),
    ),
    bodyBytes: body.length,
    body: messageRefusalReason(message) === null ? shownBody(type, body) : '(beyond its bound)',
  }
}

function shownHeader(type: number, key: number, value: Uint8Array): string {
  // Any message of a channel may have this key, so its value may be the secret of the channel.
  const isSecret = key === channelHeaderKey.groupSecret || tokenHeaders.get(type)?.includes(key)
  if (isSecret === true) return `(${value.length} bytes)`
  const bytes = Buffer.from(value.subarray(0, VALUE_BYTES_MAX))
  const text = bytes.toString('utf8')
  return /^[\x20-\x7e]{3,}$/.test(text) ? text : `0x${bytes.toString('hex')}`
}

function shownBody(type: number, body: Uint8Array): unknown {
  const decode = decoders[type]
  if (decode === undefined) return undefined
  try {
    const text = JSON.stringify(decode(body), (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    )
    return JSON.parse(text) as unknown
  } catch {
    return '(cannot be read)'
  }
}

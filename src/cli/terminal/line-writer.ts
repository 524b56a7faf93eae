import { constants, fstatSync, openSync, writeSync } from 'node:fs'

import {
  type LineFile,
  NEWLINE,
  NEWLINE_BYTES,
  systemLineFile,
} from '../../lib/runtime/rotating-file.ts'

/** Limits of buffered text, in characters. */
export const lineBufferLimits = {
  /** From this number of buffered characters on, audit lines are dropped. */
  crowdedCharacters: 1024 * 1024,
  /** Maximum buffered characters; a line that would exceed this number is dropped. */
  waitingCharactersMax: 4 * 1024 * 1024,
  /** Maximum characters that are written in one turn of the event loop. */
  chunkCharactersMax: 64 * 1024,
  /**
   * How long lines are collected before they are written together, because a write costs several
   * times as much as creating a line.
   */
  gatherMs: 5,
  /** Time after which a write to a full pipe is retried. */
  retryMs: 50,
  /** Maximum time for which an exiting process waits until its output is read. */
  endMsMax: 1000,
} as const

/**
 * An output to which lines are written. The file descriptor is requested before each write, while
 * no other write runs.
 */
interface LineOutput {
  /** File descriptor for the next write, which has this number of bytes. */
  fdFor(bytes: number): number
  /** The file descriptor of the last write. */
  readonly current: number
  /**
   * Whether the output ends with an incomplete line, because the rest could not be written. Set by
   * the writer; an output that changes to another file sets it for that file.
   */
  isMidLine: boolean
}

/**
 * Writes lines to a file, pipe or terminal in order, without blocking its callers. If the output is
 * slow, lines are buffered up to a limit; further lines are dropped and counted.
 */
export class LineWriter {
  /** Called with the number of dropped lines as soon as the output accepts lines again. */
  onDropped: (count: number) => void = () => undefined
  readonly #output: LineOutput
  readonly #disk: Pick<LineFile, 'write'>
  /** Lines for which no write has started. */
  #chunks: string[] = []
  /** Remaining bytes of the current write. */
  #rest: Buffer<ArrayBuffer> | null = null
  /**
   * True while the remaining bytes are being written; false while they wait for space in a pipe.
   */
  #isTaken = false
  #retry: NodeJS.Timeout | undefined
  #gathering: NodeJS.Timeout | undefined
  #characters = 0
  #dropped = 0

  /** @param disk file system calls; by default those of the operating system. */
  constructor(output: number | LineOutput, disk: Pick<LineFile, 'write'> = systemLineFile) {
    this.#disk = disk
    this.#output =
      typeof output === 'number'
        ? { fdFor: () => output, current: output, isMidLine: false }
        : output
  }

  /** True if callers should drop audit lines and report each with `drop`. */
  get isCrowded(): boolean {
    return this.#characters >= lineBufferLimits.crowdedCharacters
  }

  drop(): void {
    this.#dropped += 1
  }

  /** Writes a line, which must end with a newline. */
  write(line: string): void {
    if (this.#characters + line.length > lineBufferLimits.waitingCharactersMax) {
      this.drop()
      return
    }
    this.#characters += line.length
    const last = this.#chunks.at(-1)
    if (last === undefined || last.length + line.length > lineBufferLimits.chunkCharactersMax) {
      this.#chunks.push(line)
    } else {
      this.#chunks[this.#chunks.length - 1] = last + line
    }
    this.#gather()
  }

  #gather(): void {
    if (this.#rest !== null || this.#gathering !== undefined || this.#chunks.length === 0) return
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined
      this.#next()
    }, lineBufferLimits.gatherMs)
    this.#gathering.unref()
  }

  #next(): void {
    const chunk = this.#chunks.shift()
    if (chunk === undefined) return
    this.#characters -= chunk.length
    const output = this.#output
    const bytes = Buffer.from(chunk)
    const fd = output.fdFor(bytes.length + (output.isMidLine ? 1 : 0))
    // The additional newline ends the incomplete line, so that it does not run into the next line.
    // If the output has changed to another file, that file has no incomplete line.
    this.#put(fd, output.isMidLine ? Buffer.concat([NEWLINE_BYTES, bytes]) : bytes)
  }

  #put(fd: number, bytes: Buffer<ArrayBuffer>): void {
    this.#rest = bytes
    this.#isTaken = true
    this.#disk.write(fd, bytes, (error, written) => {
      this.#isTaken = false
      if (error === null && written > 0) this.#output.isMidLine = bytes[written - 1] !== NEWLINE
      if (error?.code === 'EAGAIN') {
        this.#retry = setTimeout(() => this.#put(fd, bytes), lineBufferLimits.retryMs)
        this.#retry.unref()
      } else if (error === null && written < bytes.length) {
        this.#put(fd, bytes.subarray(written))
      } else {
        this.#onDone(error === null ? 0 : this.#lostLines(bytes))
      }
    })
  }

  /**
   * Counts the newlines of the bytes that were not written. A first line whose beginning was
   * already written counts as well, but not if only its newline is missing.
   */
  #lostLines(bytes: Buffer): number {
    const isEndOfLine = this.#output.isMidLine && bytes[0] === NEWLINE
    return linesIn(bytes) - (isEndOfLine ? 1 : 0)
  }

  /**
   * Counts the lines that a finished write has lost, and continues with the buffered lines. If the
   * disk is full or the process that reads the output has ended, lines are lost and the program
   * continues.
   */
  #onDone(lostLines: number): void {
    this.#rest = null
    this.#dropped += lostLines
    if (lostLines === 0 && this.#dropped > 0 && !this.isCrowded) {
      const count = this.#dropped
      this.#dropped = 0
      this.onDropped(count)
    }
    this.#gather()
  }

  /**
   * Writes the buffered lines synchronously, for at most `endMsMax`; called when the process ends.
   */
  flushSync(): void {
    clearTimeout(this.#retry)
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    const endMs = performance.now() + lineBufferLimits.endMsMax
    const waiting: Buffer[] = this.#chunks.map((text) => Buffer.from(text))
    if (this.#rest !== null && !this.#isTaken) {
      waiting.unshift(this.#rest)
      this.#rest = null
    } else if (this.#rest === null && this.#output.isMidLine) {
      waiting.unshift(NEWLINE_BYTES)
    }
    this.#chunks = []
    this.#characters = 0
    for (const bytes of waiting) if (!isWrittenBy(endMs, this.#output.current, bytes)) break
  }
}

/** Counts newlines. The result is the number of lines, because each line ends with a newline. */
function linesIn(bytes: Buffer): number {
  let lines = 0
  for (const byte of bytes) if (byte === NEWLINE) lines += 1
  return lines
}

const PAUSE_MS = 10
const pause = new Int32Array(new SharedArrayBuffer(4))

function isWrittenBy(endMs: number, fd: number, bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(fd, bytes, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() > endMs)
        return false
      Atomics.wait(pause, 0, 0, PAUSE_MS)
    }
  }
  return true
}

/**
 * File descriptor of standard output for lines. A pipe is opened a second time in non-blocking
 * mode, so that a write to a full pipe fails instead of blocking a thread. Other outputs are used
 * directly: a file does not block, and a socket cannot be opened again.
 */
export function openLineOutput(): number {
  try {
    if (!fstatSync(1).isFIFO()) return 1
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return 1
  }
}

import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'

/** Of what waits to be written; characters, as they take the memory. */
export const lineLimits = {
  /** With more, lines of the audit give way ... */
  crowdedCharacters: 1024 * 1024,
  /** ... and with so many every line does. */
  waitingCharactersMax: 4 * 1024 * 1024,
  /** What one turn of the event loop can hand over. */
  chunkCharactersMax: 64 * 1024,
  /** Lines are gathered for so long: to hand one over costs several times what it takes to make it. */
  gatherMs: 5,
  /** A pipe that is full is tried again after so long. */
  retryMs: 50,
  /** How long the end of a process waits for somebody to read. */
  endMsMax: 1000,
} as const

interface Chunk {
  text: string
  lines: number
}

/**
 * Lines to a file, pipe or terminal, in their order. Nobody waits for it: what is not read fast enough waits in bounded
 * memory, and beyond that is dropped and counted.
 */
export class LineWriter {
  /** Told how many lines were dropped, once lines are written again. */
  onDropped: (count: number) => void = () => undefined
  readonly #fd: number
  /** None of them is under way. */
  #chunks: Chunk[] = []
  /** What is left of the chunk under way. */
  #rest: Buffer<ArrayBuffer> | null = null
  #restLines = 0
  /** The rest is in the system's hands; else it waits for room in a pipe. */
  #isTaken = false
  #retry: NodeJS.Timeout | undefined
  #gathering: NodeJS.Timeout | undefined
  #characters = 0
  #dropped = 0

  constructor(fd: number) {
    this.#fd = fd
  }

  /** Lines that give way to others are to be dropped, by `drop`. */
  get isCrowded(): boolean {
    return this.#characters >= lineLimits.crowdedCharacters
  }

  drop(): void {
    this.#dropped += 1
  }

  /** A line with its end. */
  write(line: string): void {
    if (this.#characters + line.length > lineLimits.waitingCharactersMax) {
      this.drop()
      return
    }
    this.#characters += line.length
    const last = this.#chunks.at(-1)
    if (last === undefined || last.text.length + line.length > lineLimits.chunkCharactersMax) {
      this.#chunks.push({ text: line, lines: 1 })
    } else {
      last.text += line
      last.lines += 1
    }
    this.#gather()
  }

  #gather(): void {
    if (this.#rest !== null || this.#gathering !== undefined || this.#chunks.length === 0) return
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined
      this.#next()
    }, lineLimits.gatherMs)
    this.#gathering.unref()
  }

  #next(): void {
    const chunk = this.#chunks.shift()
    if (chunk === undefined) return
    this.#characters -= chunk.text.length
    this.#restLines = chunk.lines
    this.#put(Buffer.from(chunk.text))
  }

  #put(bytes: Buffer<ArrayBuffer>): void {
    this.#rest = bytes
    this.#isTaken = true
    write(this.#fd, bytes, (error, written) => {
      this.#isTaken = false
      if (error?.code === 'EAGAIN') {
        this.#retry = setTimeout(() => this.#put(bytes), lineLimits.retryMs)
        this.#retry.unref()
      } else if (error === null && written < bytes.length) {
        this.#put(bytes.subarray(written))
      } else {
        this.#onDone(error === null)
      }
    })
  }

  /** A disk that is full, or a reader that has gone, costs the lines and nothing else. */
  #onDone(isWritten: boolean): void {
    this.#rest = null
    if (!isWritten) this.#dropped += this.#restLines
    else if (this.#dropped > 0 && !this.isCrowded) {
      const count = this.#dropped
      this.#dropped = 0
      this.onDropped(count)
    }
    this.#gather()
  }

  /** Writes what waits, within `endMsMax`; for the end of a process, which may be near. */
  flushSync(): void {
    clearTimeout(this.#retry)
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    const endMs = performance.now() + lineLimits.endMsMax
    const waiting = this.#chunks.map(({ text }) => Buffer.from(text))
    if (this.#rest !== null && !this.#isTaken) {
      waiting.unshift(this.#rest)
      this.#rest = null
    }
    this.#chunks = []
    this.#characters = 0
    for (const bytes of waiting) if (!isWrittenBy(endMs, this.#fd, bytes)) break
  }
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
 * Where lines to the standard output go. A pipe is opened anew, so that one that is full refuses bytes in place of holding a
 * thread until somebody reads; a file or terminal never is, and a socket can not be opened.
 */
export function openOutput(): number {
  try {
    if (!fstatSync(1).isFIFO()) return 1
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return 1
  }
}

import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'

/** Limits of what waits to be written; characters, as they take the memory. */
export const lineLimits = {
  /** Characters beyond which lines of the audit give way ... */
  crowdedCharacters: 1024 * 1024,
  /** ... and with so many every line does. */
  waitingCharactersMax: 4 * 1024 * 1024,
  /** Characters that one turn of the event loop can hand over. */
  chunkCharactersMax: 64 * 1024,
  /**
   * Lines are gathered for so long: to hand one over costs several times what it takes to make it.
   */
  gatherMs: 5,
  /** A pipe that is full is tried again after so long. */
  retryMs: 50,
  /** How long the end of a process waits for somebody to read. */
  endMsMax: 1000,
} as const

/** Output of lines: asked before each write, while none is under way. */
export interface LineOutput {
  /** Descriptor that so many bytes are to be written to. */
  fdFor(bytes: number): number
  /** The same as for the last write. */
  readonly current: number
}

/** Calls of the file system that lines need. */
export interface LineFile {
  write(
    fd: number,
    bytes: Buffer,
    done: (error: NodeJS.ErrnoException | null, written: number) => void,
  ): void
}

/**
 * Lines to a file, pipe or terminal, in their order. Nobody waits for it: what is not read fast
 * enough waits in bounded memory, and beyond that is dropped and counted.
 */
export class LineWriter {
  /** Called with the number of dropped lines once lines are written again. */
  onDropped: (count: number) => void = () => undefined
  readonly #output: LineOutput
  readonly #disk: LineFile
  /** None of them is under way. */
  #chunks: string[] = []
  /** Rest of the chunk under way. */
  #rest: Buffer<ArrayBuffer> | null = null
  /** True: the last bytes written are the beginning of a line whose rest could not be written. */
  #isTorn = false
  /** The rest is in the system's hands; else it waits for room in a pipe. */
  #isTaken = false
  #retry: NodeJS.Timeout | undefined
  #gathering: NodeJS.Timeout | undefined
  #characters = 0
  #dropped = 0

  /** @param disk what writes to the output: that of the system. */
  constructor(output: number | LineOutput, disk: LineFile = { write }) {
    this.#disk = disk
    this.#output = typeof output === 'number' ? { fdFor: () => output, current: output } : output
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
    if (last === undefined || last.length + line.length > lineLimits.chunkCharactersMax) {
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
    }, lineLimits.gatherMs)
    this.#gathering.unref()
  }

  #next(): void {
    const chunk = this.#chunks.shift()
    if (chunk === undefined) return
    this.#characters -= chunk.length
    // A line that was cut off must not take the next one with it.
    const bytes = Buffer.from(this.#isTorn ? `\n${chunk}` : chunk)
    this.#put(this.#output.fdFor(bytes.length), bytes)
  }

  #put(fd: number, bytes: Buffer<ArrayBuffer>): void {
    this.#rest = bytes
    this.#isTaken = true
    this.#disk.write(fd, bytes, (error, written) => {
      this.#isTaken = false
      if (error === null && written > 0) this.#isTorn = bytes[written - 1] !== NEWLINE
      if (error?.code === 'EAGAIN') {
        this.#retry = setTimeout(() => this.#put(fd, bytes), lineLimits.retryMs)
        this.#retry.unref()
      } else if (error === null && written < bytes.length) {
        this.#put(fd, bytes.subarray(written))
      } else {
        this.#onDone(error === null ? 0 : linesIn(bytes))
      }
    })
  }

  /** A disk that is full, or a reader that has gone, costs the lines and nothing else. */
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

  /** Writes what waits, within `endMsMax`; for the end of a process, which may be near. */
  flushSync(): void {
    clearTimeout(this.#retry)
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    const endMs = performance.now() + lineLimits.endMsMax
    const waiting = this.#chunks.map((text) => Buffer.from(text))
    if (this.#rest !== null && !this.#isTaken) {
      waiting.unshift(this.#rest)
      this.#rest = null
    }
    this.#chunks = []
    this.#characters = 0
    for (const bytes of waiting) if (!isWrittenBy(endMs, this.#output.current, bytes)) break
  }
}

const NEWLINE = 10

/** Each ends with a newline; of a first one that is torn the end is here. */
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
 * Output for lines to the standard output. A pipe is opened a second time in non-blocking mode, so
 * that a full pipe refuses bytes and does not block a thread until somebody reads. A file or
 * terminal never blocks, and a socket cannot be opened.
 */
export function openOutput(): number {
  try {
    if (!fstatSync(1).isFIFO()) return 1
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return 1
  }
}

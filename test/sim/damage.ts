import { crc32 } from 'node:zlib'
import type { Random } from '../../src/lib/random.ts'
import { openLog } from '../../src/store/log/open-log.ts'
import type { FaultyMemoryFiles } from '../store/support/faulty-memory-files.ts'
import { decodeSegmentHeader, findRecord, recordCrcSeed } from '../../src/store/log/wal-format.ts'
import { type Controller, DATA, FREE_BYTES_MIN, storeIdOf } from './controller.ts'
import type { Damage } from './plan.ts'

const SEGMENT_HEADER_BYTES = 4_096

/**
 * Damages the disk of a stopped controller. It spares the records of the last flush: the disk does
 * not show whether they were ever synced (docs/internals/engine.md), so their loss equals a power
 * cut.
 * @returns whether the disk had anything to damage.
 */
export function harm(controller: Controller, what: Damage, chance: Random): boolean {
  const { files } = controller
  const paths = files.paths().filter((path) => !path.includes('/damaged/'))
  const segments = paths.filter((path) => path.endsWith('.seg')).sort(bySequence)
  switch (what) {
    case 'bit flipped in the log':
      return flip(controller, segments, chance)
    case 'bit flipped in a meta slot': {
      const slot = paths.filter((path) => path.includes('/meta.'))[chance.integer(0, 1)]
      if (slot === undefined) return false
      change(files, slot, (bytes) => flipIn(bytes, 0, bytes.length, chance))
      return true
    }
    case 'misdirected write':
      return misdirect(controller, segments, chance)
    case 'segment missing': {
      const path = segments[chance.integer(0, segments.length - 1)]
      if (path === undefined || segments.length < 2 || path === segments.at(-1)) return false
      files.damage(path, null)
      return true
    }
    case 'segment cut short': {
      const path = segments[chance.integer(0, segments.length - 2)]
      if (path === undefined || segments.length < 2) return false
      change(files, path, (bytes) => bytes.fill(0, SEGMENT_HEADER_BYTES + 64))
      return true
    }
    case 'state damaged': {
      const { records } = controller.stateDisk
      const key = [...records.keys()][chance.integer(0, records.size - 1)]
      if (key === undefined) return false
      const changed = new Map(records)
      const value = changed.get(key) ?? ''
      changed.set(key, `${value.slice(0, -2)}~${value.slice(-1)}`)
      controller.stateDisk.records = changed
      return true
    }
    case 'log of another store':
    case 'log of a newer format':
      return false
  }
}

function change(files: FaultyMemoryFiles, path: string, work: (bytes: Uint8Array) => void): void {
  const bytes = files.read(path)
  work(bytes)
  files.damage(path, bytes)
}

function bySequence(a: string, b: string): number {
  return a.slice(-12) < b.slice(-12) ? -1 : 1
}

function flipIn(bytes: Uint8Array, from: number, to: number, chance: Random): void {
  const at = chance.integer(from, Math.max(from, to - 1))
  bytes[at] = (bytes[at] ?? 0) ^ (1 << chance.integer(0, 7))
}

/**
 * End of a segment's records; in the last segment, end of the records that a later flush proves to
 * be synced.
 */
function provenEnd(bytes: Uint8Array, controller: Controller, isLast: boolean): number {
  const header = decodeSegmentHeader(bytes)
  if (header === null || typeof header === 'number') return SEGMENT_HEADER_BYTES
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const seed = recordCrcSeed(storeIdOf(controller.store), header.sequence)
  let end = SEGMENT_HEADER_BYTES
  let proven = SEGMENT_HEADER_BYTES
  for (;;) {
    const record = findRecord(bytes, view, end, seed)
    if (record === null) return isLast ? proven : end
    proven = record.flushStart
    end = record.end
  }
}

function flip(controller: Controller, segments: readonly string[], chance: Random): boolean {
  const { files } = controller
  const at = chance.integer(0, segments.length - 1)
  const path = segments[at]
  if (path === undefined) return false
  let isHarmed = false
  change(files, path, (bytes) => {
    const from = chance.next() < 0.1 ? 0 : SEGMENT_HEADER_BYTES
    const to = provenEnd(bytes, controller, at === segments.length - 1)
    if (to <= from) return
    flipIn(bytes, from, to, chance)
    isHarmed = true
  })
  return isHarmed
}

/** Writes a block to the wrong place. */
function misdirect(controller: Controller, segments: readonly string[], chance: Random): boolean {
  const { files } = controller
  const at = chance.integer(0, segments.length - 1)
  const path = segments[at]
  if (path === undefined) return false
  let isHarmed = false
  change(files, path, (bytes) => {
    const end = provenEnd(bytes, controller, at === segments.length - 1)
    const blocks = Math.floor((end - SEGMENT_HEADER_BYTES) / 512)
    if (blocks < 2) return
    const [from, to] = [chance.integer(0, blocks - 1), chance.integer(0, blocks - 1)]
    if (from === to) return
    const source = SEGMENT_HEADER_BYTES + from * 512
    bytes.copyWithin(SEGMENT_HEADER_BYTES + to * 512, source, source + 512)
    isHarmed = true
  })
  return isHarmed
}

/**
 * Checks that a folder with files of another store, or of a future release, is refused with the
 * right code and not changed.
 */
export function refusesForeign(controller: Controller, what: Damage): string | null {
  const { files } = controller
  // All copies, because recovery does not read a copy that only a crash prevented from being
  // removed.
  const paths = files
    .paths()
    .filter((one) => one.endsWith('.seg') && !one.includes('/damaged/'))
    .filter((one) => files.read(one).length >= SEGMENT_HEADER_BYTES)
  if (paths.length === 0) return null
  const before = paths.map((path) => files.read(path))
  for (const path of paths) {
    change(files, path, (bytes) => {
      const view = new DataView(bytes.buffer)
      if (what === 'log of a newer format') view.setUint32(8, 99, true)
      else bytes.set(new Uint8Array(16).fill(7), 16)
      sealHeader(bytes)
    })
  }
  const found = files.paths().map((one) => Buffer.from(files.read(one)).toString('base64'))
  let code = 'nothing'
  try {
    openLog(DATA, { files, freeBytesMin: FREE_BYTES_MIN })
  } catch (error) {
    code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
  const after = files.paths().map((one) => Buffer.from(files.read(one)).toString('base64'))
  for (const [at, path] of paths.entries()) {
    const kept = before[at]
    if (kept !== undefined) change(files, path, (bytes) => bytes.set(kept))
  }
  const isUntouched = found.length === after.length && found.every((one, at) => one === after[at])
  const expected = what === 'log of a newer format' ? 'NEWER_FORMAT' : 'FOREIGN'
  if (code !== expected) return `${controller.id} opens a ${what}: ${code}`
  return isUntouched ? null : `${controller.id} changed something on a disk with a ${what}`
}

function sealHeader(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer)
  view.setUint32(SEGMENT_HEADER_BYTES - 4, crc32(bytes.subarray(0, SEGMENT_HEADER_BYTES - 4)), true)
}

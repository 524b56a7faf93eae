import {
  appendFileSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Random } from '../../src/lib/random.ts'

const PAGE_BYTES = 4096

/** Files to damage; `metas`: both slots that store term and vote. */
export type Target = 'log' | 'state' | 'meta' | 'metas'

const KINDS = ['bit', 'zeros', 'noise', 'misdirected', 'cut', 'gone'] as const
type Kind = (typeof KINDS)[number]

/**
 * Damages a random place in a data folder that no controller uses. @returns a description of the
 * damage.
 */
export function damageData(data: string, target: Target, random: Random): string {
  const paths = filesOf(data, target)
  if (target === 'metas') {
    for (const path of paths) damageFile(path, 'bit', 400, random)
    return 'a bit flipped in both meta slots'
  }
  const path = paths[random.integer(0, paths.length - 1)]
  if (path === undefined) throw new Error(`${data} has no files of the ${target}`)
  const kind = KINDS[random.integer(0, KINDS.length - 1)] ?? 'bit'
  const used = usedBytes(readFileSync(path))
  const at = random.integer(0, Math.max(0, used - 1))
  damageFile(path, kind, at, random)
  return `${kind} at byte ${at} of ${used} of ${path.slice(data.length + 1)}`
}

function filesOf(data: string, target: Target): string[] {
  const listed = (folder: string): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
  switch (target) {
    case 'log':
      return listed(join(data, 'wal')).filter((path) => /\/wal\/[^/]*\.seg$/.test(path))
    case 'state':
      return listed(join(data, 'state')).filter((path) => !/\/(LOG|LOG\.old|LOCK)$/.test(path))
    case 'meta':
    case 'metas':
      return ['meta.0', 'meta.1'].map((name) => join(data, name))
  }
}

function usedBytes(bytes: Uint8Array): number {
  let used = bytes.length
  while (used > 0 && bytes[used - 1] === 0) used -= 1
  return used
}

function damageFile(path: string, kind: Kind, at: number, random: Random): void {
  if (kind === 'gone') return rmSync(path)
  if (kind === 'cut') return truncateSync(path, at)
  const bytes = readFileSync(path)
  const page = Math.floor(at / PAGE_BYTES) * PAGE_BYTES
  const end = Math.min(bytes.length, page + PAGE_BYTES)
  switch (kind) {
    case 'bit':
      bytes[at] = (bytes[at] ?? 0) ^ (1 << random.integer(0, 7))
      break
    case 'zeros':
      bytes.fill(0, page, end)
      break
    case 'noise':
      for (let next = page; next < end; next += 1) bytes[next] = random.integer(0, 255)
      break
    case 'misdirected':
      bytes.copy(bytes, page, 0, end - page)
      break
  }
  writeFileSync(path, bytes)
}

/**
 * Damages the state of a data folder so that LevelDB aborts each process that opens it: two files
 * of one level overlap, which LevelDB excludes by an assertion.
 */
export function makeLevelAbort(data: string): void {
  const half = join(data, 'state', readFileSync(join(data, 'state/CURRENT'), 'utf8').trim())
  const manifest = join(half, readFileSync(join(half, 'CURRENT'), 'utf8').trim())
  const sequence = [1, 0, 0, 0, 0, 0, 0, 0]
  const key = (text: string): number[] => [text.length + 8, ...Buffer.from(text), ...sequence]
  const newFile = (number: number): number[] => [7, 1, number, 1, ...key('a'), ...key('z')]
  appendFileSync(manifest, levelRecord(Buffer.from([...newFile(100), ...newFile(101)])))
}

/** One record of LevelDB's log format, with a valid checksum. */
function levelRecord(payload: Buffer): Buffer {
  const typed = Buffer.from([1, ...payload])
  const header = Buffer.alloc(6)
  const crc = crc32c(typed)
  header.writeUInt32LE((((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0, 0)
  header.writeUInt16LE(payload.length, 4)
  return Buffer.concat([header, typed])
}

function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}

import type { Random } from '../../../src/lib/random.ts'
import type { FaultyMemoryFiles } from './faulty-memory-files.ts'

const PAGE_BYTES = 4096

export const DAMAGES = [
  'a bit flipped',
  'a header bit flipped',
  'a page of zeros',
  'a page of noise',
  'a page of another place',
  'content of another segment',
  'a file cut short',
  'a file gone',
  'a file unreadable',
  'the folder gone',
] as const
export type Damage = (typeof DAMAGES)[number]

export function segmentPaths(files: FaultyMemoryFiles, folder: string): string[] {
  return files
    .list(folder)
    .filter((name) => name.endsWith('.seg'))
    .sort((a, b) => a.slice(17).localeCompare(b.slice(17)))
    .map((name) => `${folder}/${name}`)
}

function usedBytes(bytes: Uint8Array): number {
  let used = bytes.length
  while (used > PAGE_BYTES && bytes[used - 1] === 0) used -= 1
  return used
}

/** Damages the log at a random place with the given kind of damage. */
export function damageLog(
  files: FaultyMemoryFiles,
  folder: string,
  kind: Damage,
  random: Random,
): void {
  const paths = segmentPaths(files, folder)
  const path = paths[random.integer(0, paths.length - 1)] ?? ''
  const other = paths[random.integer(0, paths.length - 1)] ?? ''
  const bytes = files.read(path)
  const used = usedBytes(bytes)
  const page = Math.floor(random.integer(0, used - 1) / PAGE_BYTES) * PAGE_BYTES
  const flip = (at: number): void => {
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.integer(0, 7))
  }
  switch (kind) {
    case 'a bit flipped':
      flip(random.integer(Math.min(PAGE_BYTES, used - 1), used - 1))
      break
    case 'a header bit flipped':
      flip(random.integer(0, PAGE_BYTES - 1))
      break
    case 'a page of zeros':
      bytes.fill(0, page, page + PAGE_BYTES)
      break
    case 'a page of noise':
      for (let at = page; at < Math.min(bytes.length, page + PAGE_BYTES); at += 1) {
        bytes[at] = random.integer(0, 255)
      }
      break
    case 'a page of another place': {
      const from = files.read(other)
      const at = Math.floor(random.integer(0, usedBytes(from) - 1) / PAGE_BYTES) * PAGE_BYTES
      bytes.set(from.subarray(at, Math.min(at + PAGE_BYTES, at + bytes.length - page)), page)
      break
    }
    case 'content of another segment':
      files.damage(path, files.read(other))
      return
    case 'a file cut short':
      files.damage(path, bytes.slice(0, random.integer(0, used - 1)))
      return
    case 'a file gone':
      files.damage(path, null)
      return
    case 'a file unreadable':
      files.unreadable.add(path)
      return
    case 'the folder gone':
      files.damage(folder, null)
      return
  }
  files.damage(path, bytes)
}

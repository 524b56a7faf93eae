import { seededRandom, type Random } from '../../src/lib/random.ts'
import { BoltFile, type BoltBucket } from '../../src/migrate/bolt/bolt-file.ts'
import { MemorySource } from '../../src/migrate/bolt/byte-source.ts'
import { fnv1a } from '../../src/migrate/bolt/meta.ts'
import { OpenZitiDatabase } from '../../src/migrate/database.ts'
import { MigrationFault } from '../../src/migrate/fault.ts'
import { convertDatabase } from '../../src/migrate/database-conversion.ts'
import { MigrationReport } from '../../src/migrate/report.ts'
import { IntegrityScan } from '../../src/fsm/cluster/integrity-scan.ts'

// Damages databases in many ways. Each must be refused with a sentence, or read. If it is read, its
// content must not be larger than the file, every record must be converted or reported, and the
// converted state must be consistent.

const HEADER = 16

/** Counts of a run, by which a test sees that both outcomes occurred. */
export interface MutationFigures {
  files: number
  refused: number
  converted: number
  /** Longest time for one file. */
  slowestMs: number
}

/** @throws {Error} with the number of the file, if one does not meet these conditions. */
export function runMutations(
  originals: readonly Buffer[],
  {
    count,
    seed,
    from = 0,
  }: { readonly count: number; readonly seed: number; readonly from?: number },
): MutationFigures {
  const figures = { files: 0, refused: 0, converted: 0, slowestMs: 0 }
  for (let number = from; number < from + count; number += 1) {
    const random = seededRandom(seed * 1_000_003 + number)
    const original = originals[number % originals.length]
    if (original === undefined) throw new Error('there is no original')
    const bytes = mutate(original, random)
    const begin = performance.now()
    try {
      figures[judge(bytes)] += 1
    } catch (error) {
      throw new Error(`file ${number} of seed ${seed}: ${String(error)}`, { cause: error })
    }
    figures.files += 1
    figures.slowestMs = Math.max(figures.slowestMs, performance.now() - begin)
  }
  return figures
}

function judge(bytes: Buffer): 'refused' | 'converted' {
  try {
    const file = new BoltFile(new MemorySource(bytes))
    file.check()
    if (contentBytes(file) > bytes.length) throw new Error('the content is larger than the file')
    const database = new OpenZitiDatabase(new MemorySource(bytes), () => undefined)
    const report = new MigrationReport()
    const state = convertDatabase(database, {
      nowMs: 1_772_500_000_000,
      clusterId: 'cluster-1',
      factorKey: new Uint8Array(32),
      routerCertificates: new Map(),
      controllerHosts: new Set(),
      networkAuthorities: [],
      report,
    })
    for (const { store, records, carried, counts } of report.stores) {
      if (carried < 0 || carried > records) throw new Error(`${store}: ${carried} of ${records}`)
      const isWholeStore = carried === 0 && counts.changed > 0
      if (records - carried > counts.lost + counts.changed && !isWholeStore) {
        throw new Error(`${store}: a record went without a finding`)
      }
    }
    const scan = new IntegrityScan(state)
    while (scan.step());
    if (scan.findings[0] !== undefined) throw new Error(scan.findings[0].description)
    return 'converted'
  } catch (error) {
    if (error instanceof MigrationFault) return 'refused'
    throw error
  }
}

function contentBytes(file: BoltFile): number {
  const visited = file.visitedPages()
  const read = (bucket: BoltBucket): number => {
    let sum = 0
    for (const { key, value, bucket: inner } of file.entries(bucket, visited)) {
      sum += key.length + (inner === null ? value.length : read(inner))
    }
    return sum
  }
  return read(file.root)
}

/** Makes one to four changes to a copy. */
function mutate(original: Buffer, random: Random): Buffer {
  let bytes: Buffer = Buffer.from(original)
  const changes = random.integer(1, 4)
  for (let at = 0; at < changes; at += 1) {
    bytes = pick(mutations, random)(bytes, random)
    if (bytes.length === 0) break
  }
  return bytes
}

type Mutation = (bytes: Buffer, random: Random) => Buffer

const PAGE = 4096

/** Offset of a random page. */
function somePage(bytes: Buffer, random: Random): number {
  return random.integer(0, Math.max(0, Math.floor(bytes.length / PAGE) - 1)) * PAGE
}

function inside(bytes: Buffer, at: number, length: number): boolean {
  return at >= 0 && at + length <= bytes.length
}

/** A number at or next to a limit, or an extreme one. */
function someNumber(random: Random, bytes: Buffer): number {
  const pages = Math.floor(bytes.length / PAGE)
  const choices = [0, 1, 2, 3, pages - 1, pages, pages + 1, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff]
  const chosen = choices[random.integer(0, choices.length)]
  return chosen ?? random.integer(0, 0xffff_ffff)
}

const fieldNames = ['name', 'certPem', 'method', 'identity', 'schema', 'createdAt']

function pick<T>(values: readonly T[], random: Random): T {
  return values[random.integer(0, values.length - 1)] as T
}

const mutations: readonly Mutation[] = [
  // Changes a random bit.
  (bytes, random) => {
    const at = random.integer(0, bytes.length - 1)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.integer(0, 7))
    return bytes
  },
  // Changes a field in the header of a page: ID, flags, count, overflow.
  (bytes, random) => {
    const at = somePage(bytes, random) + pick([0, 8, 10, 12], random)
    if (inside(bytes, at, 4)) bytes.writeUInt32LE(someNumber(random, bytes) >>> 0, at)
    return bytes
  },
  // Changes a field of an element.
  (bytes, random) => {
    const at = somePage(bytes, random) + HEADER + random.integer(0, 255) * 4
    if (inside(bytes, at, 4)) bytes.writeUInt32LE(someNumber(random, bytes) >>> 0, at)
    return bytes
  },
  // Copies a page over another one.
  (bytes, random) => {
    const [to, from] = [somePage(bytes, random), somePage(bytes, random)]
    bytes.copy(bytes, to, from, from + PAGE)
    return bytes
  },
  // Copies a page over another one but keeps the ID of the latter, as if the page were from another
  // time.
  (bytes, random) => {
    const [to, from] = [somePage(bytes, random), somePage(bytes, random)]
    bytes.copy(bytes, to, from, from + PAGE)
    if (inside(bytes, to, 8)) bytes.writeBigUInt64LE(BigInt(to / PAGE), to)
    return bytes
  },
  // Changes a root, free list or mark in both meta pages, with correct checksums.
  (bytes, random) => {
    const field = pick([16, 32, 40], random)
    const number = BigInt(someNumber(random, bytes) >>> 0)
    for (const at of [0, PAGE]) {
      if (!inside(bytes, at, 80)) continue
      const meta = bytes.subarray(at + HEADER, at + HEADER + 64)
      meta.writeBigUInt64LE(number, field)
      meta.writeBigUInt64LE(fnv1a(meta.subarray(0, 56)), 56)
    }
    return bytes
  },
  // Truncates or extends the file.
  (bytes, random) => bytes.subarray(0, random.integer(0, bytes.length)),
  (bytes, random) => Buffer.concat([bytes, Buffer.alloc(random.integer(1, 2 * PAGE), 0xa5)]),
  // Writes random bytes over a range.
  (bytes, random) => {
    const at = random.integer(0, bytes.length - 1)
    const end = Math.min(bytes.length, at + random.integer(1, 200))
    for (let one = at; one < end; one += 1) bytes[one] = random.integer(0, 255)
    return bytes
  },
  // Changes the type of a value, or a part of a text, but not the structure.
  (bytes, random) => {
    const text = pick(fieldNames, random)
    const at = bytes.indexOf(text, random.integer(0, bytes.length))
    const target = at < 0 ? -1 : at + text.length + random.integer(0, 40)
    if (inside(bytes, target, 1)) bytes[target] = random.integer(0, 8)
    return bytes
  },
]

import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Problem } from '../../src/lib/problems.ts'
import { type Random, seededRandom } from '../../src/lib/random.ts'
import type { ListQuery } from '../../src/ports/state-view.ts'
import { kinds } from './query-twin/kinds.ts'
import { Network, pick } from './query-twin/network.ts'

const USAGE = `Puts mutated filters to the lists of a small state: each has to give a page, or to be refused with a code of
filters, in time and in bounded memory.

  node test/fsm/query-fuzz.ts [--filters N] [--seed N]

The filters (100000 from seed 1) are made of those in test/fsm/query-corpus, which are put first as they are. One that
does anything else is made smaller and printed. Times are of the processor; one that seems slow is put again, and its
shortest time counts: what a collection of garbage adds to the others is not its own. Exit status: 0 all held, 1 one did not, 2 wrong usage.`

const slowMs = 50
const heapBytesMax = 512 * 2 ** 20
const detailCharactersMax = 1024
const codes: ReadonlySet<string> = new Set([
  'INVALID_FILTER',
  'INVALID_SORT_IDENTIFIER',
  'COULD_NOT_VALIDATE',
])

/** Example filters, by the name of their file. */
export function corpus(): ReadonlyMap<string, readonly string[]> {
  const folder = join(import.meta.dirname, 'query-corpus')
  const filters = new Map<string, string[]>()
  for (const name of readdirSync(folder)) {
    const lines = readFileSync(join(folder, name), 'utf8').split('\n')
    filters.set(name, lines.filter((line) => line !== '' && !line.startsWith('#')).map(filterOf))
  }
  return filters
}

function filterOf(line: string): string {
  const parsed = JSON.parse(line) as string | (string | [string, number])[]
  if (typeof parsed === 'string') return parsed
  return parsed.map((part) => (typeof part === 'string' ? part : part[0].repeat(part[1]))).join('')
}

export interface FuzzTally {
  readonly filters: number
  readonly answered: number
  readonly refused: ReadonlyMap<string, number>
  readonly slowest: { readonly ms: number; readonly filter: string }
  readonly heapBytesMax: number
  /** The first filter with an unexpected result, reduced to a small one, and the result. */
  readonly failure: { readonly filter: string; readonly what: string } | null
}

interface Verdict {
  readonly code: string | null
  readonly what: string | null
}

const pieces = (
  '( ) [ ] , " \' \\ = != < <= > >= - . and or not in between contains icontains anyOf( allOf( count( isEmpty( from where ' +
  'true false null sort by asc desc skip limit none name id isAdmin roleAttributes configs services identities tags.n ' +
  'service.name "a" "" 0 -1 1e999 datetime(2024-02-29T00:00:00Z) datetime( é 😀 \u0000 \ud800 \n \t'
).split(' ')

/** A filter that is made from others by cutting, repeating, joining and inserting. */
function mutated(random: Random, filters: readonly string[]): string {
  let text = pick(random, filters)
  for (let i = pick(random, [1, 1, 1, 2, 4]); i > 0; i -= 1) {
    const at = random.integer(0, text.length)
    const end = Math.min(text.length, at + random.integer(0, 12))
    const cut = text.slice(at, end)
    switch (random.integer(0, 8)) {
      case 0:
        text = text.slice(0, at) + text.slice(end)
        break
      case 1:
        text = text.slice(0, at) + cut + text.slice(at)
        break
      case 2:
        text = text.slice(0, at) + cut.repeat(random.integer(2, 40)) + text.slice(at)
        break
      case 3: {
        const other = pick(random, filters)
        text = text.slice(0, at) + other.slice(random.integer(0, other.length))
        break
      }
      case 4:
        text = `${text} ${pick(random, ['and', 'or', 'and not'])} ${pick(random, filters)}`
        break
      case 5:
        text = pick(random, ['not ', '(', 'isEmpty(from configs where ']) + text + ')'
        break
      case 6:
        text = text.slice(0, at) + String.fromCharCode(random.integer(0, 0xffff)) + text.slice(end)
        break
      default:
        text = `${text.slice(0, at)}${pick(random, [' ', ''])}${pick(random, pieces)}${pick(random, [' ', ''])}${text.slice(at)}`
    }
  }
  return text
}

function msSince(started: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(started)
  return (user + system) / 1000
}

class Fuzzer {
  readonly #network = new Network(seededRandom(11), 60)

  judge(kind: string, query: ListQuery): Verdict {
    try {
      const { records, totalCount, limit, offset } = this.#network.list(kind, query)
      const isWithinLimit = limit === -1 || records.length <= limit
      const isPage = isWithinLimit && records.length <= totalCount && offset <= 100_000
      return { code: null, what: isPage ? null : 'a page that is none' }
    } catch (error) {
      if (!(error instanceof Problem)) return { code: null, what: String(error).slice(0, 500) }
      const { code, detail } = error
      if (!codes.has(code)) return { code, what: `it was refused with ${code}` }
      const isShort = (detail ?? '').length <= detailCharactersMax
      return { code, what: isShort ? null : 'a refusal that tells too much' }
    }
  }

  /** The shortest time of several runs. */
  msOf(kind: string, query: ListQuery): number {
    let ms = Infinity
    for (let i = 0; i < 5 && ms > slowMs; i += 1) {
      const started = process.threadCpuUsage()
      this.judge(kind, query)
      ms = Math.min(ms, msSince(started))
    }
    return ms
  }

  /** Removes every part without which the filter still fails, in smaller and smaller pieces. */
  minimised(text: string, fails: (text: string) => boolean): string {
    let left = text
    for (let length = left.length >>> 1; length > 0; length >>>= 1) {
      for (let at = 0; at < left.length;) {
        const without = left.slice(0, at) + left.slice(at + length)
        if (fails(without)) left = without
        else at += length
      }
    }
    return left
  }
}

export function fuzz(count: number, seed: number, told: (filters: number) => void): FuzzTally {
  const random = seededRandom(seed)
  const fuzzer = new Fuzzer()
  const files = corpus()
  const originals = [...files.values()].flat()
  // Long filters are chosen rarely: they take the most time and differ the least.
  const short = originals.filter((filter) => filter.length <= 300)
  const good = files.get('good.txt') ?? []
  const names = ['identity', 'service', 'service', ...Object.keys(kinds)]
  const refused = new Map<string, number>()
  let answered = 0
  let slowest = { ms: 0, filter: '' }
  // Measures only the memory of the filters, because tests of other files may have left garbage
  // that is not collected.
  const heapBytesBefore = process.memoryUsage().heapUsed
  let heap = 0
  const tally = (filters: number, failure: FuzzTally['failure']): FuzzTally => ({
    filters,
    answered,
    refused,
    slowest,
    heapBytesMax: heap,
    failure,
  })
  for (let i = 0; i < count; i += 1) {
    const from = random.next() < 0.5 ? good : random.next() < 0.04 ? originals : short
    const text = originals[i] ?? mutated(random, from)
    const kind = pick(random, names)
    const queryOf = (filter: string): ListQuery =>
      i >= originals.length && i % 16 === 0 ? { sort: filter } : { filter, limit: -1 }
    const started = process.threadCpuUsage()
    const { code, what } = fuzzer.judge(kind, queryOf(text))
    let ms = msSince(started)
    if (ms > slowMs) ms = Math.min(ms, fuzzer.msOf(kind, queryOf(text)))
    if (ms > slowest.ms) slowest = { ms, filter: text }
    if (what !== null) {
      const fails = (filter: string): boolean => fuzzer.judge(kind, queryOf(filter)).what !== null
      return tally(i + 1, { filter: fuzzer.minimised(text, fails), what: `${kind}: ${what}` })
    }
    if (ms > slowMs) {
      const isSlow = (filter: string): boolean => fuzzer.msOf(kind, queryOf(filter)) > slowMs
      const what = `${kind}: it takes ${ms.toFixed(0)} ms`
      return tally(i + 1, { filter: fuzzer.minimised(text, isSlow), what })
    }
    if (code === null) answered += 1
    else refused.set(code, (refused.get(code) ?? 0) + 1)
    if (i % 1000 === 0) heap = Math.max(heap, process.memoryUsage().heapUsed - heapBytesBefore)
    if (heap > heapBytesMax) return tally(i + 1, { filter: text, what: 'the memory grows' })
    if (i > 0 && i % 100_000 === 0) told(i)
  }
  return tally(count, null)
}

function main(): void {
  const { values } = parseArgs({
    options: {
      filters: { type: 'string' },
      seed: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) {
    console.log(USAGE)
    return
  }
  const [count, seed] = [Number(values.filters ?? 100_000), Number(values.seed ?? 1)]
  if (!Number.isSafeInteger(count) || !Number.isSafeInteger(seed) || count < 1) {
    console.error(USAGE)
    process.exit(2)
  }
  const started = performance.now()
  const tally = fuzz(count, seed, (filters) => {
    console.log(`${filters} filters, ${((performance.now() - started) / 1000).toFixed(0)} s`)
  })
  if (tally.failure !== null) {
    console.log(`FAILED ${tally.failure.what}\n${JSON.stringify(tally.failure.filter)}`)
    process.exitCode = 1
  }
  console.log(`${tally.filters} filters, ${tally.answered} answered`)
  for (const [code, times] of tally.refused) console.log(`${code} ${times}`)
  const { ms, filter } = tally.slowest
  const begun = JSON.stringify(filter.length > 100 ? `${filter.slice(0, 100)}…` : filter)
  console.log(`heap at most ${(tally.heapBytesMax / 2 ** 20).toFixed(0)} MiB`)
  console.log(`slowest ${ms.toFixed(1)} ms, ${filter.length} characters: ${begun}`)
}

if (import.meta.main) main()

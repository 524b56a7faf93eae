import type { LoadedConfig } from '../../../src/config/engine/load.ts'
import type { SchemaFields, SchemaNode } from '../../../src/config/engine/schema.ts'
import { formatYaml } from '../../../src/config/engine/yaml-tree.ts'
import { type Random, seededRandom } from '../../../src/lib/random.ts'

/** A table of options, and the parameters of its random files. */
export interface FuzzSubject<T> {
  readonly fields: SchemaFields
  /** Keys that most random files contain, at any depth. */
  readonly needed: readonly string[]
  /** Environment variables that may be set. */
  readonly variables: readonly string[]
  parse(text: string, environment: Readonly<Record<string, string>>): LoadedConfig<T>
  /** Throws if an accepted configuration does not have the properties that the table guarantees. */
  check(config: T): void
}

export interface FuzzResult {
  readonly files: number
  readonly accepted: number
  readonly faults: number
}

const odd: readonly unknown[] = [
  null,
  true,
  false,
  0,
  1,
  3,
  -1,
  1.5,
  1e308,
  -0,
  2 ** 53,
  10_001,
  '',
  '3',
  ' ',
  '\0',
  '$',
  '${',
  '$HOME',
  '${A}',
  '$TMP',
  '5s',
  '1m',
  '24h',
  '5',
  '-5s',
  '1h30m',
  '10ms',
  '1e3s',
  'tls:a.test:1',
  'tls:[::1]:6262',
  'tls::1',
  'tls:a:70000',
  'a.test:1',
  '0.0.0.0:0',
  'transport',
  'tunnel',
  'edge',
  'proxy',
  'host',
  'TLS1.2',
  'TLS1.3',
  'health-checks',
  'default',
  '-----BEGIN X',
  'pem:',
  '__proto__',
  'constructor',
  'a'.repeat(300),
  '😀',
  '\u202e',
  [],
  {},
  [null],
  [[1]],
  ['a', 'a'],
  { a: 1 },
  [{}],
  [{ binding: 'transport' }],
  { binding: 'edge' },
  '2026-01-01',
  '0x1F',
  '0o7',
]
const noise = [
  '\t',
  ': ',
  '- ',
  '*a ',
  '&a ',
  '!!binary ',
  '|\n',
  '>',
  '{',
  '}',
  '[',
  ']',
  '#',
  '"',
  "'",
  '\r',
  '%',
  '@',
  '? ',
  '---\n',
  '...\n',
  '<<: ',
  '\u0000',
]

/**
 * Loads random files, half of them nearly correct and half arbitrary. Throws an unexpected result
 * together with its file.
 */
export function fuzz<T>(
  subject: FuzzSubject<T>,
  { seed, files }: { seed: number; files: number },
): FuzzResult {
  let accepted = 0
  let faults = 0
  for (let at = 0; at < files; at += 1) {
    const random = seededRandom(seed * 1_000_003 + at)
    const text = fileOf(subject, random)
    const environment = environmentOf(subject, random)
    try {
      const found = judge(subject, text, environment)
      if (found === 0) accepted += 1
      faults += found
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const given = `${JSON.stringify(environment)}\n${text}`
      throw new Error(`file ${at} of seed ${seed}: ${message}\n${given}`, { cause: error })
    }
  }
  return { files, accepted, faults }
}

/** @returns the number of faults. */
function judge<T>(
  subject: FuzzSubject<T>,
  text: string,
  environment: Readonly<Record<string, string>>,
): number {
  const loaded = subject.parse(text, environment)
  const lines = text.split('\n').length
  for (const { line, key, problem } of [...(loaded.ok ? [] : loaded.faults), ...loaded.warnings]) {
    if (line !== null && (line < 1 || line > lines)) throw new Error(`line ${line} of ${lines}`)
    if (problem === '') throw new Error('a fault without a word')
    if (key.length > 500) throw new Error('a key without an end')
  }
  if (!loaded.ok) {
    if (loaded.faults.length === 0) throw new Error('refused without a fault')
    return loaded.faults.length
  }
  subject.check(loaded.config)
  const keys = loaded.effective.map(({ key }) => key)
  if (new Set(keys).size !== keys.length) throw new Error('a value is shown twice')
  return 0
}

function environmentOf(
  { variables }: FuzzSubject<unknown>,
  random: Random,
): Record<string, string> {
  const set = variables.filter(() => random.next() < 0.3 / variables.length)
  return Object.fromEntries(
    ['HOME', 'A', ...set].map((name) => [name, String(anything(random)).replaceAll('\0', '')]),
  )
}

function fileOf({ fields, needed }: FuzzSubject<unknown>, random: Random): string {
  const rate = random.next() < 0.5 ? 0.02 : random.next()
  const text = formatYaml(sectionOf(fields, { random, rate, needed }))
  return random.next() < 0.3 ? corrupted(text, random) : text
}

/** Parameters for one random file. */
interface Draw {
  readonly random: Random
  /** Probability of each mistake. */
  readonly rate: number
  readonly needed: readonly string[]
}

function sectionOf(fields: SchemaFields, draw: Draw): unknown {
  const { random, rate, needed } = draw
  const made: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const [name, node] of Object.entries(fields)) {
    const isNeeded = needed.includes(name)
    if (!isNeeded && random.next() < 0.7) continue
    if (isNeeded && random.next() < rate) continue
    const written = random.next() < rate / 4 ? misspelt(name, random) : name
    made[written] = random.next() < rate ? anything(random) : valueOf(name, node, draw)
  }
  return made
}

function valueOf(name: string, node: SchemaNode, draw: Draw): unknown {
  const { random } = draw
  switch (node.kind) {
    case 'option':
      return likely(name, node.type.expected, random)
    case 'section':
      return sectionOf(node.fields, draw)
    case 'list':
      return Array.from({ length: random.integer(node.itemsMin, 3) }, () =>
        sectionOf(node.fields, draw),
      )
    case 'keyed':
      return { a: sectionOf(node.fields, draw) }
    case 'variants': {
      const kinds = Object.values(node.fieldsOf)
      return sectionOf(kinds[random.integer(0, kinds.length - 1)] ?? {}, draw)
    }
    case 'ignored':
      return anything(random)
  }
}

/** A value that is usually valid, from the expected type in the table. */
function likely(name: string, expected: string, random: Random): unknown {
  if (name === 'v') return 3
  if (name === 'binding')
    return pick(['transport', 'edge', 'tunnel', 'proxy', 'health-checks'], random)
  const [, from, to] = /^an integer from (\d+) to (\d+)$/.exec(expected) ?? []
  if (from !== undefined) {
    return random.integer(Number(from), Math.min(Number(to), Number(from) + 1000))
  }
  if (expected.startsWith('an integer')) return random.integer(1, 1000)
  if (expected.startsWith('a number')) return random.integer(1, 100)
  if (expected.startsWith('a duration')) return pick(['10ms', '5s', '1m', '24h'], random)
  if (expected.startsWith('an address')) return `tls:a.test:${random.integer(1, 65_535)}`
  if (expected.startsWith('a list of 1 to')) return [`tls:a.test:${random.integer(1, 65_535)}`]
  if (expected.includes('<host>:<port>')) return `a.test:${random.integer(1, 65_535)}`
  if (expected.startsWith('host:port')) return `a.test:${random.integer(1, 65_535)}`
  if (expected.startsWith('a list of up to')) return []
  if (expected.startsWith('a list of one or more of')) return [expected.split(/ of |, /)[2]]
  if (expected.startsWith('a list of IP')) return ['127.0.0.1']
  if (expected.startsWith('a list')) return ['a']
  if (expected === 'true or false') return random.next() < 0.5
  return expected.startsWith('one of') ? expected.split(/one of |, /)[1] : 'a'
}

function pick<T>(of: readonly T[], random: Random): T {
  return of[random.integer(0, of.length - 1)] as T
}

function anything(random: Random): unknown {
  return pick(odd, random)
}

function misspelt(name: string, random: Random): string {
  const at = random.integer(0, name.length)
  return name.slice(0, at) + pick(['x', '', '_', 'é'], random) + name.slice(at + 1)
}

/** Removes or inserts a few characters, as an editor or an incomplete copy could do. */
function corrupted(text: string, random: Random): string {
  let found = text
  for (let count = random.integer(1, 4); count > 0; count -= 1) {
    const at = random.integer(0, found.length)
    const cut = random.next() < 0.5 ? random.integer(0, 5) : 0
    found = found.slice(0, at) + pick(noise, random) + found.slice(at + cut)
  }
  return random.next() < 0.1 ? found.slice(0, random.integer(0, found.length)) : found
}

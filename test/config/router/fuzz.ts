import { yamlText } from '../../../src/config/engine/yaml-tree.ts'
import { type Random, seededRandom } from '../../../src/lib/random.ts'
import { parseRouterConfig } from '../../../src/config/router/load.ts'
import type { RouterFields, SchemaNode } from '../../../src/config/engine/schema.ts'
import { routerFields } from '../../../src/config/router/table.ts'

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

/** Files that are nearly right, and files that are not: as many of each. Throws what should not have happened, with the file. */
export function fuzz({ seed, files }: { seed: number; files: number }): FuzzResult {
  let accepted = 0
  let faults = 0
  for (let at = 0; at < files; at += 1) {
    const random = seededRandom(seed * 1_000_003 + at)
    const text = fileOf(random)
    try {
      const found = judge(text)
      if (found === 0) accepted += 1
      faults += found
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      throw new Error(`file ${at} of seed ${seed}: ${message}\n${text}`, { cause: error })
    }
  }
  return { files, accepted, faults }
}

/** @returns how many faults were told. */
function judge(text: string): number {
  const loaded = parseRouterConfig('/f/router.yml', text, { HOME: '/home/x', A: 'a' })
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
  const { v, identity, ctrl } = loaded.config
  if (v !== 3 || (identity.cert.path === null) === (identity.cert.pem === null)) {
    throw new Error('accepted without what is required')
  }
  if (ctrl.endpoint === null && (ctrl.endpoints ?? []).length === 0) {
    throw new Error('accepted without a controller')
  }
  const keys = loaded.effective.map(({ key }) => key)
  if (new Set(keys).size !== keys.length) throw new Error('a value is told twice')
  return 0
}

function fileOf(random: Random): string {
  const rate = random.next() < 0.5 ? 0.02 : random.next()
  const text = yamlText(sectionOf(routerFields, random, rate, 0))
  return random.next() < 0.3 ? spoilt(text, random) : text
}

function sectionOf(fields: RouterFields, random: Random, rate: number, depth: number): unknown {
  const made: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const [name, node] of Object.entries(fields)) {
    const isNeeded = [
      'v',
      'identity',
      'ctrl',
      'cert',
      'key',
      'endpoint',
      'binding',
      'bind',
    ].includes(name)
    if (!isNeeded && random.next() < 0.7) continue
    if (isNeeded && random.next() < rate) continue
    const written = random.next() < rate / 4 ? misspelt(name, random) : name
    made[written] =
      random.next() < rate ? anything(random) : valueOf(name, node, random, rate, depth)
  }
  return made
}

function valueOf(
  name: string,
  node: SchemaNode,
  random: Random,
  rate: number,
  depth: number,
): unknown {
  switch (node.kind) {
    case 'value':
      return likely(name, node.type.expected, random)
    case 'section':
      return sectionOf(node.fields, random, rate, depth + 1)
    case 'list':
      return Array.from({ length: random.integer(0, 3) }, () =>
        sectionOf(node.item.fields, random, rate, depth + 1),
      )
    case 'keyed':
      return { a: sectionOf(node.item.fields, random, rate, depth + 1) }
    case 'variants': {
      const kinds = Object.values(node.fieldsOf)
      return sectionOf(kinds[random.integer(0, kinds.length - 1)] ?? {}, random, rate, depth + 1)
    }
    case 'ignored':
      return anything(random)
  }
}

/** Mostly a value that fits; by what the table says it expects. */
function likely(name: string, expected: string, random: Random): unknown {
  if (name === 'v') return 3
  if (name === 'binding')
    return pick(['transport', 'edge', 'tunnel', 'proxy', 'health-checks'], random)
  if (expected.startsWith('an integer')) return random.integer(1, 1000)
  if (expected.startsWith('a number')) return random.integer(1, 100)
  if (expected.startsWith('a duration')) return pick(['10ms', '5s', '1m', '24h'], random)
  if (expected.startsWith('an address')) return `tls:a.test:${random.integer(1, 65_535)}`
  if (expected.startsWith('a list of 1 to')) return [`tls:a.test:${random.integer(1, 65_535)}`]
  if (expected.includes('<host>:<port>')) return `a.test:${random.integer(1, 65_535)}`
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

/** A few characters are taken away or put in, as an editor or a half-done copy would. */
function spoilt(text: string, random: Random): string {
  let found = text
  for (let count = random.integer(1, 4); count > 0; count -= 1) {
    const at = random.integer(0, found.length)
    const cut = random.next() < 0.5 ? random.integer(0, 5) : 0
    found = found.slice(0, at) + pick(noise, random) + found.slice(at + cut)
  }
  return random.next() < 0.1 ? found.slice(0, random.integer(0, found.length)) : found
}

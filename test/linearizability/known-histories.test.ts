import { expect, test } from 'vitest'
import { checkByIndex } from './by-index.ts'
import { checkBySearch } from './by-search.ts'
import type { Operation } from './history.ts'
import { appendList, type Model, register, uniqueSet } from './models.ts'
import { print, type Verdict } from './verdict.ts'

// Histories with a known result. Each line is an operation: process, request, response. The columns
// between `[` and `]` are its time; without `]`, its outcome stays unknown.

type Line = readonly [string, string]

/**
 * Parses lines such as `A write 1`, `B read -> 2`, `C cas 1 2 -> true`, `A add x`, `A append x`, `B
 * read -> x,y`. An operation with `!` at its end has failed.
 */
function history(lines: readonly Line[], indexes: readonly (number | null)[] = []): Operation[] {
  return lines.map(([text, bar], n) => {
    const [asked = '', answered = null] = text.replace(/ !$/, '').split(' -> ')
    const [process = '', kind = '', ...values] = asked.split(' ')
    const many = values.length === 2 || kind === 'read' ? null : (values[0] ?? null)
    const argument = kind === 'cas' ? ([values[0] ?? '', values[1] ?? ''] as const) : many
    const end = bar.indexOf(']')
    const outcome = text.endsWith('!') ? 'failed' : end === -1 ? 'unknown' : 'ok'
    const isMany = kind === 'read' && answered?.startsWith('{') === true
    const scalar = answered === 'true' ? true : answered === 'false' ? false : answered
    const elements = (answered ?? '').slice(1, -1).split(',')
    const result = isMany ? elements.filter((element) => element !== '') : scalar
    return {
      process,
      key: 'x',
      kind,
      argument,
      outcome,
      result: outcome === 'ok' ? result : null,
      invokedAt: bar.indexOf('['),
      returnedAt: outcome === 'unknown' ? Infinity : end,
      index: indexes[n] ?? null,
    }
  })
}

function bySearch(model: Model, lines: readonly Line[]): Verdict {
  const verdict = checkBySearch(history(lines), model)
  // Without log indexes, the other checker must also decide only by real time.
  expect(checkByIndex(history(lines), model).kind).toBe(verdict.kind)
  return verdict
}

function culprit(verdict: Verdict): string {
  if (verdict.kind !== 'violation') return verdict.kind
  const { process, kind, argument } = verdict.culprit
  return [process, kind, argument].flat().join(' ').trim()
}

const zero = register('0')

const wrong: readonly (readonly [string, Model, string, readonly Line[]])[] = [
  [
    'a read returns a value that was overwritten before the read began (stale read)',
    zero,
    'B read',
    [
      ['A write 1     ', '[-]          '],
      ['A write 2     ', '    [-]      '],
      ['B read -> 1   ', '        [-]  '],
    ],
  ],
  [
    'the second of two successive reads returns an older value, during a pending write',
    zero,
    'C read',
    [
      ['A write 1     ', '[-----------]'],
      ['B read -> 1   ', '  [-]        '],
      ['C read -> 0   ', '      [-]    '],
    ],
  ],
  [
    'Herlihy and Wing 1990, register: no order of two overlapping writes explains two successive reads',
    zero,
    'D read',
    [
      ['A write 1     ', '[------]               '],
      ['B write 2     ', '[------]               '],
      ['C read -> 1   ', '         [-]           '],
      ['D read -> 2   ', '             [-]       '],
    ],
  ],
  [
    'the value that a compare-and-set wrote is lost, although no other write replaced it (lost update)',
    zero,
    'C read',
    [
      ['A cas 0 1 -> true', '[--]          '],
      ['B cas 1 2 -> true', ' [--]         '],
      ['C read -> 1      ', '      [-]     '],
    ],
  ],
  [
    'two compare-and-sets replace the same value (split brain)',
    zero,
    'B cas 0 2',
    [
      ['A cas 0 1 -> true', '[--]          '],
      ['B cas 0 2 -> true', '     [--]     '],
    ],
  ],
  [
    'a compare-and-set is refused, although the expected value was present all the time',
    zero,
    'B cas 1 2',
    [
      ['A write 1         ', '[--]          '],
      ['B cas 1 2 -> false', '     [--]     '],
    ],
  ],
  [
    'a read returns the value of a failed write (aborted read)',
    zero,
    'B read',
    [
      ['A write 1 !   ', '[--]          '],
      ['B read -> 1   ', '     [--]     '],
    ],
  ],
  [
    'a read returns a value before the write of that value begins',
    zero,
    'B read',
    [
      ['B read -> 1   ', '[--]          '],
      ['A write 1     ', '     [--]     '],
    ],
  ],
  [
    'a write of unknown outcome takes effect and is reverted (dirty read)',
    zero,
    'C read',
    [
      ['A write 1     ', '[             '],
      ['B read -> 1   ', '  [-]         '],
      ['C read -> 0   ', '      [-]     '],
    ],
  ],
  [
    'an acknowledged element is missing from a set',
    uniqueSet(),
    'C read',
    [
      ['A add a         ', '[--]          '],
      ['B add b         ', '[--]          '],
      ['C read -> {b}   ', '     [--]     '],
    ],
  ],
  [
    'each of two reads of a set returns only one of two elements, and not the same one',
    uniqueSet(),
    'D read',
    [
      ['A add a         ', '[----------]  '],
      ['B add b         ', '[----------]  '],
      ['C read -> {a}   ', '  [---]       '],
      ['D read -> {b}   ', '  [----]      '],
    ],
  ],
  [
    'a set contains an element twice',
    uniqueSet(),
    'B read',
    [
      ['A add a         ', '[--]          '],
      ['B read -> {a,a} ', '     [--]     '],
    ],
  ],
  [
    'an acknowledged append is lost',
    appendList(),
    'C read',
    [
      ['A append a      ', '[--]          '],
      ['B append b      ', '     [--]     '],
      ['C read -> {a}   ', '          [-] '],
    ],
  ],
  [
    'an append that was sent twice takes effect twice',
    appendList(),
    'B read',
    [
      ['A append a      ', '[--]          '],
      ['B read -> {a,a} ', '     [--]     '],
    ],
  ],
  [
    'Herlihy and Wing 1990, queue: an element comes before one that was appended earlier',
    appendList(),
    'C read',
    [
      ['A append a      ', '[--]          '],
      ['B append b      ', '     [--]     '],
      ['C read -> {b,a} ', '          [-] '],
    ],
  ],
  [
    'two reads return the same elements in different orders',
    appendList(),
    'D read',
    [
      ['A append a      ', '[--]          '],
      ['B append b      ', '[--]          '],
      ['C read -> {a,b} ', '     [-]      '],
      ['D read -> {b,a} ', '         [-]  '],
    ],
  ],
]

for (const [title, model, expected, lines] of wrong) {
  test(`a history that is not linearizable is rejected: ${title}`, () => {
    expect(culprit(bySearch(model, trimmed(lines)))).toBe(expected)
  })
}

const right: readonly (readonly [string, Model, readonly Line[]])[] = [
  ['no operation', zero, []],
  [
    'Herlihy and Wing 1990: overlapping operations may take effect in either order',
    zero,
    [
      ['A write 1     ', '[----------]  '],
      ['B read -> 1   ', '  [-]         '],
      ['C read -> 1   ', '      [-]     '],
      ['D read -> 0   ', '[---]         '],
    ],
  ],
  [
    'an operation that begins at the time at which another one returns overlaps with it',
    zero,
    [
      ['A write 1     ', '[-]           '],
      ['B read -> 0   ', '  [-]         '],
    ],
  ],
  [
    'a write of unknown outcome takes effect long after its client gave up',
    zero,
    [
      ['A write 1     ', '[             '],
      ['B read -> 0   ', ' [-]          '],
      ['B write 2     ', '     [-]      '],
      ['C read -> 2   ', '        [-]   '],
      ['C read -> 1   ', '            []'],
    ],
  ],
  [
    'a write of unknown outcome never takes effect',
    zero,
    [
      ['A write 1     ', '[             '],
      ['B read -> 0   ', ' [-]          '],
      ['B read -> 0   ', '      [-]     '],
    ],
  ],
  [
    'a compare-and-set is refused because of a write of unknown outcome whose value was never read',
    zero,
    [
      ['A write 1         ', '[             '],
      ['B cas 0 2 -> false', '     [--]     '],
    ],
  ],
  [
    'no read returns the value of a failed write',
    zero,
    [
      ['A write 1 !   ', '[--]          '],
      ['B read -> 0   ', '     [--]     '],
    ],
  ],
  [
    'of two overlapping reads of a set, one returns more elements than the other',
    uniqueSet(),
    [
      ['A add a         ', '[----------]  '],
      ['B add b         ', '[----------]  '],
      ['C read -> {b}   ', '  [---]       '],
      ['D read -> {a,b} ', '  [----]      '],
    ],
  ],
  [
    'overlapping appends take effect in the order in which all reads return them',
    appendList(),
    [
      ['A append a      ', '[--]          '],
      ['B append b      ', '[--]          '],
      ['C append c      ', '[             '],
      ['D read -> {b,a} ', '     [-]      '],
      ['D read -> {b,a,c}', '         [-] '],
    ],
  ],
]

for (const [title, model, lines] of right) {
  test(`a linearizable history is accepted: ${title}`, () => {
    expect(bySearch(model, trimmed(lines)).kind).toBe('linearizable')
  })
}

function trimmed(lines: readonly Line[]): Line[] {
  return lines.map(([text, bar]) => [text.trim(), bar])
}

test('a log index that contradicts real time violates linearizability, even if the responses could be explained', () => {
  const lines: readonly Line[] = [
    ['A write 1', '[-]      '],
    ['B write 2', '    [-]  '],
  ]
  expect(checkBySearch(history(lines), zero).kind).toBe('linearizable')
  expect(checkByIndex(history(lines, [5, 6]), zero).kind).toBe('linearizable')
  expect(culprit(checkByIndex(history(lines, [6, 5]), zero))).toBe('B write 2')
})

test('a read at an index before an already completed write violates linearizability', () => {
  const lines: readonly Line[] = [
    ['A write 1  ', '[-]      '],
    ['B read -> 1', '    [-]  '],
  ]
  const trimmedLines = trimmed(lines)
  expect(checkByIndex(history(trimmedLines, [5, 5]), zero).kind).toBe('linearizable')
  expect(culprit(checkByIndex(history(trimmedLines, [5, 4]), zero))).toBe('B read')
})

test('a response that contradicts its log index violates linearizability, even if another index would explain it', () => {
  const lines = trimmed([
    ['A write 1  ', '[-----]      '],
    ['B write 2  ', '[-----]      '],
    ['C read -> 1', '[---------]  '],
  ])
  expect(checkByIndex(history(lines, [5, 6, 5]), zero).kind).toBe('linearizable')
  const verdict = checkByIndex(history(lines, [5, 6, 6]), zero)
  expect(verdict).toMatchObject({ kind: 'violation', reason: 'index 6 holds "2"' })
})

test('an operation in the log takes effect at its log index, even if its client got no response', () => {
  const lines = trimmed([
    ['A write 1  ', '[            '],
    ['B read -> 0', '    [-]      '],
  ])
  expect(checkByIndex(history(lines, [9, 8]), zero).kind).toBe('linearizable')
  expect(culprit(checkByIndex(history(lines, [7, 8]), zero))).toBe('B read')
})

test('changes with the same log index may be ordered in any way that real time allows', () => {
  const overlapping = trimmed([
    ['A append a      ', '[---]        '],
    ['B append b      ', '[---]        '],
    ['C read -> {b,a} ', '      [-]    '],
  ])
  expect(checkByIndex(history(overlapping, [5, 5, 5]), appendList()).kind).toBe('linearizable')
  const apart = trimmed([
    ['A append a      ', '[-]          '],
    ['B append b      ', '   [-]       '],
    ['C read -> {b,a} ', '      [-]    '],
  ])
  expect(culprit(checkByIndex(history(apart, [5, 5, 5]), appendList()))).toBe('C read')
})

test('a search that exceeds its budget reports a history as undecided, not as linearizable', () => {
  const lines = Array.from({ length: 12 }, (_, n): Line => [`A write ${n}`, '[--]     '])
  const impossible: Line = ['B read -> never', '     [-] ']
  const verdict = checkBySearch(history([...lines, impossible]), zero, { statesMax: 1000 })
  expect(verdict).toEqual({ kind: 'undecided', key: 'x', statesMax: 1000 })
  expect(print(verdict)).toContain('undecided')
})

test('a counterexample to linearizability ends at the first operation that no order explains, and omits unnecessary reads', () => {
  const lines: Line[] = [
    ['A write 1', '[]'],
    ['Z write 7 !', '[]'],
  ]
  const at = (n: number): string => ' '.repeat(3 * n)
  for (let n = 1; n < 200; n += 1) lines.push(['B read -> 1', `${at(n)}[]`])
  lines.push(['C read -> 7', `${at(200)}[]`], ['D read -> 1', `${at(201)}[]`])
  const verdict = checkBySearch(history(lines), zero)
  expect(print(verdict).split('\n')).toEqual([
    'register x: no order explains what is marked: what came before leaves "1"',
    '  [0, 1] A: write "1" -> ok',
    '  [0, 1] Z: write "7" -> failed',
    '> [600, 601] C: read -> "7"',
  ])
})

test('only the end of a long counterexample to linearizability is printed', () => {
  const lines = Array.from({ length: 500 }, (_, n): Line => {
    return [`A append ${'e'.repeat(300)}${n}`, `${' '.repeat(3 * n)}[]`]
  })
  lines.push(['B read -> {}', `${' '.repeat(1500)}[]`])
  const text = print(checkBySearch(history(lines), appendList()))
  expect(text.length).toBeLessThan(8000)
  expect(text).toContain('B: read -> []')
})

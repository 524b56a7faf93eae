import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'

// Goal: the way of a request through the source gets no longer. walks.json holds the counts of tools/walk.ts for four requests.
// They may fall and never rise: a count that fell is recorded, so that it stays. FLOTILLA_RECORD=1 writes those that fell.
// A request that must do more than before gets its higher number by hand, in the commit that says why.

const root = join(import.meta.dirname, '..')
const recordPath = join(import.meta.dirname, 'walks.json')

/** Counts by request. */
type Counts = Readonly<Record<string, Readonly<Record<string, number>>>>

interface Walked {
  readonly counts: Readonly<Record<string, number>>
  readonly visits: readonly { readonly file: string; readonly functions: readonly string[] }[]
}

let walks: Readonly<Record<string, Walked>> = {}
let now: Counts = {}
beforeAll(() => {
  const printed = execFileSync(process.execPath, ['tools/walk.ts', '--json'], {
    cwd: root,
    encoding: 'utf8',
  })
  walks = JSON.parse(printed) as typeof walks
  now = Object.fromEntries(Object.entries(walks).map(([name, { counts }]) => [name, counts]))
})

/** @returns what differs from the record, a sentence each. */
function differences(counts: Counts, record: Counts): string[] {
  const found: string[] = []
  for (const name of new Set([...Object.keys(record), ...Object.keys(counts)])) {
    const [walk, recorded] = [counts[name] ?? {}, record[name] ?? {}]
    for (const what of new Set([...Object.keys(recorded), ...Object.keys(walk)])) {
      const [count, limit] = [walk[what], recorded[what]]
      if (count === undefined) found.push(`${name}: ${what} is recorded and not counted`)
      else if (limit === undefined) found.push(`${name}: ${what} is ${count} and not recorded`)
      else if (count > limit) {
        found.push(
          `${name}: ${count} ${what}, ${count - limit} more than the ${limit} recorded: go a shorter way, or raise it by hand and say why in the commit`,
        )
      } else if (count < limit) {
        found.push(
          `${name}: ${count} ${what}, ${limit - count} fewer than recorded: lower the number in test/walks.json`,
        )
      }
    }
  }
  return found
}

/** @returns the record with what fell since, and with what is new. */
function lowered(record: Counts, counts: Counts): Counts {
  const ofOne = (name: string, what: string, count: number): [string, number] => [
    what,
    Math.min(count, record[name]?.[what] ?? count),
  ]
  return Object.fromEntries(
    Object.entries(counts).map(([name, walk]) => [
      name,
      Object.fromEntries(Object.entries(walk).map(([what, n]) => ofOne(name, what, n))),
    ]),
  )
}

function recorded(): Counts {
  const record = existsSync(recordPath)
    ? (JSON.parse(readFileSync(recordPath, 'utf8')) as Counts)
    : {}
  if (process.env['FLOTILLA_RECORD'] !== '1') return record
  const written = lowered(record, now)
  writeFileSync(recordPath, `${JSON.stringify(written, null, 2)}\n`)
  return written
}

test('a request enters no more of the source than is recorded, and what it no longer enters is recorded', () => {
  expect(differences(now, recorded())).toEqual([])
})

test('a request is counted from its head to its answer, through apply where it writes', () => {
  for (const [name, { visits }] of Object.entries(walks)) {
    const files = visits.map(({ file }) => file)
    expect(files[0], name).toBe('src/api/paths.ts')
    expect(files.includes('src/fsm/apply.ts'), name).toBe(name !== 'list')
    expect(files.every((file, at) => file !== files[at + 1])).toBe(true)
  }
  expect(Object.keys(walks)).toEqual(['write', 'log-in', 'enroll', 'list'])
})

test('the counts are those of the visits that are listed', () => {
  for (const [name, { counts, visits }] of Object.entries(walks)) {
    const files = new Set(visits.map(({ file }) => file))
    const calls = visits.reduce((sum, { functions }) => sum + functions.length, 0)
    const returns = visits.length - files.size
    expect(counts, name).toMatchObject({ calls, files: files.size, visits: visits.length, returns })
  }
})

test('a count above the record, below it, or without one is named', () => {
  const record = { write: { files: 7, visits: 20 } }
  expect(differences({ write: { files: 9, visits: 19 } }, record)).toEqual([
    'write: 9 files, 2 more than the 7 recorded: go a shorter way, or raise it by hand and say why in the commit',
    'write: 19 visits, 1 fewer than recorded: lower the number in test/walks.json',
  ])
  expect(differences({ list: { files: 7 } }, record)).toEqual([
    'write: files is recorded and not counted',
    'write: visits is recorded and not counted',
    'list: files is 7 and not recorded',
  ])
})

test('recording lowers counts and raises none', () => {
  const record = { write: { files: 7, visits: 20 } }
  const counts = { write: { files: 9, visits: 19 }, list: { files: 3 } }
  expect(lowered(record, counts)).toEqual({
    write: { files: 7, visits: 19 },
    list: { files: 3 },
  })
})

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'

// Goal: the path of a request through the source does not become longer. walks.json has two counts
// of tools/walk.ts for four requests: the files that a request enters, and its returns to
// previously entered files. A difference of up to 3 is tolerated in both directions.
// FLOTILLA_RECORD=1 records counts that have decreased by more. Raise a count by hand, in the
// commit that gives the reason.

const root = join(import.meta.dirname, '..')
const recordPath = join(import.meta.dirname, 'walks.json')

const recordedCounts = ['files', 'returns']
/** The tolerated difference between a count and its record, up or down. */
const TOLERANCE = 3

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
  now = Object.fromEntries(
    Object.entries(walks).map(([name, { counts }]) => {
      const kept = Object.entries(counts).filter(([what]) => recordedCounts.includes(what))
      return [name, Object.fromEntries(kept)]
    }),
  )
})

/** @returns the differences from the record, one sentence each. */
function differences(counts: Counts, record: Counts): string[] {
  const found: string[] = []
  for (const name of new Set([...Object.keys(record), ...Object.keys(counts)])) {
    const [walk, recorded] = [counts[name] ?? {}, record[name] ?? {}]
    for (const what of new Set([...Object.keys(recorded), ...Object.keys(walk)])) {
      const [count, limit] = [walk[what], recorded[what]]
      if (count === undefined) found.push(`${name}: ${what} is recorded and not counted`)
      else if (limit === undefined) found.push(`${name}: ${what} is ${count} and not recorded`)
      else if (count > limit + TOLERANCE) {
        found.push(
          `${name}: ${count} ${what}, ${count - limit} more than the ${limit} recorded: go a shorter way, or raise it in test/walks.json by hand and say why in the commit`,
        )
      } else if (count < limit - TOLERANCE) {
        found.push(
          `${name}: ${count} ${what}, ${limit - count} fewer than the ${limit} recorded: run this test with FLOTILLA_RECORD=1, then make fmt`,
        )
      }
    }
  }
  return found
}

/**
 * @returns the record with the counts that decreased by more than the tolerance, and with new
 * counts.
 */
function lowered(record: Counts, counts: Counts): Counts {
  const ofOne = (name: string, what: string, count: number): [string, number] => {
    const limit = record[name]?.[what] ?? count
    return [what, count < limit - TOLERANCE ? count : limit]
  }
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

test('the number of source files and function returns of each traced request stays within the tolerance of the recorded baseline', () => {
  expect(differences(now, recorded())).toEqual([])
})

test('the trace of a request through the source begins with parsing the path, and includes applying the log entry if the request is a write', () => {
  for (const [name, { visits }] of Object.entries(walks)) {
    const files = visits.map(({ file }) => file)
    expect(files[0], name).toBe('src/api/http/paths.ts')
    expect(files.includes('src/fsm/apply-log-entry.ts'), name).toBe(name !== 'list')
    expect(files.every((file, at) => file !== files[at + 1])).toBe(true)
  }
  expect(Object.keys(walks)).toEqual(['write', 'log-in', 'enroll', 'list'])
})

test('the recorded counts of a traced request equal the number of files and calls in its trace', () => {
  for (const [name, { counts, visits }] of Object.entries(walks)) {
    const files = new Set(visits.map(({ file }) => file))
    const calls = visits.reduce((sum, { functions }) => sum + functions.length, 0)
    const returns = visits.length - files.size
    expect(counts, name).toMatchObject({ calls, files: files.size, visits: visits.length, returns })
  }
})

test('a count of a traced request that exceeds the tolerance, or has no recorded baseline, is reported with advice', () => {
  const record = { write: { files: 7, returns: 20 } }
  expect(differences({ write: { files: 10, returns: 17 } }, record)).toEqual([])
  expect(differences({ write: { files: 11, returns: 16 } }, record)).toEqual([
    'write: 11 files, 4 more than the 7 recorded: go a shorter way, or raise it in test/walks.json by hand and say why in the commit',
    'write: 16 returns, 4 fewer than the 20 recorded: run this test with FLOTILLA_RECORD=1, then make fmt',
  ])
  expect(differences({ list: { files: 7 } }, record)).toEqual([
    'write: files is recorded and not counted',
    'write: returns is recorded and not counted',
    'list: files is 7 and not recorded',
  ])
})

test('recording a baseline lowers counts that fell by more than the tolerance, and raises none', () => {
  const record = { write: { files: 7, returns: 20 }, list: { files: 9 } }
  const counts = { write: { files: 12, returns: 16 }, list: { files: 6, returns: 3 } }
  expect(lowered(record, counts)).toEqual({
    write: { files: 7, returns: 16 },
    list: { files: 9, returns: 3 },
  })
})

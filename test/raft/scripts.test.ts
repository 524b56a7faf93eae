import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chapters } from './script-chapters.ts'
import { headOf, holdTo, play } from './script-file.ts'
import { titlesIn } from '../support/titles.ts'

const folder = join(import.meta.dirname, 'scripts')
const names = chapters.flatMap(({ scripts }) => scripts)
const pathOf = (name: string): string => join(folder, `${name}.txt`)
const read = (name: string): string => readFileSync(pathOf(name), 'utf8')

for (const name of names) {
  test(`the recorded script reproduces its result: ${name.replaceAll('_', ' ')}`, () => {
    holdTo(pathOf(name), play)
  })
}

test('every script is in one chapter, and the table of contents lists every chapter', () => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.txt'))
  expect(files.map((file) => file.replace('.txt', ''))).toEqual([...names].sort())
  holdTo(join(folder, 'README.md'), contents)
})

test.for<[string, readonly string[]]>([
  ['Raft paper', ['5.1', '5.2', '5.3', '5.4.1', '5.4.2', '5.4.3', '5.5', '5.6', '6', '7', '8']],
  ['figure 2', ['State', 'All Servers', 'Followers', 'Candidates', 'Leaders']],
  ['figure 2', ['AppendEntries 1', 'AppendEntries 2', 'AppendEntries 3', 'AppendEntries 4']],
  ['figure 2', ['AppendEntries 5', 'RequestVote 1', 'RequestVote 2']],
  ['figure', ['6', '7', '8']],
  ['Dissertation', ['3.8', '3.10', '4.1', '4.2.1', '4.2.2', '4.2.3', '4.3', '6.2', '6.4']],
  ['Dissertation', ['9.6', '10.2.1']],
])('each rule of the Raft paper and dissertation has a test script: %s %s', ([book, rules]) => {
  const parts = names.flatMap((name) => headOf(read(name)).section.split(/; |, (?=figure)/))
  const said = parts.filter((part) => part.toLowerCase().startsWith(book.toLowerCase()))
  const places = new Set(
    said.flatMap((part) => part.slice(book.length).split(/, | and |: | (?=\()/)),
  )
  const found = new Set([...places].map((place) => place.trim()))
  expect(rules.filter((rule) => !found.has(rule))).toEqual([])
})

test('every documented divergence from the Raft paper names an existing script or test, and each script for a divergence names a documented topic', () => {
  const rows = divergences()
  expect(rows.length).toBeGreaterThan(0)
  expect(rows.filter(({ shownBy }) => shownBy === '')).toEqual([])
  const shown = rows.flatMap(({ shownBy }) =>
    [...shownBy.matchAll(/`([^`/.]*_[^`/.]*)`/g)].map(([, script = '']) => script),
  )
  expect(shown.filter((script) => !names.includes(script))).toEqual([])
  const quoted = rows.flatMap(({ shownBy }) =>
    [...shownBy.matchAll(/"([^"]+)"/g)].map(([, title = '']) => title),
  )
  const titles = readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith('.test.ts'))
    .flatMap((file) => titlesIn(readFileSync(join(import.meta.dirname, file), 'utf8')))
    .map((title) => title.split(' > ').at(-1))
  expect(quoted.filter((title) => !titles.includes(title))).toEqual([])
  const topics = new Set(rows.map(({ topic }) => topic.replace(/ \(.*\)$/, '')))
  const told = names.map((name) => /^Flotilla: ([^;]+)/.exec(headOf(read(name)).section)?.[1])
  expect(told.filter((topic) => topic !== undefined && !topics.has(topic))).toEqual([])
})

/** Divergences of the Raft core from the paper that the docs list. */
function divergences(): { readonly topic: string; readonly shownBy: string }[] {
  const page = readFileSync(join(import.meta.dirname, '../../docs/internals/divergence.md'), 'utf8')
  const [, rest = ''] = page.split('## From the Raft paper\n')
  const [tables = ''] = rest.split('\n## ')
  const rows = tables.split('\n').filter((line) => /^\| (?!topic \|)/.test(line))
  return rows.map((line) => {
    const cells = line.split('|').map((cell) => cell.trim())
    return { topic: cells[1] ?? '', shownBy: cells.at(-2) ?? '' }
  })
}

test('a script whose result differs from the recorded one fails, and only FLOTILLA_RECORD=1 updates the recorded result', () => {
  const dir = mkdtempSync(join(tmpdir(), 'flotilla-script-'))
  const path = join(dir, 'script.txt')
  const [name = ''] = names
  copyFileSync(pathOf(name), path)
  const wrong = readFileSync(path, 'utf8').replace('1 follower', '1 leader')
  writeFileSync(path, wrong)
  expect(() => holdTo(path, play, false)).toThrow('recorded: 1 leader')
  expect(readFileSync(path, 'utf8')).toBe(wrong)
  holdTo(path, play, true)
  expect(readFileSync(path, 'utf8')).toBe(read(name))
  rmSync(dir, { recursive: true })
})

function contents(): string {
  const parts = [
    '# Raft rules, one script each',
    '',
    'For developers of the Raft core. Each script runs with the real Raft core, and contains the recorded results below each scene. The',
    'scripts cover the rules of the Raft paper (Ongaro and Ousterhout, 2014), of the dissertation (Ongaro, 2014), and our own rules',
    '([divergences](../../../docs/internals/divergence.md)), in the recommended order of reading.',
    '[script-runner.ts](../script-runner.ts) defines the language of the scripts. The test fails when a result differs from its recording;',
    '`FLOTILLA_RECORD=1` records the results and this page again. No script covers the rule that a command takes effect once (paper 8,',
    'dissertation 6.3), because the state machine implements this rule, not the Raft core: see `test/fsm/dedupe.test.ts`.',
  ]
  for (const { title, scripts } of chapters) {
    parts.push('', `## ${title}`, '| section | script | rule |', '|---|---|---|')
    for (const name of scripts) {
      const { section, rule } = headOf(read(name))
      parts.push(`| ${section} | [${name.replaceAll('_', ' ')}](${name}.txt) | ${rule} |`)
    }
  }
  return `${parts.join('\n')}\n`
}

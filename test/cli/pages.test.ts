import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

import { buildProgram } from '../../src/cli/program.ts'
import { pageNames } from '../support/pages.ts'
import { nameOf, ranBy, shownVerbs, verbIn, wordsOf } from './command-lines.ts'

// Goal: no page names a command, an option or an argument that the program does not accept, even if
// no test runs the line. Method: the parser of the program parses each line of a block, and each
// command within a sentence.

const root = resolve(import.meta.dirname, '../..')
const pages = [
  'README.md',
  'SECURITY.md',
  'deploy/README.md',
  ...pageNames()
    .filter((name) => !name.startsWith('adr/'))
    .map((name) => `docs/${name}`),
]
const program = buildProgram()
const verbs = shownVerbs(program)
const groups = new Set(program.commands.filter((one) => one.commands.length > 0).map(nameOf))

/** Log lines that begin like the name of a command group. */
const notCommands = new Set(['controller not reached', 'identity files changed and were rejected'])

/**
 * Commands of the program in the code blocks of a page, without the parts that only a shell uses.
 */
function linesIn(text: string): string[] {
  const blocks = [...text.matchAll(/^ *```(?:sh)?\n(.*?)^ *```$/gms)].map(([, block = '']) => block)
  return blocks.flatMap((block) => {
    const typed = block
      .replaceAll(/\\\n\s*/g, '')
      .replaceAll(/(^|\s)#.*$/gm, '')
      .replaceAll(/<[a-z][^>\n]*>/g, 'PLACEHOLDER')
    return typed
      .split(/\n|[|;()]|&&/)
      .flatMap(
        (part) => /^\s*(?:runuser \S+ \S+ -- )?(?:\S*\/)?(flotilla [a-z].*)$/.exec(part)?.[1] ?? [],
      )
  })
}

/** Commands in the sentences of a page; several commands can share their first words. */
function namedIn(text: string): string[] {
  const prose = text.replaceAll(/^ *```.*?^ *```$/gms, '')
  return [...prose.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = '']) => {
    const words = code.replace(/^(?:bin\/)?flotilla /, '')
    const [first = '', second = ''] = words.split(' ')
    if (notCommands.has(code)) return []
    const isMeant = words !== code || (groups.has(first) && /^[a-z]/.test(second))
    return isMeant && !code.includes('…') ? alternatives(words) : []
  })
}

function alternatives(words: string): string[] {
  const found = /^(.*?)((?:[a-z-]+\|)+[a-z-]+)(.*)$/.exec(words)
  if (found === null) return [words]
  const [, before = '', among = '', after = ''] = found
  return among.split('|').map((one) => `${before}${one}${after}`)
}

/** @returns the error in a command whose arguments may be omitted; null: none. */
function faultOf(named: string): string | null {
  const words = named.split(/\s+/)
  if (groups.has(named) || words[0] === 'help') return null
  const name = verbIn(verbs, words)
  const command = verbs.find(([one]) => one === name)?.[1]
  if (command === undefined) return 'no such verb'
  const known = new Set(command.options.flatMap(({ long, short }) => [long, short]))
  const unknown = words.filter((word) => word.startsWith('-') && !known.has(word))
  return unknown.length === 0 ? null : `no option ${unknown.join(', ')}`
}

describe('The commands', () => {
  test.each(pages)('in code blocks of %s are accepted by the program', async (page) => {
    for (const line of linesIn(readFileSync(join(root, page), 'utf8'))) {
      const words = wordsOf(line)
      const ran = await ranBy(words).catch((error: unknown) => String(error))
      expect(ran, line).toBe(verbIn(verbs, words))
    }
  })

  test.each(pages)('in sentences of %s are commands and options of the program', (page) => {
    const named = namedIn(readFileSync(join(root, page), 'utf8'))
    const faults = named.flatMap((one) => {
      const fault = faultOf(one)
      return fault === null ? [] : `${one}: ${fault}`
    })
    expect(faults).toEqual([])
  })

  test('are found by this test in the docs pages', () => {
    const text = pages.map((page) => readFileSync(join(root, page), 'utf8')).join('\n')
    expect(linesIn(text).length).toBeGreaterThan(60)
    expect(namedIn(text).length).toBeGreaterThan(60)
    expect(
      linesIn('```sh\n(umask 077; runuser -u f -- /opt/bin/flotilla cluster x -y < t)\n```'),
    ).toEqual(['flotilla cluster x -y < t'])
    expect(namedIn('`pki inspect|renew --out FILE`')).toEqual([
      'pki inspect --out FILE',
      'pki renew --out FILE',
    ])
    expect(faultOf('pki inspect --out FILE')).toBe('no option --out')
    expect(faultOf('cluster snapshots')).toBe('no such verb')
  })
})

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { CONFIG_FAULTS_MAX, loadConfig } from '../../../src/config/engine/load.ts'
import { faultsOf, LEAST, parse, tableOf } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'flotilla-config-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})

describe('The text of a configuration file', () => {
  test.each([
    ['an empty file', '', 'name: is missing'],
    ['a list', '- a\n', 'expected a section with keys, found ["a"]'],
    ['a text', 'hello\n', 'expected a section with keys, found "hello"'],
    ['invalid YAML', 'name: [3\n', 'Flow sequence'],
    ['several documents', 'name: a\n---\nname: b\n', 'a second document begins after'],
    [
      'a repeated key',
      `${LEAST}name: x\n`,
      'the same key is given twice in this section; keep one of them',
    ],
    ['an alias without an anchor', 'name: *a\n', 'an anchor that is not there'],
    ['an alias of itself', 'name: &a {b: [*a]}\n', 'nested deeper'],
    [
      'aliases that expand to a billion values',
      `a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n`,
      'more than',
    ],
    ['unlimited nesting', '['.repeat(5000), ''],
  ])('is refused without an exception: %s', (_, text, message) => {
    const found = faultsOf('', { text })
    expect(found.length).toBeGreaterThan(0)
    expect(found.join('\n')).toContain(message)
  })

  test('is refused with the line if it is not YAML', () => {
    expect(faultsOf('', { text: 'name: n\nhome: [' })[0]).toMatch(/^2: invalid YAML: /)
    expect(faultsOf('', { text: `${LEAST}name: x\n` })[0]).toMatch(/^6: invalid YAML: /)
  })

  test.each([
    ['a value of a template', 'name: n\nhome: {{ .Values.home }}:22\n', 2],
    ['a statement of a template', 'name: n\n{{- if .Values.home }}\nhome: /n\n{{- end }}\n', 2],
    ['a statement of Jinja', 'name: n\n{% if home %}\nhome: /n\n{% endif %}\n', 2],
  ])('is refused because it is a template that must be rendered first: %s', (_, text, line) => {
    expect(faultsOf('', { text })[0]).toBe(
      `${line}: invalid YAML: the file is a template with {{ }} or {% %}; render it first, and use the rendered file`,
    )
  })

  test.each([
    ['!!binary bg==', '!!binary'],
    ['!vault n', '!vault'],
    ['!!set {n}', '!!set'],
  ])('is refused with the line of a tag that is not in YAML 1.2: %s', (value, tag) => {
    expect(faultsOf('', { text: `# A comment.\nname: ${value}\n` })).toEqual([
      `2: invalid YAML: the tag ${tag} is not supported; write the value without a tag`,
    ])
  })

  test('is read as YAML 1.2 even if it claims to be YAML 1.1', () => {
    const text = `---\n${LEAST}timing: {isExact: yes}\nsize: 0b11\n`
    const faults = faultsOf('', { text: `# YAML 1.2\n${text}` })
    expect(faults.join('\n')).toContain('isExact: expected true or false, found "yes"')
    expect(faultsOf('', { text: `%YAML 1.1\n${text}` })).toEqual(faults)
  })

  test('is not reported as a template if it has a syntax error and contains braces only in quotes', () => {
    const faults = faultsOf('', { text: 'name: "{{ n }}"\n\nhome\n' })
    expect(faults.join('\n')).toMatch(/^3: invalid YAML: a line has no colon/)
    expect(faults.join('\n')).not.toContain('template')
  })

  test('has at most three faults if many of its lines have broken syntax', () => {
    const faults = faultsOf('', { text: `doors: yes\n${'  - kind: a: b\n'.repeat(50)}` })
    expect(faults.length).toBeLessThanOrEqual(3)
    for (const fault of faults) expect(fault).toMatch(/^\d+: invalid YAML: .{1,200}$/)
  })

  test('has a limited number of faults if all its keys are unknown', () => {
    const keys = Array.from({ length: 5000 }, (_, at) => `unknown${at}: 1\n`)
    const loaded = parse(keys.join(''))
    expect(loaded.ok ? 0 : loaded.faults.length).toBe(CONFIG_FAULTS_MAX)
  })
})

describe('A configuration file on disk', () => {
  const problemsOf = (path: string): readonly string[] => {
    const loaded = loadConfig(tableOf(null), path, {})
    return loaded.ok ? [] : loaded.faults.map(({ problem }) => problem)
  }
  const written = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return path
  }

  test('causes one fault if it is missing, a folder, a device or a pipe', () => {
    expect(problemsOf(join(folder, 'none.yml'))).toEqual(['file not found'])
    expect(problemsOf(join(written('file', ''), 'below.yml'))).toEqual(['file not found'])
    expect(problemsOf(folder)).toEqual(['is a folder; name the file in it'])
    expect(problemsOf('/dev/null')).toEqual(['is not a regular file'])
    execFileSync('mkfifo', [join(folder, 'pipe')])
    expect(problemsOf(join(folder, 'pipe'))).toEqual(['is not a regular file'])
  })

  test('causes one fault if it is too large or not text', () => {
    expect(problemsOf(written('big.yml', `${LEAST}#${'x'.repeat(1024 * 1024)}`))).toEqual([
      'is larger than 1048576 bytes',
    ])
    expect(problemsOf(written('binary.yml', 'name: a\0b\n: : :\n'))).toEqual(['is not a text file'])
  })

  test('is loaded with its absolute path if its content is valid', () => {
    const path = written('good.yml', LEAST)
    expect(loadConfig(tableOf(null), path, {})).toMatchObject({ ok: true, path })
  })
})

import { parse } from 'yaml'
import { describe, expect, test } from 'vitest'

import { formatYaml } from '../../src/config/engine/yaml-tree.ts'
import {
  escapeUnprintable,
  printableLine,
  printableText,
  printableValue,
  firstUnprintableCharacter,
} from '../../src/lib/text/terminal-text.ts'

/** Every character that a terminal interprets, or that changes the order of text. */
const controls = [
  ...range(0, 0x1f),
  ...range(0x7f, 0x9f),
  ...range(0x200e, 0x200f),
  0x61c,
  ...range(0x2028, 0x202e),
  ...range(0x2066, 0x2069),
].map((code) => String.fromCharCode(code))

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at)
}

const plain = 'Ünïcode, 漢字 \u{1f600} עברית a\u200db \u00a0'

describe('untrusted text at a terminal', () => {
  test('contains no characters that the terminal interprets', () => {
    for (const control of controls) {
      expect(firstUnprintableCharacter(`a${control}b`)).toBe(
        `U+${control.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
      )
      expect(printableLine(`a${control}b`)).toMatch(/^a[ ?]b$/)
      expect(printableText(`a${control}b`)).toMatch(/^a[\t\n?]b$/)
    }
  })

  test('stays unchanged if it contains no such characters', () => {
    expect(firstUnprintableCharacter(plain)).toBeNull()
    expect([printableLine, printableText, escapeUnprintable].map((show) => show(plain))).toEqual([
      plain,
      plain,
      plain,
    ])
  })

  test('becomes one line, with spaces for line breaks and question marks for other control characters', () => {
    expect(printableLine('a\r\n\tb\u2028c\u001b[2Jd\u202e\u009be')).toBe('a b c?[2Jd?e')
    expect(printableLine('abcdef', 3)).toBe('abc')
  })

  test('keeps its lines if the caller requests it, without carriage returns that would overwrite a line', () => {
    expect(printableText('one\r\ntwo\tx\rthree\u009b')).toBe('one\ntwo\tx?three?')
  })

  test('is made printable at every depth of a value', () => {
    const value = { 'a\nb': ['c\u001b', { d: 'e\u202e' }, null, 7, true] }
    expect(printableValue(value)).toEqual({ 'a b': ['c?', { d: 'e?' }, null, 7, true] })
  })
})

describe.each([
  ['JSON', (value: unknown) => escapeUnprintable(JSON.stringify(value)), JSON.parse],
  ['YAML', formatYaml, (text: string) => parse(text) as unknown],
] as const)('a %s document that is printed to a terminal', (_name, write, read) => {
  const text = `${plain}${controls.join('')}`
  const value = {
    [text]: text,
    each: controls.map((control) => `${control}: x${control}`),
    lines: `one\ntwo\n${controls.join('\n')}`,
    plain: ['', 'a: b', ' x', 'yes', '1', 'one\ntwo\n', 'tab\there', null, 1.5, false],
  }

  test('contains no characters that the terminal interprets', () => {
    expect(
      firstUnprintableCharacter(write(value).replaceAll('\n', '').replaceAll('\t', '')),
    ).toBeNull()
  })

  test('parses to the value from which it was written', () => {
    expect(read(write(value))).toEqual(value)
  })
})

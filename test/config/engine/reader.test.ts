import { describe, expect, test } from 'vitest'

import { environmentName } from '../../../src/config/engine/environment.ts'
import { redactedValues } from '../../../src/config/engine/option-display.ts'
import { configOf, faultsOf, fields, LEAST, parse, warningsOf } from './support.ts'

describe('A parsed configuration file', () => {
  test('is read with its defaults; an absent section has default values or is null', () => {
    expect(configOf('')).toEqual({
      name: 'n',
      size: 3,
      mode: 'fast',
      old: null,
      idle: 60_000,
      tags: ['a', 'b'],
      home: { folder: 'data', token: [] },
      timing: { tickMs: 50, isExact: true },
      extra: null,
      edge: null,
      doors: [
        { kind: 'in', options: { width: 1 } },
        { kind: 'out', options: {} },
      ],
      lamps: [],
      rooms: {},
      legacy: null,
    })
  })

  test('treats a key without a value as an absent section, list or map', () => {
    expect(configOf('timing:\nlamps:\nrooms:\n')).toEqual(configOf(''))
    expect(configOf('edge:\n')['edge']).toEqual({})
    expect(configOf('extra:\n')['extra']).toBeNull()
    expect(warningsOf('extra:\n')).toEqual(['6: extra: is empty, which counts as absent'])
  })

  test('has paths relative to its own folder', () => {
    const text = LEAST.replace('home: {}', 'home: {folder: a/../b}')
    expect(configOf('', { text })['home']).toMatchObject({ folder: '/etc/app/b' })
  })

  test('may contain sections whose allowed keys depend on another key, and sections with names that the user chooses', () => {
    expect(configOf('rooms: {hall: {area: 5}, attic: {}}\n', {})['rooms']).toEqual({
      hall: { area: 5 },
      attic: { area: 9 },
    })
    const text = LEAST.replace('- kind: out', '- kind: out\n  options: {width: 1}')
    expect(faultsOf('', { text })).toEqual([
      '6: doors[1].options.width: unknown key; no keys are known here',
    ])
  })
})

describe('Faults in a configuration file', () => {
  test('are all reported in one run, sorted by line, with faults without a line first', () => {
    const text = `size: 10
doors: []
home: 5
mode: slwo
timing: {tickMs: fast, isExact: [true]}
lamps: [{watts: 1}, {}, {}, {}]
rooms: {a b: {}}
extra: [1]
`
    expect(faultsOf('', { text })).toEqual([
      ' name: is missing; expected a text that is not empty',
      '1: size: expected an integer from 1 to 9, found 10',
      '2: doors: is empty; expected one or more sections with the keys kind, options',
      '3: home: expected a section with keys, found 5',
      '4: mode: expected one of fast, slow, found "slwo"',
      '5: timing.tickMs: expected an integer from 5 to 1000, found "fast"',
      '5: timing.isExact: expected true or false, found [true]',
      '6: lamps: holds more than 3 items',
      '7: rooms.a b: expected a name of letters, digits, dots, _ and -',
      '8: extra: expected a section with keys, found [1]',
    ])
  })

  test.each([
    ['a key without its value', 'size:\n', 'size: expected an integer from 1 to 9, found nothing'],
    [
      'a section where a value is needed',
      'size: {a: 1}\n',
      'size: expected an integer from 1 to 9, found a section',
    ],
    ['a nested list', 'tags: [[a]]\n', 'tags: expected a list of texts, found a list'],
    [
      'a list of sections that is a text',
      'lamps: a\n',
      'lamps: expected a list of sections with the keys watts, shade, found "a"',
    ],
    [
      'an item that is no section',
      'lamps: [5]\n',
      'lamps[0]: expected a section with keys, found 5',
    ],
    [
      'sections by name that are a list',
      'rooms: []\n',
      'rooms: expected a section with sections in it, found []',
    ],
    ['too many sections by name', 'rooms: {a: , b: , c: }\n', 'rooms: holds more than 2 sections'],
    [
      'a key under two names',
      'mode: fast\nway: slow\n',
      'mode: is given twice, as mode and way; give one',
    ],
    [
      'an unknown key',
      'colour: 1\n',
      'colour: unknown key; known keys: name, size, mode, way, old, idle',
    ],
    [
      'a misspelled key',
      'timing: {tickM: 1}\n',
      'timing.tickM: unknown key; did you mean timing.tickMs?',
    ],
    [
      'a name that would be a prototype',
      'rooms: {__proto__: {}}\n',
      'rooms.__proto__: expected a name',
    ],
  ])('are reported for %s', (_, more, part) => {
    const found = faultsOf(more)
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(`6: ${part}`)
  })

  test('list the keys of a missing section or list', () => {
    expect(faultsOf('', { text: 'name: n\n' })).toEqual([
      ' home: is missing; expected a section with folder, token',
      ' doors: is missing; expected a list of sections with the keys kind, options',
    ])
    expect(faultsOf('', { text: LEAST.replace('- kind: in', '- options: {}') })).toEqual([
      '4: doors[0].kind: is missing; expected one of in, out',
    ])
  })

  test('do not report the correct key as missing if the file contains a misspelling of it', () => {
    const text = `nam: n
hom: {}
dors: [{kind: in}]
`
    expect(faultsOf('', { text })).toEqual([
      '1: nam: unknown key; did you mean name?',
      '2: hom: unknown key; did you mean home?',
      '3: dors: unknown key; did you mean doors?',
    ])
    expect(faultsOf('', { text: LEAST.replace('- kind: in', '- kid: in') })).toEqual([
      '4: doors[0].kid: unknown key; did you mean doors[0].kind?',
    ])
  })

  test('show configured values shortened and with printable characters only', () => {
    const [fault = ''] = faultsOf(`size: "${'x'.repeat(1000)}"\n`)
    expect(fault.length).toBeLessThan(150)
    expect(faultsOf('"a\\e[31mb": 1\n')[0]).toMatch(/^6: a \[31mb: unknown key/)
  })

  test('never show a secret', () => {
    const text = LEAST.replace('home: {}', 'home: {token: {password: sesame}}')
    expect(faultsOf('', { text })).toEqual([
      '2: home.token: expected a list of words, found another value',
    ])
  })
})

describe('Warnings about a configuration file', () => {
  test('concern deprecated keys and sections, and keys of other programs', () => {
    expect(warningsOf('old: x\nedge: {}\nlegacy: [1]\n')).toEqual([
      '6: old: is deprecated: use mode',
      '7: edge: is deprecated: there is none',
      '8: legacy: has no effect: it is of another program',
    ])
  })
})

describe('Environment variables that override configuration keys', () => {
  const overridePrefix = 'APP_'
  const given = (environment: Record<string, string>) => ({ environment, overridePrefix })

  test('have names derived from the key', () => {
    expect(environmentName('APP_', 'raft.electionTimeoutMaxMs')).toBe(
      'APP_RAFT_ELECTION_TIMEOUT_MAX_MS',
    )
    expect(environmentName('APP_', 'web[1].bind')).toBe('APP_WEB_1_BIND')
  })

  test('override the file, and add missing keys', () => {
    const environment = {
      APP_NAME: 'other',
      APP_SIZE: '7',
      APP_OLD: '',
      APP_TAGS: 'x, y',
      APP_TIMING_IS_EXACT: 'false',
      APP_DOORS_1_KIND: 'in',
      APP_HOME_FOLDER: 'here',
    }
    expect(configOf('size: 2\n', given(environment))).toMatchObject({
      name: 'other',
      size: 7,
      old: null,
      tags: ['x', 'y'],
      timing: { isExact: false },
      doors: [{ kind: 'in' }, { kind: 'in', options: { width: 1 } }],
      home: { folder: `${process.cwd()}/here` },
    })
    expect(configOf('tags: [z]\n', given({ APP_TAGS: '' }))['tags']).toEqual([])
  })

  test('are shown as the source of the faults that they cause', () => {
    expect(faultsOf('', given({ APP_TIMING_TICK_MS: '5x', APP_HOME_TOKEN: 'a\0' }))).toEqual([
      'environment APP_HOME_TOKEN: home.token: expected a list of words, found another value',
      'environment APP_TIMING_TICK_MS: timing.tickMs: expected an integer from 5 to 1000, found "5x"',
    ])
  })

  test('are checked for typos, and other variables are ignored', () => {
    expect(faultsOf('', given({ APP_PORT: 'tcp://10.0.0.1:1280', APPLE_SIZE: '1' }))).toEqual([])
    expect(faultsOf('', given({ APP_SIZ: '1' }))).toEqual([
      'environment APP_SIZ: unknown variable; did you mean APP_SIZE?',
    ])
  })

  test('leave a dollar sign with a name in a string of the file unchanged', () => {
    expect(configOf('old: $APP_NAME\n', given({}))['old']).toBe('$APP_NAME')
  })
})

describe('Environment variables within strings of the file', () => {
  test('are replaced, also in lists; an unset variable is replaced by an empty string, with a warning', () => {
    const environment = { A: 'x', APP_SIZE: '9' }
    const more = 'old: "$A-${A}"\ntags: [$A, b]\n'
    expect(configOf(more, { environment })).toMatchObject({ old: 'x-x', tags: ['x', 'b'], size: 3 })
    expect(warningsOf('old: a$NOT_SET\n')).toContain(
      '6: old: the environment variable NOT_SET is not set; replaced by nothing',
    )
    expect(faultsOf('mode: $A\n', { environment })).toEqual([
      '6: mode: expected one of fast, slow, found "$A" (from the environment: A)',
    ])
  })

  test('do not expand a string beyond its limit', () => {
    const environment = { A: 'x'.repeat(100_000) }
    expect(faultsOf(`old: "${'$A'.repeat(1000)}"\n`, { environment })).toHaveLength(1)
  })
})

describe('The effective configuration that is printed', () => {
  test('shows each value with its source, and marks values without effect', () => {
    const environment = { W: 'slow' }
    const loaded = parse('mode: $W\nlamps: [{watts: 4}]\n', { environment })
    const found = loaded.ok ? loaded.effective : []
    const of = (key: string): unknown => found.find((one) => one.key === key)
    expect(of('name')).toEqual({
      key: 'name',
      value: 'n',
      source: { kind: 'file', line: 1 },
      hasEffect: true,
    })
    expect(of('mode')).toMatchObject({
      value: 'slow',
      source: { kind: 'environment', line: 6, names: ['W'] },
    })
    expect(of('tags')).toMatchObject({ value: 'a, b', source: { kind: 'default' } })
    const inert = found.filter(({ hasEffect }) => !hasEffect).map(({ key }) => key)
    expect(inert).toEqual(['idle', 'lamps[0].watts', 'lamps[0].shade.colour'])
  })

  test('names the variable that overrides a key', () => {
    const loaded = parse('', { environment: { APP_SIZE: '4' }, overridePrefix: 'APP_' })
    expect(loaded.ok && loaded.effective.find(({ key }) => key === 'size')).toEqual({
      key: 'size',
      value: '4',
      source: { kind: 'environment', line: null, names: ['APP_SIZE'] },
      hasEffect: true,
    })
  })

  test('redacts secrets, and shows whether a secret is not set', () => {
    const text = LEAST.replace('home: {}', 'home: {token: [sesame]}')
    const loaded = parse('', { text })
    expect(JSON.stringify(loaded.ok && loaded.effective)).not.toContain('sesame')
    const shown = redactedValues(
      fields,
      configOf('rooms: {hall: {}}\n', { text: `${text}rooms: {hall: {}}\n` }),
    )
    expect(shown).toMatchObject({
      home: { folder: 'data', token: '(redacted)' },
      doors: [{ kind: 'in', options: { width: 1 } }, { kind: 'out' }],
      rooms: { hall: { area: 9 } },
      extra: null,
    })
    expect(redactedValues(fields, configOf(''))).toMatchObject({ home: { token: [] } })
  })
})

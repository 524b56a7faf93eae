import type { Environment } from '../../../src/config/engine/environment.ts'
import { formatFault } from '../../../src/config/engine/fault.ts'
import type { UnknownKeys } from '../../../src/config/engine/reader.ts'
import {
  type ConfigTable,
  type LoadedConfig,
  parseConfig,
} from '../../../src/config/engine/load.ts'
import {
  type Fields,
  ignoredSection,
  keyedSections,
  list,
  option,
  optionalSection,
  REQUIRED_OPTION,
  requiredList,
  requiredSection,
  section,
  variants,
  withoutEffect,
} from '../../../src/config/engine/schema.ts'
import {
  boolean,
  choice,
  duration,
  integer,
  optional,
  path,
  text,
  texts,
} from '../../../src/config/engine/values.ts'

export const FILE = '/etc/app/app.yml'

/** One key of each kind that a table supports. */
export const fields = {
  name: option(text(), { default: REQUIRED_OPTION, why: 'Its name.' }),
  size: option(integer(1, 9), { default: 3, why: 'Its <size>, a|b.', scope: 'cluster' }),
  mode: option(choice(['fast', 'slow']), { default: 'fast', why: 'Its mode.', aliases: ['way'] }),
  old: option(optional(text()), { default: null, why: 'Older.', deprecated: 'use mode' }),
  idle: option(duration(0), { default: 60_000, why: 'Idle time.', hasEffect: false }),
  tags: option(texts(), { default: ['a', 'b'], why: 'Tags.' }),
  home: requiredSection('Home.', {
    folder: option(path(), { default: 'data', why: 'A folder.' }),
    token: option(texts('a list of words'), { default: [], why: 'A token.', isSecret: true }),
  }),
  timing: section('Timing.', {
    tickMs: option(integer(5, 1000), { default: 50, why: 'A tick.' }),
    isExact: option(boolean(), { default: true, why: 'Exactness.' }),
  }),
  extra: optionalSection('Extra.', { count: option(integer(0, 5), { default: 0, why: 'Count.' }) }),
  edge: optionalSection('Edge.', {}, { isPresentWhenEmpty: true, deprecated: 'there is none' }),
  doors: requiredList(2, 'Doors.', {
    kind: option(choice(['in', 'out']), { default: REQUIRED_OPTION, why: 'Kind.' }),
    options: variants('kind', 'Options of the kind.', {
      in: { width: option(integer(1, 5), { default: 1, why: 'Width.' }) },
      out: {},
    }),
  }),
  lamps: withoutEffect(
    list(3, 'Lamps.', {
      watts: option(integer(1, 99), { default: 9, why: 'Power.' }),
      shade: section('Shade.', { colour: option(text(), { default: 'red', why: 'Colour.' }) }),
    }),
  ),
  rooms: keyedSections(2, 'Rooms.', { area: option(integer(1, 99), { default: 9, why: 'Area.' }) }),
  legacy: ignoredSection('it is of another program'),
} satisfies Fields

type Config = Readonly<Record<string, unknown>>

/** The table, with keys overridden by APP_… or texts filled from the environment. */
export function tableOf(
  overridePrefix: string | null,
  unknownKeys: UnknownKeys = 'faults',
): ConfigTable<Config> {
  return { fields, overridePrefix, unknownKeys, settle: (config) => config }
}

/** Everything that the table needs; five lines. */
export const LEAST = `name: n
home: {}
doors:
- kind: in
- kind: out
`

export interface Given {
  readonly text?: string
  readonly environment?: Environment
  readonly overridePrefix?: string | null
  readonly unknownKeys?: UnknownKeys
}

/** LEAST with more lines, unless the whole text is given. */
export function parse(more: string, given: Given = {}): LoadedConfig<Config> {
  const { text: whole = LEAST + more, environment = {}, overridePrefix = null, unknownKeys } = given
  return parseConfig(tableOf(overridePrefix, unknownKeys), FILE, whole, environment)
}

export function configOf(more: string, given: Given = {}): Config {
  const loaded = parse(more, given)
  if (!loaded.ok) throw new Error(loaded.faults.map(formatFault).join('\n'))
  return loaded.config
}

/** Faults without the name of the file: `6: size: …`. */
export function faultsOf(more: string, given: Given = {}): string[] {
  const loaded = parse(more, given)
  return loaded.ok ? [] : loaded.faults.map((fault) => formatFault(fault).replace(`${FILE}:`, ''))
}

export function warningsOf(more: string, given: Given = {}): string[] {
  return parse(more, given).warnings.map((one) => formatFault(one).replace(`${FILE}:`, ''))
}

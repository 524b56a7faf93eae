import type { Environment } from '../../../src/config/engine/environment.ts'
import { formatConfigFault } from '../../../src/config/engine/fault.ts'
import type { UnknownKeys } from '../../../src/config/engine/reader.ts'
import {
  type ConfigTable,
  type LoadedConfig,
  parseConfig,
} from '../../../src/config/engine/load.ts'
import {
  type SchemaFields,
  defineIgnoredSection,
  defineKeyedSections,
  defineSectionList,
  defineOption,
  defineOptionalSection,
  REQUIRED_OPTION,
  defineRequiredSectionList,
  defineRequiredSection,
  defineSection,
  defineVariantSection,
  markWithoutEffect,
} from '../../../src/config/engine/schema.ts'
import {
  booleanType,
  choiceType,
  durationType,
  integerType,
  optionalType,
  pathType,
  textType,
  textListType,
} from '../../../src/config/engine/values.ts'

export const FILE = '/etc/app/app.yml'

/** A key of each kind that tables support. */
export const fields = {
  name: defineOption(textType(), { default: REQUIRED_OPTION, why: 'Its name.' }),
  size: defineOption(integerType(1, 9), { default: 3, why: 'Its <size>, a|b.', scope: 'cluster' }),
  mode: defineOption(choiceType(['fast', 'slow']), {
    default: 'fast',
    why: 'Its mode.',
    aliases: ['way'],
  }),
  old: defineOption(optionalType(textType()), {
    default: null,
    why: 'Older.',
    deprecated: 'use mode',
  }),
  idle: defineOption(durationType(0), { default: 60_000, why: 'Idle time.', hasEffect: false }),
  tags: defineOption(textListType(), { default: ['a', 'b'], why: 'Tags.' }),
  home: defineRequiredSection('Home.', {
    folder: defineOption(pathType(), { default: 'data', why: 'A folder.' }),
    token: defineOption(textListType('a list of words'), {
      default: [],
      why: 'A token.',
      isSecret: true,
    }),
  }),
  timing: defineSection('Timing.', {
    tickMs: defineOption(integerType(5, 1000), { default: 50, why: 'A tick.' }),
    isExact: defineOption(booleanType(), { default: true, why: 'Exactness.' }),
  }),
  extra: defineOptionalSection('Extra.', {
    count: defineOption(integerType(0, 5), { default: 0, why: 'Count.' }),
  }),
  edge: defineOptionalSection(
    'Edge.',
    {},
    { isPresentWhenEmpty: true, deprecated: 'there is none' },
  ),
  doors: defineRequiredSectionList(2, 'Doors.', {
    kind: defineOption(choiceType(['in', 'out']), { default: REQUIRED_OPTION, why: 'Kind.' }),
    options: defineVariantSection('kind', 'Options of the kind.', {
      in: { width: defineOption(integerType(1, 5), { default: 1, why: 'Width.' }) },
      out: {},
    }),
  }),
  lamps: markWithoutEffect(
    defineSectionList(3, 'Lamps.', {
      watts: defineOption(integerType(1, 99), { default: 9, why: 'Power.' }),
      shade: defineSection('Shade.', {
        colour: defineOption(textType(), { default: 'red', why: 'Colour.' }),
      }),
    }),
  ),
  rooms: defineKeyedSections(2, 'Rooms.', {
    area: defineOption(integerType(1, 99), { default: 9, why: 'Area.' }),
  }),
  legacy: defineIgnoredSection('it is of another program'),
} satisfies SchemaFields

type Config = Readonly<Record<string, unknown>>

/**
 * A table whose keys can be overridden by variables APP_…, or whose texts are filled from the
 * environment.
 */
export function tableOf(
  overridePrefix: string | null,
  unknownKeys: UnknownKeys = 'faults',
): ConfigTable<Config> {
  return { fields, overridePrefix, unknownKeys, settle: (config) => config }
}

/** The smallest valid file for the table, with five lines. */
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

/** Parses LEAST with additional lines, or the whole text if it is given. */
export function parse(more: string, given: Given = {}): LoadedConfig<Config> {
  const { text: whole = LEAST + more, environment = {}, overridePrefix = null, unknownKeys } = given
  return parseConfig(tableOf(overridePrefix, unknownKeys), FILE, whole, environment)
}

export function configOf(more: string, given: Given = {}): Config {
  const loaded = parse(more, given)
  if (!loaded.ok) throw new Error(loaded.faults.map(formatConfigFault).join('\n'))
  return loaded.config
}

/** Faults as text without the name of the file: `6: size: …`. */
export function faultsOf(more: string, given: Given = {}): string[] {
  const loaded = parse(more, given)
  return loaded.ok
    ? []
    : loaded.faults.map((fault) => formatConfigFault(fault).replace(`${FILE}:`, ''))
}

export function warningsOf(more: string, given: Given = {}): string[] {
  return parse(more, given).warnings.map((one) => formatConfigFault(one).replace(`${FILE}:`, ''))
}

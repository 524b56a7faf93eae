import type { YamlScalar } from './yaml-tree.ts'

/** A scalar or a list of scalars. Every configured value has this form. */
export type RawValue = YamlScalar | readonly YamlScalar[]

/** Describes, reads and formats values of one type. */
export interface ValueType<T> {
  /** Text that completes the sentence "expected …". */
  readonly expected: string
  /**
   * @param folder base folder of relative paths.
   * @returns undefined when the value is not acceptable.
   */
  readonly read: (raw: RawValue, folder: string) => T | undefined
  /** Converts the text of an environment variable to a YAML value; unchanged by default. */
  readonly fromText?: (text: string) => RawValue
  /** Formats the value for documentation and for the effective configuration. */
  show?(value: T): string
  /**
   * Returns the part of a secret value that may be shown; without this function, nothing is shown.
   */
  redacted?(value: T): string
}

/** Used as the default of a required option: a configuration without that option is invalid. */
export const REQUIRED_OPTION: unique symbol = Symbol('required')

/**
 * `cluster`: the option must be equal on every controller. Peers compare a hash over these options.
 */
type Scope = 'node' | 'cluster'

interface Effective {
  /**
   * False for a node that is read and checked but has no effect in this version; applies to all
   * keys inside the node.
   */
  readonly hasEffect?: false
}

interface OptionSettings<T> extends Effective {
  readonly default: T | typeof REQUIRED_OPTION
  readonly why: string
  /** Whether the option is for one node or for the whole cluster; `node` by default. */
  readonly scope?: Scope
  /** True if a reload of the configuration applies a new value. Otherwise a restart is needed. */
  readonly isReloaded?: true
  /**
   * True if the value may contain a credential: faults, the display of the effective configuration
   * and debug bundles then show it only if it is the default, otherwise at most the part that
   * `redacted` returns.
   */
  readonly isSecret?: boolean
  /** Alternative names that the file may use for the key. */
  readonly aliases?: readonly string[]
  /** Set for a deprecated key: the text of the warning that is reported when the key is present. */
  readonly deprecated?: string
}

export interface ConfigOption<T> extends OptionSettings<T> {
  readonly kind: 'option'
  readonly type: ValueType<T>
}

/** Meaning of an absent section: default values, null, or a fault. */
type Absence = 'defaults' | 'null' | 'required'

interface SectionSettings {
  /**
   * True if a key without a value counts as an empty section. Otherwise it counts as an absent
   * section.
   */
  readonly isPresentWhenEmpty?: boolean
  readonly deprecated?: string
  /**
   * True if a misspelled key is a fault although unknown keys are only warnings. If it were only a
   * warning, the default would apply, and the program would be less strict than the operator wrote.
   */
  readonly refusesMisspellings?: boolean
}

export interface ConfigSection<F, A extends Absence = Absence> extends SectionSettings, Effective {
  readonly kind: 'section'
  readonly fields: F
  readonly absence: A
  readonly why: string
}

/** A list of sections with the same fields. */
export interface SectionList<F> extends Effective, Pick<SectionSettings, 'refusesMisspellings'> {
  readonly kind: 'list'
  readonly fields: F
  readonly itemsMin: 0 | 1
  readonly itemsMax: number
  readonly why: string
  /** True if a reload of the configuration applies a new list. Otherwise a restart is needed. */
  readonly isReloaded?: true
}

/** Sections whose names the operator chooses. */
export interface KeyedSections<F> extends Effective {
  readonly kind: 'keyed'
  readonly fields: F
  readonly itemsMax: number
  readonly why: string
}

/** A section whose fields depend on the value of the sibling key `by`. */
export interface VariantSection extends Effective {
  readonly kind: 'variants'
  readonly by: string
  readonly fieldsOf: Readonly<Record<string, SchemaFields>>
  readonly why: string
}

/**
 * A key that other programs use or generate: the reader accepts the key and does not read its
 * content.
 */
interface Ignored extends Effective {
  readonly kind: 'ignored'
  readonly why: string
  /**
   * True if the key causes no warning, because generators write it into every file and no program
   * uses it.
   */
  readonly isQuiet?: boolean
}

export type SchemaNode =
  | ConfigOption<unknown>
  | ConfigSection<SchemaFields>
  | SectionList<SchemaFields>
  | KeyedSections<SchemaFields>
  | VariantSection
  | Ignored

export interface SchemaFields {
  readonly [key: string]: SchemaNode
}

export type ConfigValues<F> = { readonly [K in keyof F]: ValueOf<F[K]> }
type ValueOf<N> =
  N extends ConfigOption<infer T>
    ? T
    : N extends ConfigSection<infer F, infer A>
      ? 'null' extends A
        ? ConfigValues<F> | null
        : ConfigValues<F>
      : N extends SectionList<infer F>
        ? readonly ConfigValues<F>[]
        : N extends KeyedSections<infer F>
          ? Readonly<Record<string, ConfigValues<F>>>
          : N extends VariantSection
            ? Readonly<Record<string, unknown>>
            : null

export function defineOption<T>(
  type: ValueType<T>,
  settings: OptionSettings<NoInfer<T>>,
): ConfigOption<T> {
  return { kind: 'option', type, ...settings }
}

/**
 * A section that has default values when it is absent. Each required key of an absent section is a
 * fault unless an environment variable sets it.
 */
export function defineSection<F>(
  why: string,
  fields: F,
  settings: SectionSettings = {},
): ConfigSection<F, 'defaults'> {
  return { kind: 'section', absence: 'defaults', why, fields, ...settings }
}

export function defineRequiredSection<F>(
  why: string,
  fields: F,
  settings: SectionSettings = {},
): ConfigSection<F, 'required'> {
  return { kind: 'section', absence: 'required', why, fields, ...settings }
}

/**
 * A section that is null when it is absent from the file, or has no value and no
 * `isPresentWhenEmpty`; environment variables for its keys are then ignored.
 */
export function defineOptionalSection<F>(
  why: string,
  fields: F,
  settings: SectionSettings = {},
): ConfigSection<F, 'null'> {
  return { kind: 'section', absence: 'null', why, fields, ...settings }
}

/** A list of at most `itemsMax` sections; empty when absent. */
export function defineSectionList<F>(
  itemsMax: number,
  why: string,
  fields: F,
  settings: Pick<SectionList<F>, 'refusesMisspellings' | 'isReloaded'> = {},
): SectionList<F> {
  return { kind: 'list', fields, itemsMin: 0, itemsMax, why, ...settings }
}

/** A list of one or more sections; required, because it has no default. */
export function defineRequiredSectionList<F>(
  itemsMax: number,
  why: string,
  fields: F,
): SectionList<F> {
  return { kind: 'list', fields, itemsMin: 1, itemsMax, why }
}

export function defineKeyedSections<F>(itemsMax: number, why: string, fields: F): KeyedSections<F> {
  return { kind: 'keyed', fields, itemsMax, why }
}

export function defineVariantSection(
  by: string,
  why: string,
  fieldsOf: Readonly<Record<string, SchemaFields>>,
): VariantSection {
  return { kind: 'variants', by, why, fieldsOf }
}

export function defineIgnoredSection(
  why: string,
  settings: Pick<Ignored, 'isQuiet'> = {},
): Ignored {
  return { kind: 'ignored', why, ...settings }
}

/**
 * Marks all keys of a section or list as without effect. The documentation and the display of the
 * effective configuration show this mark.
 */
export function markWithoutEffect<N extends Exclude<SchemaNode, ConfigOption<unknown>>>(
  node: N,
): N {
  return { ...node, hasEffect: false }
}

import type { YamlScalar } from './yaml-tree.ts'

/** A scalar or a list of scalars. Every value has this shape. */
export type RawValue = YamlScalar | readonly YamlScalar[]

/** Reads and formats one value. */
export interface ValueType<T> {
  /** Completes the sentence "expected …". */
  readonly expected: string
  /**
   * @param folder relative paths start there.
   * @returns undefined when the value is not acceptable.
   */
  readonly read: (raw: RawValue, folder: string) => T | undefined
  /** Converts the text of an environment variable to a YAML value; unchanged by default. */
  readonly fromText?: (text: string) => RawValue
  /** Formats the value for documentation and for the effective configuration. */
  show?(value: T): string
  /** The part of a secret value that may be shown; by default none. */
  redacted?(value: T): string
}

/** Default of an option that has none: a configuration without it is invalid. */
export const REQUIRED_OPTION: unique symbol = Symbol('required')

/**
 * `cluster` options must be equal on every controller and are part of the fingerprint that peers
 * compare.
 */
type Scope = 'node' | 'cluster'

interface Effective {
  /**
   * False for a node that is read and checked but changes nothing in this version, with all keys
   * below it.
   */
  readonly hasEffect?: false
}

interface OptionSettings<T> extends Effective {
  readonly default: T | typeof REQUIRED_OPTION
  readonly why: string
  /** `node` by default. */
  readonly scope?: Scope
  /** A reload of the configuration applies a new value; by default that takes a restart. */
  readonly isReloaded?: true
  /** The value may contain a credential: faults, documents and support bundles never show it. */
  readonly isSecret?: boolean
  /** Alternative names of the key. */
  readonly aliases?: readonly string[]
  /** Text of the warning when the key is present: its replacement. */
  readonly deprecated?: string
}

export interface Option<T> extends OptionSettings<T> {
  readonly kind: 'option'
  readonly type: ValueType<T>
}

/** An absent section has default values, is null, or is a fault. */
type Absence = 'defaults' | 'null' | 'required'

interface SectionSettings {
  /** A key without a value counts as an empty section, not as an absent one. */
  readonly isPresentWhenEmpty?: boolean
  readonly deprecated?: string
  /**
   * A misspelled key is a fault although unknown keys are warnings: with its default, the program
   * would be less strict than the operator wrote.
   */
  readonly refusesMisspellings?: boolean
}

export interface Section<F, A extends Absence = Absence> extends SectionSettings, Effective {
  readonly kind: 'section'
  readonly fields: F
  readonly absence: A
  readonly why: string
}

/** A list of sections with the same fields. */
export interface List<F> extends Effective, Pick<SectionSettings, 'refusesMisspellings'> {
  readonly kind: 'list'
  readonly fields: F
  readonly itemsMin: 0 | 1
  readonly itemsMax: number
  readonly why: string
  /** A reload of the configuration applies a new list; by default that takes a restart. */
  readonly isReloaded?: true
}

/** Sections under names that the operator chooses. */
export interface Keyed<F> extends Effective {
  readonly kind: 'keyed'
  readonly fields: F
  readonly itemsMax: number
  readonly why: string
}

/** A section whose fields depend on the value of the sibling key `by`. */
export interface Variants extends Effective {
  readonly kind: 'variants'
  readonly by: string
  readonly fieldsOf: Readonly<Record<string, Fields>>
  readonly why: string
}

/** Accepted for compatibility with other programs; its content is not read. */
interface Ignored extends Effective {
  readonly kind: 'ignored'
  readonly why: string
  /** No warning: generators write the key into every file, and it has an effect in no program. */
  readonly isQuiet?: boolean
}

export type SchemaNode =
  | Option<unknown>
  | Section<Fields>
  | List<Fields>
  | Keyed<Fields>
  | Variants
  | Ignored

export interface Fields {
  readonly [key: string]: SchemaNode
}

export type ConfigValues<F> = { readonly [K in keyof F]: ValueOf<F[K]> }
type ValueOf<N> =
  N extends Option<infer T>
    ? T
    : N extends Section<infer F, infer A>
      ? 'null' extends A
        ? ConfigValues<F> | null
        : ConfigValues<F>
      : N extends List<infer F>
        ? readonly ConfigValues<F>[]
        : N extends Keyed<infer F>
          ? Readonly<Record<string, ConfigValues<F>>>
          : N extends Variants
            ? Readonly<Record<string, unknown>>
            : null

export function option<T>(type: ValueType<T>, settings: OptionSettings<NoInfer<T>>): Option<T> {
  return { kind: 'option', type, ...settings }
}

/** An absent section has default values; its required keys are then missing. */
export function section<F>(
  why: string,
  fields: F,
  settings: SectionSettings = {},
): Section<F, 'defaults'> {
  return { kind: 'section', absence: 'defaults', why, fields, ...settings }
}

export function requiredSection<F>(
  why: string,
  fields: F,
  settings: SectionSettings = {},
): Section<F, 'required'> {
  return { kind: 'section', absence: 'required', why, fields, ...settings }
}

/** An absent section is null; environment variables for its keys do not make it present. */
export function optionalSection<F>(
  why: string,
  fields: F,
  settings: SectionSettings = {},
): Section<F, 'null'> {
  return { kind: 'section', absence: 'null', why, fields, ...settings }
}

/** A list of zero or more sections; empty when absent. */
export function list<F>(
  itemsMax: number,
  why: string,
  fields: F,
  settings: Pick<List<F>, 'refusesMisspellings' | 'isReloaded'> = {},
): List<F> {
  return { kind: 'list', fields, itemsMin: 0, itemsMax, why, ...settings }
}

/** A list of one or more sections, without a default. */
export function requiredList<F>(itemsMax: number, why: string, fields: F): List<F> {
  return { kind: 'list', fields, itemsMin: 1, itemsMax, why }
}

export function keyedSections<F>(itemsMax: number, why: string, fields: F): Keyed<F> {
  return { kind: 'keyed', fields, itemsMax, why }
}

export function variants(
  by: string,
  why: string,
  fieldsOf: Readonly<Record<string, Fields>>,
): Variants {
  return { kind: 'variants', by, why, fieldsOf }
}

export function ignoredSection(why: string, settings: Pick<Ignored, 'isQuiet'> = {}): Ignored {
  return { kind: 'ignored', why, ...settings }
}

/**
 * Marks all keys of a section or list as without effect; documentation and effective configuration
 * show the mark.
 */
export function withoutEffect<N extends Exclude<SchemaNode, Option<unknown>>>(node: N): N {
  return { ...node, hasEffect: false }
}

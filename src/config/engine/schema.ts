import type { YamlScalar } from './yaml-tree.ts'

/** A scalar, or a list of scalars: all that a value can be. */
export type RawValue = YamlScalar | readonly YamlScalar[]

/** How one value is read and shown. */
export interface ValueType<T> {
  /** Completes the sentence "expected …". */
  readonly expected: string
  /**
   * @param folder relative paths start there.
   * @returns undefined when the value is not acceptable.
   */
  readonly read: (raw: RawValue, folder: string) => T | undefined
  /** Gives the YAML value that the text of an environment variable represents; itself otherwise. */
  readonly fromText?: (text: string) => RawValue
  /** The value as documentation and effective configuration print it. */
  show?(value: T): string
  /** The part of a secret value that may be shown; none otherwise. */
  redacted?(value: T): string
}

export const required: unique symbol = Symbol('required')

/** `cluster`: equal on every controller, and part of the fingerprint that peers compare. */
export type Scope = 'node' | 'cluster'

interface Effective {
  /** False: read and checked, and changes nothing in this version. Holds for all keys below. */
  readonly hasEffect?: false
}

interface OptionSettings<T> extends Effective {
  readonly default: T | typeof required
  readonly why: string
  /** `node` otherwise. */
  readonly scope?: Scope
  /** Its value may hold a credential: faults, documents and bundles never show it. */
  readonly isSecret?: boolean
  /** Other names of the key, accepted in the same place. */
  readonly aliases?: readonly string[]
  /** Text of the warning when it is set: what is used in its place. */
  readonly deprecated?: string
}

export interface Option<T> extends OptionSettings<T> {
  readonly kind: 'option'
  readonly type: ValueType<T>
}

/** An absent section is one of defaults, null, or a fault. */
export type Absence = 'defaults' | 'null' | 'required'

interface SectionSettings {
  /** A key without anything after it counts as an empty section, not as an absent one. */
  readonly isPresentWhenEmpty?: boolean
  readonly deprecated?: string
}

export interface Section<F, A extends Absence = Absence> extends SectionSettings, Effective {
  readonly kind: 'section'
  readonly fields: F
  readonly absence: A
  readonly why: string
}

/** Like sections in their order. */
export interface List<F> extends Effective {
  readonly kind: 'list'
  readonly fields: F
  readonly itemsMin: 0 | 1
  readonly itemsMax: number
  readonly why: string
}

/** Sections under names of the operator's choice. */
export interface Keyed<F> extends Effective {
  readonly kind: 'keyed'
  readonly fields: F
  readonly itemsMax: number
  readonly why: string
}

/** A section whose fields depend on the value of a key beside it. */
export interface Variants extends Effective {
  readonly kind: 'variants'
  readonly by: string
  readonly fieldsOf: Readonly<Record<string, Fields>>
  readonly why: string
}

/** Accepted as files for other programs hold it, and read no further; always a warning. */
export interface Ignored extends Effective {
  readonly kind: 'ignored'
  readonly why: string
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

export type ValuesOf<F> = { readonly [K in keyof F]: ValueOf<F[K]> }
type ValueOf<N> =
  N extends Option<infer T>
    ? T
    : N extends Section<infer F, infer A>
      ? 'null' extends A
        ? ValuesOf<F> | null
        : ValuesOf<F>
      : N extends List<infer F>
        ? readonly ValuesOf<F>[]
        : N extends Keyed<infer F>
          ? Readonly<Record<string, ValuesOf<F>>>
          : N extends Variants
            ? Readonly<Record<string, unknown>>
            : null

export function option<T>(type: ValueType<T>, settings: OptionSettings<NoInfer<T>>): Option<T> {
  return { kind: 'option', type, ...settings }
}

/** One whose keys have their defaults when it is absent; a required key in it is missing then. */
export function section<F>(why: string, fields: F): Section<F, 'defaults'> {
  return { kind: 'section', absence: 'defaults', why, fields }
}

export function requiredSection<F>(why: string, fields: F): Section<F, 'required'> {
  return { kind: 'section', absence: 'required', why, fields }
}

/** Null when it is absent; environment variables for its keys do not make it present. */
export function optionalSection<F>(
  why: string,
  fields: F,
  settings: SectionSettings = {},
): Section<F, 'null'> {
  return { kind: 'section', absence: 'null', why, fields, ...settings }
}

/** None or more; none when it is absent. */
export function list<F>(itemsMax: number, why: string, fields: F): List<F> {
  return { kind: 'list', fields, itemsMin: 0, itemsMax, why }
}

/** One or more, for which there is no sensible default. */
export function requiredList<F>(itemsMax: number, why: string, fields: F): List<F> {
  return { kind: 'list', fields, itemsMin: 1, itemsMax, why }
}

export function keyed<F>(itemsMax: number, why: string, fields: F): Keyed<F> {
  return { kind: 'keyed', fields, itemsMax, why }
}

export function variants(
  by: string,
  why: string,
  fieldsOf: Readonly<Record<string, Fields>>,
): Variants {
  return { kind: 'variants', by, why, fieldsOf }
}

export function ignored(why: string): Ignored {
  return { kind: 'ignored', why }
}

/** Marks all keys of a section or list; documentation and effective configuration show it. */
export function withoutEffect<N extends Exclude<SchemaNode, Option<unknown>>>(node: N): N {
  return { ...node, hasEffect: false }
}

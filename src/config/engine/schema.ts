import type { YamlScalar } from './yaml-tree.ts'

/**
 * What a value may be made of: a scalar, or a list of scalars; texts have their environment
 * variables filled in.
 */
export type RawValue = YamlScalar | readonly YamlScalar[]

export interface ReadContext {
  /** Relative paths start here: the folder of the configuration file. */
  readonly folder: string
}

/** How one value is read. */
export interface RouterValueType<T> {
  /** Completes the sentence "expected …". */
  readonly expected: string
  /** @returns undefined when the value is not acceptable. */
  readonly read: (raw: RawValue, context: ReadContext) => T | undefined
  /** How a default reads in the documentation and in the effective configuration. */
  show?(value: T): string
}

export const required: unique symbol = Symbol('required')

interface ValueOptions<T> {
  readonly default: T | typeof required
  readonly why: string
  /** Other names of the key, accepted in the same place. */
  readonly aliases?: readonly string[]
  /** A warning for who sets it: what is used in its place. */
  readonly deprecated?: string
  /** Never shown, in a fault or elsewhere. */
  readonly isSecret?: boolean
}

export interface Value<T> extends ValueOptions<T> {
  readonly kind: 'value'
  readonly type: RouterValueType<T>
}

/** What an absent section stands for: its defaults, nothing at all, or a fault. */
export type Absence = 'defaults' | 'null' | 'required'

export interface RouterSection<F, A extends Absence = Absence> {
  readonly kind: 'section'
  readonly fields: F
  readonly absence: A
  readonly why: string
  /** A key without anything after it counts as an empty section, not as an absent one. */
  readonly isPresentWhenEmpty?: boolean
  readonly deprecated?: string
}

/** Like sections in their order; none when absent. */
export interface RouterList<F> {
  readonly kind: 'list'
  readonly item: RouterSection<F, 'required'>
  readonly itemsMax: number
  readonly why: string
}

/** Sections under names of the operator's choice. */
export interface Keyed<F> {
  readonly kind: 'keyed'
  readonly item: RouterSection<F, 'required'>
  readonly itemsMax: number
  readonly why: string
}

/** A section whose fields depend on the value of a key beside it. */
export interface Variants {
  readonly kind: 'variants'
  readonly by: string
  readonly fieldsOf: Readonly<Record<string, RouterFields>>
  readonly why: string
}

/**
 * Accepted for the sake of files written for other routers, and read no further; always a warning.
 */
export interface Ignored {
  readonly kind: 'ignored'
  readonly why: string
}

export type SchemaNode =
  | Value<unknown>
  | RouterSection<RouterFields>
  | RouterList<RouterFields>
  | Keyed<RouterFields>
  | Variants
  | Ignored

export interface RouterFields {
  readonly [key: string]: SchemaNode
}

export type RouterValuesOf<F> = { readonly [K in keyof F]: ValueOf<F[K]> }
type ValueOf<N> =
  N extends Value<infer T>
    ? T
    : N extends RouterSection<infer F, infer A>
      ? 'null' extends A
        ? RouterValuesOf<F> | null
        : RouterValuesOf<F>
      : N extends RouterList<infer F>
        ? readonly RouterValuesOf<F>[]
        : N extends Keyed<infer F>
          ? Readonly<Record<string, RouterValuesOf<F>>>
          : N extends Variants
            ? Readonly<Record<string, unknown>>
            : null

export function value<T>(type: RouterValueType<T>, options: ValueOptions<NoInfer<T>>): Value<T> {
  return { kind: 'value', type, ...options }
}

export function section<F, A extends Absence>(
  absence: A,
  why: string,
  fields: F,
  options: Pick<RouterSection<F>, 'isPresentWhenEmpty' | 'deprecated'> = {},
): RouterSection<F, A> {
  return { kind: 'section', absence, why, fields, ...options }
}

export function list<F>(itemsMax: number, why: string, fields: F): RouterList<F> {
  return { kind: 'list', itemsMax, why, item: section('required', why, fields) }
}

export function keyed<F>(itemsMax: number, why: string, fields: F): Keyed<F> {
  return { kind: 'keyed', itemsMax, why, item: section('required', why, fields) }
}

export function variants(
  by: string,
  why: string,
  fieldsOf: Readonly<Record<string, RouterFields>>,
): Variants {
  return { kind: 'variants', by, why, fieldsOf }
}

export function ignored(why: string): Ignored {
  return { kind: 'ignored', why }
}

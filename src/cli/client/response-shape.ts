import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { isJsonObject } from '../../lib/text/json-value.ts'

// Shapes to check responses, because a server may have another version or be hostile. A shape lists
// the members that a verb needs. A response may have more members, and may lack members that are
// marked optional.

/**
 * @returns the path of the first unexpected value: '' for the value itself, null if everything
 * matches.
 */
export interface Shape<T> {
  (value: unknown): string | null
  /** Never set; it only gives the shape its type parameter. */
  readonly type?: T
}

function shapeOf<T>(accepts: (value: unknown) => boolean): Shape<T> {
  return (value) => (accepts(value) ? null : '')
}

export const unknownShape: Shape<unknown> = () => null
export const textShape: Shape<string> = shapeOf((value) => typeof value === 'string')
export const flagShape: Shape<boolean> = shapeOf((value) => typeof value === 'boolean')
export const numberShape: Shape<number> = shapeOf((value) => Number.isFinite(value))
/** Time as UTC ms, within the range of `Date`. */
// @guard answers-of-a-hostile-server--time
export const timeShape: Shape<number> = shapeOf(
  (value) => typeof value === 'number' && !Number.isNaN(new Date(value).getTime()),
)

export function nullableShape<T>(shape: Shape<T>): Shape<T | null> {
  return (value) => (value === null ? null : shape(value))
}

/** Shape of a member that some versions do not send. */
export function optionalShape<T>(shape: Shape<T>): Shape<T> {
  return (value) => (value === undefined ? null : shape(value))
}

export function listShape<T>(shape: Shape<T>): Shape<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) return ''
    for (const [at, item] of (value as readonly unknown[]).entries()) {
      const fault = shape(item)
      if (fault !== null) return joined(String(at), fault)
    }
    return null
  }
}

export function objectShape<T extends object>(members: {
  readonly [Name in keyof T]-?: Shape<Exclude<T[Name], undefined>>
}): Shape<T> {
  const shapes = Object.entries(members) as readonly [string, Shape<unknown>][]
  return (value) => {
    if (!isJsonObject(value)) return ''
    for (const [name, shape] of shapes) {
      const fault = shape(Object.hasOwn(value, name) ? value[name] : undefined)
      if (fault !== null) return joined(name, fault)
    }
    return null
  }
}

function joined(name: string, inner: string): string {
  return inner === '' ? name : `${name}.${inner}`
}

/**
 * Checks that the response has the required shape.
 * @throws {CommandFailure} one sentence with the path of the fault.
 */
export function validatedResponse<T>(controller: string, shape: Shape<T>, value: unknown): T {
  const fault = shape(value)
  if (fault === null) return value as T
  const what = fault === '' ? 'its data' : JSON.stringify(`data.${fault}`)
  throw new CommandFailure(
    EXIT_FAILED,
    `${controller}: unexpected answer (${what} is missing or malformed); is a controller of the network at this address?`,
  )
}

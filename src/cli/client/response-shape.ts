import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { isJsonObject } from '../../lib/text/json-value.ts'

// Shapes to check responses, because a server may have another version or be hostile. A shape lists
// the members that a command needs. A response may have more members, and may lack members that are
// marked optional.

/**
 * @returns the path of the first unexpected value: '' for the value itself, null if everything
 * matches.
 */
export interface ShapeCheck<T> {
  (value: unknown): string | null
  /** Never set; it only gives the shape its type parameter. */
  readonly type?: T
}

function shapeOf<T>(accepts: (value: unknown) => boolean): ShapeCheck<T> {
  return (value) => (accepts(value) ? null : '')
}

export const unknownShape: ShapeCheck<unknown> = () => null
export const textShape: ShapeCheck<string> = shapeOf((value) => typeof value === 'string')
export const booleanShape: ShapeCheck<boolean> = shapeOf((value) => typeof value === 'boolean')
export const numberShape: ShapeCheck<number> = shapeOf((value) => Number.isFinite(value))
/** Time as UTC ms, within the range of `Date`. */
// @guard answers-of-a-hostile-server--time
export const timeShape: ShapeCheck<number> = shapeOf(
  (value) => typeof value === 'number' && !Number.isNaN(new Date(value).getTime()),
)

export function nullableShape<T>(shape: ShapeCheck<T>): ShapeCheck<T | null> {
  return (value) => (value === null ? null : shape(value))
}

/** Shape of a member that some versions do not send. */
export function optionalShape<T>(shape: ShapeCheck<T>): ShapeCheck<T> {
  return (value) => (value === undefined ? null : shape(value))
}

export function listShape<T>(shape: ShapeCheck<T>): ShapeCheck<readonly T[]> {
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
  readonly [Name in keyof T]-?: ShapeCheck<Exclude<T[Name], undefined>>
}): ShapeCheck<T> {
  const shapes = Object.entries(members) as readonly [string, ShapeCheck<unknown>][]
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
export function validateResponse<T>(controller: string, shape: ShapeCheck<T>, value: unknown): T {
  const fault = shape(value)
  if (fault === null) return value as T
  const what = fault === '' ? 'its data' : JSON.stringify(`data.${fault}`)
  throw new CommandFailure(
    EXIT_FAILED,
    `${controller}: unexpected answer (${what} is missing or malformed); is a controller of the network at this address?`,
  )
}

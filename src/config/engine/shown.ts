import type { Fields, Node } from '../controller/values.ts'
import { type ControllerConfig, controllerOptions } from '../controller/options.ts'

export const STRUCK_OUT = '(redacted)'

/**
 * The values in force, fit to be given away: what the options table calls a secret is struck out.
 */
export function shownConfig(config: ControllerConfig): unknown {
  return shownFields(controllerOptions, config)
}

function shownFields(fields: Fields, values: object): Record<string, unknown> {
  const given = new Map(Object.entries(values))
  return Object.fromEntries(
    Object.entries(fields).map(([key, node]) => [key, shown(node, given.get(key))]),
  )
}

function shown(node: Node, value: unknown): unknown {
  switch (node.kind) {
    case 'option':
      return node.isSecret && !isUnset(node.default, value) ? STRUCK_OUT : value
    case 'section':
      return shownFields(node.fields, value as object)
    case 'list':
      return (value as readonly object[]).map((item) => shownFields(node.fields, item))
  }
}

/** That nothing was configured is no secret, and worth knowing. */
function isUnset(initial: unknown, value: unknown): boolean {
  return JSON.stringify(initial) === JSON.stringify(value)
}

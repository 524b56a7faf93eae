import type { SchemaFields, ConfigOption, SchemaNode } from './schema.ts'

export const REDACTED = '(redacted)'

/** Formats one value for the documentation and the display of the effective configuration. */
export function formatOptionValue(option: ConfigOption<unknown>, value: unknown): string {
  if (isHidden(option, value)) return redactedText(option, value)
  const { type } = option
  if (type.show !== undefined) return type.show(value)
  if (value === null) return ''
  return Array.isArray(value) ? value.join(', ') : String(value)
}

/** All values for a debug bundle; secret values are redacted. */
export function redactedValues(fields: SchemaFields, values: object): Record<string, unknown> {
  const given = new Map(Object.entries(values))
  return Object.fromEntries(
    Object.entries(fields).map(([key, node]) => [key, shownNode(node, given.get(key), values)]),
  )
}

function shownNode(node: SchemaNode, value: unknown, siblings: object): unknown {
  if (value === null || value === undefined) return null
  switch (node.kind) {
    case 'option':
      return isHidden(node, value) ? redactedText(node, value) : value
    case 'section':
      return redactedValues(node.fields, value)
    case 'list':
      return (value as readonly object[]).map((item) => redactedValues(node.fields, item))
    case 'keyed':
      return Object.fromEntries(
        Object.entries(value as Record<string, object>).map(([name, item]) => [
          name,
          redactedValues(node.fields, item),
        ]),
      )
    case 'variants': {
      const kind = (siblings as Readonly<Record<string, unknown>>)[node.by]
      return redactedValues(node.fieldsOf[String(kind)] ?? {}, value)
    }
    case 'ignored':
      return null
  }
}

/**
 * Whether a value must be hidden. A default is never hidden: it is not secret, and it shows that
 * the option is not configured.
 */
function isHidden({ isSecret, default: initial }: ConfigOption<unknown>, value: unknown): boolean {
  if (isSecret !== true || value === null) return false
  return JSON.stringify(initial) !== JSON.stringify(value)
}

function redactedText({ type }: ConfigOption<unknown>, value: unknown): string {
  return type.redacted?.(value) ?? REDACTED
}

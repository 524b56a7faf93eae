import { canonicalJson } from '../../lib/text/canonical-json.ts'
import type { SchemaFields, SectionList, ConfigOption } from '../engine/schema.ts'
import { formatOptionValue } from '../engine/option-display.ts'
import { type ControllerConfig, controllerOptions } from './options.ts'

/** An option whose configured value differs from the running controller's value. */
export interface ChangedOption {
  /**
   * For example `raft.tickMs` or `web[0].names`. The key names the whole list, for example `web`,
   * if the length of the list has changed, or if a reload replaces the list as a whole.
   */
  readonly key: string
  /** Values in readable form, with secrets redacted; null for a section or a list of sections. */
  readonly from: string | null
  readonly to: string | null
  /** False if the new value takes effect only after a restart. */
  readonly isReloaded: boolean
}

interface ComparedConfigs {
  readonly changes: readonly ChangedOption[]
  /** The running configuration with the new values of all options that a reload can change. */
  readonly merged: ControllerConfig
}

/** Compares the running configuration with the configuration that was just read from the file. */
export function compareConfigs(running: ControllerConfig, read: ControllerConfig): ComparedConfigs {
  const changes: ChangedOption[] = []
  // The cast is safe: the walk keeps the structure of the options table, from which the type is
  // derived.
  const merged = mergedFields(controllerOptions, running, read, '', changes) as ControllerConfig
  return { changes, merged }
}

type Values = Readonly<Record<string, unknown>>

function mergedFields(
  fields: SchemaFields,
  running: object,
  read: object,
  prefix: string,
  changes: ChangedOption[],
): Values {
  const merged: Record<string, unknown> = {}
  for (const [name, node] of Object.entries(fields)) {
    const [from, to] = [(running as Values)[name], (read as Values)[name]]
    const key = prefix + name
    if (node.kind === 'section' && isSection(from) && isSection(to)) {
      merged[name] = mergedFields(node.fields, from, to, `${key}.`, changes)
      continue
    }
    if (node.kind === 'list' && node.isReloaded !== true && isList(from) && isList(to)) {
      if (from.length === to.length) {
        merged[name] = from.map((item, at) =>
          mergedFields(node.fields, item, to[at] ?? {}, `${key}[${at}].`, changes),
        )
        continue
      }
    }
    merged[name] = from
    if (canonicalJson(from) === canonicalJson(to)) continue
    const isReloaded = (node.kind === 'option' || node.kind === 'list') && node.isReloaded === true
    changes.push({ key, isReloaded, ...shown(node, from, to) })
    if (isReloaded) merged[name] = to
  }
  return merged
}

function shown(
  node: SchemaFields[string] | ConfigOption<unknown> | SectionList<SchemaFields>,
  from: unknown,
  to: unknown,
): Pick<ChangedOption, 'from' | 'to'> {
  if (node.kind !== 'option') return { from: null, to: null }
  return { from: formatOptionValue(node, from), to: formatOptionValue(node, to) }
}

function isList(value: unknown): value is readonly object[] {
  return Array.isArray(value)
}

function isSection(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

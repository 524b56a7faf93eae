import { environmentName } from './environment.ts'
import type { ConfigTable } from './load.ts'
import {
  type SchemaFields,
  type SectionList,
  type ConfigOption,
  REQUIRED_OPTION,
  type SchemaNode,
} from './schema.ts'
import { formatOptionValue } from './option-display.ts'

type Column = 'key' | 'expected' | 'default' | 'scope' | 'change' | 'purpose' | 'variable'
type Row = Readonly<Record<Column, string>>

/**
 * Columns of the tables for a program whose keys environment variables cannot override. For other
 * programs, the tables also show the scope of a key, whether a reload applies a change, and the
 * environment variable.
 */
const columns: readonly Column[] = ['key', 'expected', 'default', 'purpose']
const allColumns: readonly Column[] = [
  'key',
  'expected',
  'default',
  'scope',
  'change',
  'purpose',
  'variable',
]

const NO_EFFECT = ' No effect in this version.'

/** Markdown tables with all keys: first the top-level keys, then one table per section. */
export function renderConfigTables(
  table: Pick<ConfigTable<never>, 'fields' | 'overridePrefix'>,
): string {
  return new Tables(table.overridePrefix).of(table.fields)
}

/** A section and its position in the file. */
interface Place {
  readonly title: string
  /** For example `raft.` or `web[].`. */
  readonly prefix: string
  readonly why: string
  readonly hasEffect: boolean
  readonly isReloaded?: boolean
}

/** Properties of a section that apply to all options in it. */
interface Standing {
  readonly hasEffect: boolean
  readonly isReloaded: boolean
}

class Tables {
  readonly #overridePrefix: string | null
  readonly #columns: readonly Column[]

  constructor(overridePrefix: string | null) {
    this.#overridePrefix = overridePrefix
    this.#columns = overridePrefix === null ? columns : allColumns
  }

  of(fields: SchemaFields): string {
    const { table, inner } = this.#parts(fields, '', { hasEffect: true, isReloaded: false })
    return `## At the top\n\n${table}\n${inner}`
  }

  /** The table of a section's options, and the tables of its nested sections. */
  #parts(
    fields: SchemaFields,
    prefix: string,
    { hasEffect, isReloaded }: Standing,
  ): { table: string; inner: string } {
    const rows: Row[] = []
    let inner = ''
    for (const [name, node] of Object.entries(fields)) {
      const key = prefix + name
      const isInForce = hasEffect && node.hasEffect !== false
      if (node.kind === 'option')
        rows.push(this.#optionRow(key, node, { hasEffect: isInForce, isReloaded }))
      else if (node.kind === 'ignored') rows.push(ignoredRow(key, node.why))
      else inner += this.#sections(key, node, isInForce)
    }
    return { table: rows.length === 0 ? '' : this.#tableOf(rows), inner }
  }

  #sections(
    key: string,
    node: Exclude<SchemaNode, { kind: 'option' | 'ignored' }>,
    hasEffect: boolean,
  ): string {
    const { why } = node
    switch (node.kind) {
      case 'section': {
        const need = node.absence === 'required' ? ' Required.' : ''
        const place = { title: key, prefix: `${key}.`, why: why + need + deprecation(node) }
        return this.#sectionOf(node.fields, { ...place, hasEffect })
      }
      case 'list': {
        const title = `${key} (a list of ${countOf(node)})`
        const isReloaded = node.isReloaded === true
        const place = { title, prefix: `${key}[].`, why, hasEffect, isReloaded }
        return this.#sectionOf(node.fields, place)
      }
      case 'keyed': {
        const title = `${key} (up to ${node.itemsMax} sections by name)`
        return this.#sectionOf(node.fields, { title, prefix: `${key}.<name>.`, why, hasEffect })
      }
      case 'variants':
        return Object.entries(node.fieldsOf)
          .map(([kind, fields]) => {
            const title = `${key} of \`${node.by}: ${kind}\``
            return this.#sectionOf(fields, { title, prefix: `${key}.`, why, hasEffect })
          })
          .join('')
    }
  }

  #sectionOf(fields: SchemaFields, place: Place): string {
    const { title, prefix, why, hasEffect, isReloaded = false } = place
    const { table, inner } = this.#parts(fields, prefix, { hasEffect, isReloaded })
    const effect = hasEffect ? '' : NO_EFFECT
    return `## ${title}\n\n${why}${effect}\n\n${table === '' ? '' : `${table}\n`}${inner}`
  }

  #tableOf(rows: readonly Row[]): string {
    const head = `| ${this.#columns.join(' | ')} |\n|${'---|'.repeat(this.#columns.length)}\n`
    return head + rows.map((row) => this.#lineOf(row)).join('')
  }

  #lineOf(row: Row): string {
    const cells = this.#columns.map((column) => (row[column] === '' ? '' : `${row[column]} `))
    return `| ${cells.join('| ')}|\n`
  }

  #optionRow(key: string, node: ConfigOption<unknown>, { hasEffect, isReloaded }: Standing): Row {
    const aliases = (node.aliases ?? []).map((name) => ` (or \`${name}\`)`).join('')
    const name = environmentName(this.#overridePrefix ?? '', key.replace('[]', '[0]'))
    return {
      key: `\`${key}\`${aliases}`,
      expected: cell(node.type.expected),
      default: defaultOf(node),
      scope: node.scope ?? 'node',
      change: node.isReloaded === true || isReloaded ? 'reload' : 'restart',
      purpose: cell(node.why + deprecation(node)) + (hasEffect ? '' : NO_EFFECT),
      variable: `\`${name}\``,
    }
  }
}

function ignoredRow(key: string, why: string): Row {
  const purpose = `no effect: ${why}`
  return {
    key: `\`${key}\``,
    expected: 'anything',
    default: '',
    scope: '',
    change: '',
    purpose,
    variable: '',
  }
}

function deprecation({ deprecated }: { readonly deprecated?: string }): string {
  return deprecated === undefined ? '' : ` Deprecated: ${deprecated}.`
}

function countOf({ itemsMin, itemsMax }: SectionList<SchemaFields>): string {
  return itemsMin === 0 ? `up to ${itemsMax}` : `${itemsMin} to ${itemsMax}`
}

function defaultOf(node: ConfigOption<unknown>): string {
  if (node.default === REQUIRED_OPTION) return '*required*'
  const text = formatOptionValue(node, node.default)
  return text === '' ? '*none*' : `\`${text}\``
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '\\<')
}

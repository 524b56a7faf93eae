import type { Migration } from '../../migrate/migration.ts'
import {
  type MigrationFinding,
  migrationFindingKinds,
  type StoreReport,
} from '../../migrate/report.ts'
import { formatTable } from '../terminal/output.ts'

/** Maximum IDs that are printed for records with the same finding. */
const IDS_SHOWN_MAX = 3

/** The report as JSON for programs. */
export function migrationJson({ report, databases, authorities }: Migration): object {
  return {
    isWhole: report.count('lost') === 0,
    trustDomain: authorities.trustDomain,
    controllers: authorities.controllers.map(({ id, configuration }) => ({
      id,
      configuration: configuration.path,
    })),
    databases,
    stores: report.stores,
  }
}

/** The report as text: a table of record stores, then the findings for each kind. */
export function migrationText({ report, databases, authorities }: Migration): string {
  const { stores } = report
  const head = [
    `network of ${authorities.controllers.map(({ id }) => id).join(', ')}, trust domain ${authorities.trustDomain}`,
    ...databases.map(({ path, version }) => `${path}: schema version ${version}`),
  ]
  const rows = stores
    .filter(({ records }) => records > 0)
    .map(({ store, records, carried, counts }) =>
      [store, records, carried, counts.changed, counts.decide, counts.lost].map(String),
    )
  const table = formatTable(['store', 'records', 'carried', 'changed', 'decide', 'lost'], rows)
  return [
    ...head,
    '',
    table,
    ...migrationFindingKinds.flatMap((kind) => findingLines(stores, kind)),
  ].join('\n')
}

function findingLines(stores: readonly StoreReport[], kind: MigrationFinding['kind']): string[] {
  const groups = new Map<string, MigrationFinding[]>()
  for (const finding of stores.flatMap(({ findings }) => findings)) {
    if (finding.kind !== kind) continue
    const key = [finding.store, finding.field, finding.reason].join('\0')
    groups.set(key, [...(groups.get(key) ?? []), finding])
  }
  if (groups.size === 0) return []
  const lines = [...groups.values()].map((group) => `  ${lineOf(group)}`)
  const hidden = stores.reduce(
    (sum, { counts, findings }) =>
      sum + counts[kind] - findings.filter((one) => one.kind === kind).length,
    0,
  )
  return ['', `${kind}:`, ...lines, ...(hidden === 0 ? [] : [`  and ${hidden} more`])]
}

/** For example `P-a-S9TUT (edge-1)`: users know the name, and commands accept both. */
function titleOf({ id, name }: MigrationFinding): string {
  return name === '' || name === id ? id : `${id} (${name})`
}

function lineOf(group: readonly MigrationFinding[]): string {
  const [first] = group
  if (first === undefined) return ''
  const ids = group.filter(({ id }) => id !== '').map(titleOf)
  const shown = ids.slice(0, IDS_SHOWN_MAX).join(', ')
  const more = ids.length > IDS_SHOWN_MAX ? ` and ${ids.length - IDS_SHOWN_MAX} more` : ''
  const place = [first.store, shown + more, first.field].filter((part) => part !== '').join(' ')
  return `${place}: ${first.reason}`
}

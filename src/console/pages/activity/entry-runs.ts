import type { AuditDetail } from '../../client/served-types.ts'

/** At least this many similar entries that follow each other are shown as one. */
const RUN_MIN = 5

/** Entries that the list shows as one, newest first; usually only one. */
export interface EntryRun {
  readonly first: AuditDetail
  readonly entries: readonly AuditDetail[]
}

/** Whether two entries are the same action of the same actor in the same minute. */
function isSameRun(a: AuditDetail, b: AuditDetail): boolean {
  const key = ({ actor, action, at, outcome }: AuditDetail): string =>
    [actor.id, action, at.slice(0, 16), outcome].join(' ')
  return key(a) === key(b)
}

/** Joins similar entries that follow each other, if they are many. */
export function groupRuns(rows: readonly AuditDetail[]): readonly EntryRun[] {
  const runs: AuditDetail[][] = []
  for (const row of rows) {
    const last = runs.at(-1)
    const [first] = last ?? []
    if (last !== undefined && first !== undefined && isSameRun(first, row)) last.push(row)
    else runs.push([row])
  }
  return runs.flatMap((entries): EntryRun[] => {
    const [first] = entries
    if (first === undefined) return []
    return entries.length < RUN_MIN
      ? entries.map((entry) => ({ first: entry, entries: [entry] }))
      : [{ first, entries }]
  })
}

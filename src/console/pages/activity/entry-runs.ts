import type { AuditDetail } from '../../client/served-types.ts'

/** At least this many similar entries that follow each other are shown as one. */
const RUN_MIN = 5

/** Entries that the list shows as one, newest first; usually only one. */
export interface EntryRun {
  readonly first: AuditDetail
  readonly entries: readonly AuditDetail[]
}

/** Whether an identity or router enrolled: the actor is its enrollment. */
export function isEnrollment({ actor: { id }, outcome }: AuditDetail): boolean {
  return id.startsWith('enrollment:') && outcome === 'done'
}

/**
 * Whether an entry belongs to a run: it is the same action of the same actor in the same minute, or
 * an enrollment among creations, because each new identity enrolls soon after its creation.
 */
function belongsTo(run: readonly AuditDetail[], entry: AuditDetail): boolean {
  const key = ({ actor, action, outcome }: AuditDetail): string =>
    [actor.id, action, outcome].join(' ')
  if (run[0]?.at.slice(0, 16) !== entry.at.slice(0, 16)) return false
  const first = run.find((one) => !isEnrollment(one))
  if (isEnrollment(entry)) return first === undefined || isCreation(first)
  return first === undefined ? isCreation(entry) : key(first) === key(entry)
}

function isCreation({ action, outcome }: AuditDetail): boolean {
  return action === 'create' && outcome === 'done'
}

/** Joins similar entries that follow each other, if they are many. */
export function groupRuns(rows: readonly AuditDetail[]): readonly EntryRun[] {
  const runs: AuditDetail[][] = []
  for (const row of rows) {
    const last = runs.at(-1)
    if (last !== undefined && belongsTo(last, row)) last.push(row)
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

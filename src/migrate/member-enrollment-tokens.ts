import type { State } from '../fsm/records/state.ts'
import type { OpenZitiDatabase } from './database.ts'
import { readStoreRecords } from './database-conversion.ts'
import { MigrationReport } from './report.ts'
import { enrollmentStore } from './stores/identity-stores.ts'

interface MemberDatabase {
  readonly path: string
  readonly database: OpenZitiDatabase
}

const STORE = 'enrollments'

/**
 * Adds the enrollment tokens of routers from a further member's database. Each member of an
 * OpenZiti cluster signs enrollment tokens with its own key, so it has another token for the same
 * enrollment, and operators may have given any of these tokens to a router.
 */
export function addMemberEnrollmentTokens(
  state: State,
  other: MemberDatabase,
  newest: MemberDatabase,
  report: MigrationReport,
): void {
  const known = new Set(
    [...state.table('enrollment').rows.values()].map(({ record }) => record.token),
  )
  // A report that is discarded, because the records were already counted for the newest database.
  const unreported = new MigrationReport()
  for (const record of readStoreRecords(other.database, enrollmentStore, unreported)) {
    const enrollment = state.get('enrollment', record.id)
    const token = record.text('token') ?? ''
    const isOfRouter = enrollment?.method === 'erott' || enrollment?.method === 'trott'
    if (enrollment === undefined || !isOfRouter || token === '' || known.has(token)) continue
    known.add(token)
    const id = freeId(state, record.id)
    state.put('enrollment', { ...enrollment, id, token, jwt: record.text('jwt') || null })
    const reason = `another member made another token for it, which is carried as ${id}`
    report.note('changed', { store: STORE, id: record.id, field: 'token' }, reason)
  }
  const [own, its] = [newest.database.raftIndex ?? 0, other.database.raftIndex ?? 0]
  if (own === its) return
  const reason = `${other.path} ends at index ${its} of the log and ${newest.path} at ${own}; the older one contributes only tokens`
  report.note('changed', { store: STORE, id: '', field: 'token' }, reason)
}

/** An unused id: `ID.2`, `ID.3` and so on. */
function freeId(state: State, id: string): string {
  for (let number = 2; ; number += 1) {
    const made = `${id}.${number}`
    if (state.inTable('enrollment', made) === undefined) return made
  }
}

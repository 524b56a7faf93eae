// These styles are in the chunk of the pages; the log-in and Home do not need them.
import '../../style/records.css'
import '../../style/access.css'

import type { ConsoleKind } from './kinds.ts'
import { ListPage } from './list-page.tsx'
import { RecordPage } from './record-page.tsx'

const NEW = 'new'

/** The list of a kind, the page of one record, or the form for a new record. */
export function Records({ kind, id }: { readonly kind: ConsoleKind; readonly id: string | null }) {
  if (id === null) return <ListPage kind={kind} />
  return <RecordPage kind={kind} id={id === NEW ? null : id} />
}

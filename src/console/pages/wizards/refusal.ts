import { useEffect } from 'preact/hooks'

import { hasPermission, loadCaller } from '../../app/api-documents.ts'
import { isReadOnly } from '../../app/services.ts'
import { texts } from '../../texts.ts'

/** Why a wizard would be refused, known before anything is typed; null: it would not. */
export function useRefusal(permissions: readonly string[]): string | null {
  useEffect(() => {
    loadCaller().catch(() => undefined)
  }, [])
  if (isReadOnly.value) return texts.banner.refused
  return permissions.every(hasPermission) ? null : texts.failure.notAllowed
}

import { useEffect } from 'preact/hooks'

import { hasPermission, loadCaller } from '../../app/management-document.ts'
import { isReadOnly } from '../../app/console-state.ts'
import { texts } from '../../texts.ts'

/**
 * The reason why the user may not use a wizard, known before anything is typed; null if the user
 * may.
 */
export function useMissingPermissionReason(permissions: readonly string[]): string | null {
  useEffect(() => {
    loadCaller().catch(() => undefined)
  }, [])
  if (isReadOnly.value) return texts.banner.refused
  return permissions.every(hasPermission) ? null : texts.failure.notAllowed
}

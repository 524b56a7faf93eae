import { type Draft, isObject, withoutSecrets } from './form-model.ts'
import type { FormField } from './form-field.ts'

const PREFIX = 'flotilla.draft.'
const CHARACTERS_MAX = 200_000

/**
 * Stores a draft for as long as the tab is open, so that neither a log-in nor a reload loses it.
 */
export function storeDraft(key: string, draft: Draft, fields: readonly FormField[]): void {
  const text = JSON.stringify(withoutSecrets(draft, fields))
  if (text.length > CHARACTERS_MAX) return
  try {
    sessionStorage.setItem(PREFIX + key, text)
  } catch {
    // If the storage of the browser is full, only the page has the draft.
  }
}

export function storedDraft(key: string): Draft | null {
  try {
    const stored = JSON.parse(sessionStorage.getItem(PREFIX + key) ?? 'null') as unknown
    return isObject(stored) ? stored : null
  } catch {
    return null
  }
}

export function dropDraft(key: string): void {
  sessionStorage.removeItem(PREFIX + key)
}

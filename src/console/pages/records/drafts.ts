import { type Draft, isObject, withoutSecrets } from './form-model.ts'
import type { FormField } from './form-field.ts'

const PREFIX = 'flotilla.draft.'
const CHARACTERS_MAX = 200_000

/** Drafts live as long as the tab, so that neither a log-in nor a reload loses one. */
export function storeDraft(key: string, draft: Draft, fields: readonly FormField[]): void {
  const text = JSON.stringify(withoutSecrets(draft, fields))
  if (text.length > CHARACTERS_MAX) return
  try {
    sessionStorage.setItem(PREFIX + key, text)
  } catch {
    // A browser that has no room keeps the form on the page alone.
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

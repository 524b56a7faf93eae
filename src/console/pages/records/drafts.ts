import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { removeDraftSecrets } from './form-model.ts'
import { type Draft, isObject, isDeepEqual } from './json-values.ts'
import type { FormField } from './form-field.ts'

const PREFIX = 'flotilla.draft.'
const CHARACTERS_MAX = 200_000

/**
 * Stores a draft without its secrets until the tab is closed, so that neither a log-in nor a reload
 * loses it. A draft that is too long is not stored.
 */
export function storeDraft(key: string, draft: Draft, fields: readonly FormField[]): void {
  const text = JSON.stringify(removeDraftSecrets(draft, fields))
  if (text.length > CHARACTERS_MAX) return
  try {
    sessionStorage.setItem(PREFIX + key, text)
  } catch {
    // Ignored: if the browser's storage is full, only the page has the draft.
  }
}

export function readStoredDraft(key: string): Draft | null {
  try {
    const stored = JSON.parse(sessionStorage.getItem(PREFIX + key) ?? 'null') as unknown
    return isObject(stored) ? stored : null
  } catch {
    return null
  }
}

/** Whether unsaved input for the form of a record is stored. */
export function hasDraft({ path }: { readonly path: string }, id: string): boolean {
  return sessionStorage.getItem(`${PREFIX}${path}/${id}`) !== null
}

export function dropDraft(key: string): void {
  sessionStorage.removeItem(PREFIX + key)
}

/** A signal whose value is stored until the tab is closed; only for input without secrets. */
export function useDraftSignal<T>(key: string, initial: T): Signal<T> {
  const stored = readStoredDraft(key)
  const value = useSignal<T>(stored === null ? initial : (stored['value'] as T))
  useEffect(() => {
    if (isDeepEqual(value.value, initial)) dropDraft(key)
    else storeDraft(key, { value: value.value }, [])
  }, [value.value])
  return value
}

import { signal } from '@preact/signals'

import { navigateTo, consolePath } from './navigation.ts'

/** Pages by the key that opens them after `g`. */
export const pageShortcuts = new Map<string, { readonly path: string; readonly title: string }>()
export const isHelpOpen = signal(false)
export const isSearchOpen = signal(false)

/** Actions of the current page, by key. */
const pageKeys = new Map<string, () => void>()

/** Registers a key. @returns a function that removes it. */
export function registerKey(key: string, act: () => void): () => void {
  pageKeys.set(key, act)
  return () => {
    if (pageKeys.get(key) === act) pageKeys.delete(key)
  }
}

const GO_MS = 1_200

export function startShortcuts(): void {
  let goUntil = 0
  document.addEventListener('keydown', (event) => {
    const isInDialog = document.querySelector('dialog[open]') !== null
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k' && !isInDialog) {
      event.preventDefault()
      isSearchOpen.value = true
      return
    }
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
    if (isInDialog) return
    const { key } = event
    if (performance.now() < goUntil) {
      goUntil = 0
      const target = pageShortcuts.get(key)
      if (target === undefined) return
      event.preventDefault()
      navigateTo(target.path)
      return
    }
    if (key === 'g') {
      goUntil = performance.now() + GO_MS
      return
    }
    if (key === '?') {
      isHelpOpen.value = true
      return
    }
    const act = pageKeys.get(key)
    if (act === undefined) return
    event.preventDefault()
    act()
  })
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName)
}

/** Registers a key that opens a page when it is pressed after `g`. */
export function registerPageShortcut(
  key: string,
  title: string,
  ...names: readonly string[]
): void {
  pageShortcuts.set(key, { title, path: consolePath(...names) })
}

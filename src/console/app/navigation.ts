import { signal } from '@preact/signals'

/** Controllers serve the console here. */
export const BASE = '/console'

export interface Place {
  /** Names below the base, decoded: `['services', 'abc']`. */
  readonly names: readonly string[]
  readonly query: URLSearchParams
}

export function placeOf(url: Pick<URL, 'pathname' | 'search'>): Place {
  const below = url.pathname.startsWith(BASE) ? url.pathname.slice(BASE.length) : url.pathname
  const names = below
    .split('/')
    .filter((name) => name !== '')
    .map(decoded)
  return { names, query: new URLSearchParams(url.search) }
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** A dot is written as an escape: a path that ends as a file does is asked for as a file. */
export function pathTo(...names: readonly string[]): string {
  return [BASE, ...names.map((name) => encodeURIComponent(name).replaceAll('.', '%2E'))].join('/')
}

export const place = signal<Place>({ names: [], query: new URLSearchParams() })

/** Asked before a page is left; false keeps it. */
let mayLeave: () => boolean = () => true

export function guardLeaving(guard: () => boolean): () => void {
  mayLeave = guard
  return () => {
    if (mayLeave === guard) mayLeave = () => true
  }
}

export function goTo(path: string, options: { readonly replaces?: boolean } = {}): void {
  if (!mayLeave()) return
  if (options.replaces === true) history.replaceState(null, '', path)
  else history.pushState(null, '', path)
  const before = place.value.names.join('/')
  place.value = placeOf(location)
  if (place.value.names.join('/') !== before) arrive()
}

/** Moves the focus to the heading, for people who hear the page; the rest see the top of it. */
function arrive(): void {
  scrollTo(0, 0)
  requestAnimationFrame(() => document.querySelector<HTMLElement>('h1')?.focus())
}

export function startNavigation(): void {
  place.value = placeOf(location)
  addEventListener('popstate', () => {
    place.value = placeOf(location)
  })
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || !isPlainClick(event) || link.origin !== location.origin) return
    if (!link.pathname.startsWith(`${BASE}/`) && link.pathname !== BASE) return
    if (link.hash !== '' || link.hasAttribute('download')) return
    event.preventDefault()
    goTo(link.pathname + link.search)
  })
}

function isPlainClick(event: MouseEvent): boolean {
  return !(
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  )
}

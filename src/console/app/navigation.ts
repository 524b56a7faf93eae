import { signal } from '@preact/signals'

/** Base path at which controllers serve the console. */
export const CONSOLE_BASE_PATH = '/console'

/** A page of the console: the segments of its path, and its query. */
export interface ConsolePage {
  /** Path segments below the base, decoded: `['services', 'abc']`. */
  readonly names: readonly string[]
  readonly query: URLSearchParams
}

export function parseConsolePage(url: Pick<URL, 'pathname' | 'search'>): ConsolePage {
  const below = url.pathname.startsWith(CONSOLE_BASE_PATH)
    ? url.pathname.slice(CONSOLE_BASE_PATH.length)
    : url.pathname
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

/**
 * The path of a page. Dots are escaped, because a server would treat a path with a file extension
 * as a file.
 */
export function consolePath(...names: readonly string[]): string {
  return [
    CONSOLE_BASE_PATH,
    ...names.map((name) => encodeURIComponent(name).replaceAll('.', '%2E')),
  ].join('/')
}

export const currentPage = signal<ConsolePage>({ names: [], query: new URLSearchParams() })

/** Called by `navigateTo`; if it returns false, the user stays on the page. */
let mayLeave: () => boolean = () => true

/**
 * Sets the function that `navigateTo` calls before it leaves a page; it replaces the former one. It
 * is not called for Back and Forward: the form keeps its draft.
 * @returns a function that removes it.
 */
export function registerLeaveGuard(guard: () => boolean): () => void {
  mayLeave = guard
  return () => {
    if (mayLeave === guard) mayLeave = () => true
  }
}

export function navigateTo(path: string, options: { readonly replaces?: boolean } = {}): void {
  if (!mayLeave()) return
  if (options.replaces === true) history.replaceState(null, '', path)
  else history.pushState(null, '', path)
  const before = currentPage.value.names.join('/')
  currentPage.value = parseConsolePage(location)
  if (currentPage.value.names.join('/') !== before) arrive()
}

/** Moves the focus to the heading for screen readers, and scrolls to the top. */
function arrive(): void {
  scrollTo(0, 0)
  requestAnimationFrame(() => document.querySelector<HTMLElement>('h1')?.focus())
}

export function startNavigation(): void {
  currentPage.value = parseConsolePage(location)
  addEventListener('popstate', () => {
    currentPage.value = parseConsolePage(location)
  })
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || !isPlainClick(event) || link.origin !== location.origin) return
    if (!link.pathname.startsWith(`${CONSOLE_BASE_PATH}/`) && link.pathname !== CONSOLE_BASE_PATH)
      return
    if (link.hash !== '' || link.hasAttribute('download')) return
    event.preventDefault()
    navigateTo(link.pathname + link.search)
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

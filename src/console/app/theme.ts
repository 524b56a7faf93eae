import { effect, signal } from '@preact/signals'

export type Theme = 'light' | 'dark'

const STORED = 'flotilla.theme'
const dark = matchMedia('(prefers-color-scheme: dark)')

function chosen(): Theme | null {
  const stored = localStorage.getItem(STORED)
  return stored === 'light' || stored === 'dark' ? stored : null
}

const ofSystem = (): Theme => (dark.matches ? 'dark' : 'light')

/** The theme that the user chose; until then, the system's theme. */
export const theme = signal<Theme>(chosen() ?? ofSystem())

export function startTheme(): void {
  dark.addEventListener('change', () => {
    if (chosen() === null) theme.value = ofSystem()
  })
  effect(() => {
    document.documentElement.dataset['theme'] = theme.value
  })
}

export function toggleTheme(): void {
  theme.value = theme.value === 'dark' ? 'light' : 'dark'
  localStorage.setItem(STORED, theme.value)
}

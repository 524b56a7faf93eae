import { signal } from '@preact/signals'

/** Up to this window width, tables and bars show less; the style sheets use the same width. */
const query = matchMedia('(max-width: 48rem)')

/** True while the window is as narrow as that of a phone. */
export const isNarrowWindow = signal(query.matches)
query.addEventListener('change', ({ matches }) => (isNarrowWindow.value = matches))

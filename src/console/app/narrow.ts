import { signal } from '@preact/signals'

/** The width below which tables and bars show less; the same as in the style sheets. */
const query = matchMedia('(max-width: 48rem)')

/** True while the window is as narrow as that of a phone. */
export const isNarrowWindow = signal(query.matches)
query.addEventListener('change', ({ matches }) => (isNarrowWindow.value = matches))

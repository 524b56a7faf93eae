import { useEffect } from 'preact/hooks'

import { currentPage } from './navigation.ts'

/**
 * Scrolls the chosen tab into view, in a narrow window with more tabs than fit.
 * @param shown changes when the tabs change their width.
 */
export function useCurrentTabInView(shown: unknown = null): void {
  useEffect(() => {
    const tab = document.querySelector('main :is(.tabs, .segments) [aria-current]')
    tab?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [currentPage.value, shown])
}

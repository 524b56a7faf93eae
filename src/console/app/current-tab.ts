import { useEffect } from 'preact/hooks'

import { currentPage } from './navigation.ts'

/** Scrolls the chosen tab into view, in a narrow window with more tabs than fit. */
export function useCurrentTabInView(): void {
  useEffect(() => {
    const tab = document.querySelector('main :is(.tabs, .segments) [aria-current]')
    tab?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [currentPage.value])
}

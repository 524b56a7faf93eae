import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** Name of the record that the page shows; '' while it shows none. */
export const recordTitle = signal('')

/** Puts the name of a record into the title of the tab while its page is shown. */
export function useRecordTitle(name: string): void {
  useEffect(() => {
    recordTitle.value = name
    return () => {
      recordTitle.value = ''
    }
  }, [name])
}

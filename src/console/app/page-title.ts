import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** Name of the record that the page shows; '' if the page shows none. */
export const recordTitle = signal('')

/** Shows the name of a record in the tab's title while the record's page is shown. */
export function useRecordTitle(name: string): void {
  useEffect(() => {
    recordTitle.value = name
    return () => {
      recordTitle.value = ''
    }
  }, [name])
}

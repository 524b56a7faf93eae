import { useSignal } from '@preact/signals'

import { Notice } from '../controls/status.tsx'
import { pageTexts } from '../page-texts.ts'
import { texts } from '../texts.ts'
import { FailureNotice } from './failure.tsx'

interface ListPart<T> {
  readonly rows: readonly T[]
  /** Number of all rows of the list. */
  readonly totalCount: number
}

/** A list that the user saves as a file. */
export interface ListFile<T> {
  /** Maximum rows of the file. */
  readonly rowsMax: number
  readonly read: (offset: number) => Promise<ListPart<T>>
  readonly save: (rows: readonly T[]) => void
  /** A number of rows in words, such as `3 identities`. */
  readonly count: (amount: number) => string
}

/** Reads the first rows of a list, one page after the other. */
async function readFirstRows<T>(
  { rowsMax, read }: ListFile<T>,
  onProgress: (rows: number, all: number) => void,
): Promise<ListPart<T>> {
  const rows: T[] = []
  for (;;) {
    const page = await read(rows.length)
    rows.push(...page.rows)
    const { totalCount } = page
    const all = Math.min(totalCount, rowsMax)
    onProgress(Math.min(rows.length, all), all)
    if (page.rows.length === 0 || rows.length >= all) {
      return { rows: rows.slice(0, rowsMax), totalCount }
    }
  }
}

/** Saves lists as files, and keeps the progress and the outcome of the last one. */
export function useListFile() {
  const { listFile } = pageTexts
  const progress = useSignal('')
  const limit = useSignal('')
  const error = useSignal<unknown>(null)
  const save = <T,>(file: ListFile<T>): void => {
    error.value = null
    limit.value = ''
    progress.value = texts.loading
    readFirstRows(file, (rows, all) => (progress.value = listFile.progress(rows, all)))
      .then(({ rows, totalCount }) => {
        file.save(rows)
        if (rows.length < totalCount) {
          limit.value = listFile.limit(rows.length, file.count(totalCount))
        }
      })
      .catch((failure: unknown) => (error.value = failure))
      .finally(() => (progress.value = ''))
      .catch(() => undefined)
  }
  const outcome = (
    <div class="file-outcome">
      <div role="status">
        {limit.value === '' ? null : <Notice tone="warn">{limit.value}</Notice>}
      </div>
      <FailureNotice error={error.value} />
    </div>
  )
  return { save, progress: progress.value, outcome }
}

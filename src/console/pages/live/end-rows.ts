import { ApiRefusalError } from '../../../client/client-errors.ts'

/** Whether a row could not be ended because it has ended meanwhile. */
export function hasEndedBefore(failure: unknown): boolean {
  return failure instanceof ApiRefusalError && failure.status === 404
}

/**
 * Ends rows one after the other. After a failure the others are ended too; a row that has ended
 * meanwhile is no failure.
 */
export async function endRows(
  rows: readonly { readonly id: string }[],
  end: (id: string) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = []
  for (const { id } of rows) {
    await end(id).catch((failure: unknown) => {
      if (!hasEndedBefore(failure)) failures.push(failure)
    })
  }
  if (failures.length > 0) throw failures[0]
}

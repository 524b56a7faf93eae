import { Problem } from './problems.ts'

/**
 * Validates and writes. If the write is refused because the validated records have changed, repeats
 * both with the current records: `run` throws the refusal only after this controller has applied
 * the refused entry and all earlier entries.
 * @param request the request that the write carries out.
 * @param run validates and writes.
 * @throws {Problem} REVISION_MOVED after `judgementsMax` attempts, and any other error of `run`.
 */
export async function retryWhenRecordsChange<T>(
  request: { readonly onProposed: (idempotency: null) => void },
  { judgementsMax }: { readonly judgementsMax: number },
  run: () => Promise<T>,
): Promise<T> {
  for (let judgements = 1; ; judgements += 1) {
    try {
      return await run()
    } catch (error) {
      const hasMoved = error instanceof Problem && error.code === 'REVISION_MOVED'
      if (!hasMoved || judgements >= judgementsMax) throw error
      request.onProposed(null)
    }
  }
}

import { Problem } from './problems.ts'

/**
 * Judges and writes; again, from what has moved, as long as the write is refused because what it
 * was judged on moved.
 * @param request whose write it is: the refusal was applied here, and so was what came before it.
 * @throws {Problem} REVISION_MOVED after `judgementsMax` times, and all else that `run` throws.
 */
export async function retryWhenMoved<T>(
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

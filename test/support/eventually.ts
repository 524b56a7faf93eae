import { vi } from 'vitest'

/** Looks again until nothing is thrown. The time is for a machine that many share; Vitest's own second is not. */
export function eventually<T>(
  check: () => T | Promise<T>,
  { timeout = 20_000, interval = 20 }: { timeout?: number; interval?: number } = {},
): Promise<T> {
  return vi.waitFor(check, { timeout, interval })
}

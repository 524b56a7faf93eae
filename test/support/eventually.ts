import { vi } from 'vitest'

import { PATIENCE_MS } from './patience.ts'

/**
 * Calls the function repeatedly until it does not throw. @throws its last error after the timeout.
 */
export function eventually<T>(
  check: () => T | Promise<T>,
  { timeout = PATIENCE_MS, interval = 20 }: { timeout?: number; interval?: number } = {},
): Promise<T> {
  return vi.waitFor(check, { timeout, interval })
}

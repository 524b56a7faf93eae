/**
 * The time in ms after which a test that waits for a condition is stopped because it hangs. It
 * affects the result of no test: the condition becomes true sooner even on the slowest shared
 * machine.
 */
export const PATIENCE_MS = 100_000

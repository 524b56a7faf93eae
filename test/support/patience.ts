/**
 * The time in ms after which a test that waits for a condition fails. It is so long that the
 * condition of a correct program becomes true sooner even on a slow shared machine.
 */
export const PATIENCE_MS = 100_000

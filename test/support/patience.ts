/**
 * The time in ms after which a test that waits for a condition is ended as hung. It decides no
 * test: the slowest machine that many share gets there sooner.
 */
export const PATIENCE_MS = 100_000

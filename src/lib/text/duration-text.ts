const NS_A_MS = 1_000_000

/** A duration as Go prints it and OpenZiti clients parse it: `1.5s`, `12.25ms`, `830µs`, `0s`. */
export function durationText(ms: number): string {
  const ns = Math.round(ms * NS_A_MS)
  if (ns === 0) return '0s'
  if (ns < 1000) return `${ns}ns`
  if (ns < NS_A_MS) return `${ns / 1000}µs`
  if (ns < 1000 * NS_A_MS) return `${ns / NS_A_MS}ms`
  return `${ns / (1000 * NS_A_MS)}s`
}

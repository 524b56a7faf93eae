import type { LeanClient } from './lean-client.ts'
import { percentile } from './report.ts'

/** Measured values of one load; times in ms. */
export interface Run {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly requests: number
}

/** Makes each client send one request after the other. @throws if a response is a refusal. */
export async function load(
  clients: readonly LeanClient[],
  send: (client: LeanClient) => Promise<number>,
  forSeconds: number,
): Promise<Run> {
  const latencies: number[] = []
  const end = performance.now() + forSeconds * 1000
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() < end) {
        const from = performance.now()
        const status = await send(client)
        if (status >= 300) throw new Error(`status ${status}`)
        latencies.push(performance.now() - from)
      }
    }),
  )
  return {
    perSecond: latencies.length / forSeconds,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    requests: latencies.length,
  }
}

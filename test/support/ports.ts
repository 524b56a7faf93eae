import { createServer } from 'node:net'

/**
 * Below what Linux gives to outgoing connections (32768 and up): a port that was found free there is not taken by the
 * next client that connects somewhere. Beginnings are drawn at random, so that files running side by side do not meet.
 */
const FIRST = 10_000
const LAST = 32_000

/** A port that is free now; another process may still take it first, which `listen` then tells. */
export async function freePort(): Promise<number> {
  return await freeFrom([0])
}

/** A port from which quickstart's ports are free: so many controllers, and as many routers. */
export async function freePortBlock(nodes = 3): Promise<number> {
  return await freeFrom(
    Array.from({ length: nodes }, (_, at) => [at, at + 100, at + 200, at + 300, at + 400]).flat(),
  )
}

async function freeFrom(offsets: readonly number[]): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const base = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    const free = await Promise.all(offsets.map((offset) => isFree(base + offset)))
    if (free.every(Boolean)) return base
  }
  throw new Error('no free ports')
}

function isFree(port: number): Promise<boolean> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', () => done(false))
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)))
  })
}

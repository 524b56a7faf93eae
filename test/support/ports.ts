import { createServer, type ListenOptions, type Server } from 'node:net'

/**
 * Below what Linux gives to outgoing connections (32768 and up): a port that was found free there is not taken by the
 * next client that connects somewhere.
 */
const FIRST = 10_000
const LAST = 32_000
/** Ports of one process. A block of quickstart's ports spans 400 and the number of its nodes. */
const BAND_PORTS = 800
/** A process gives no port again until so many others were given: who asked for it may not listen there yet. */
const KEPT_PORTS = 250

let band: Promise<number> | null = null
const given = new Set<number>()

/** A port that is free now, and that no other process of a test is given while this one lives. */
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
  band ??= takeBand()
  const first = await band
  const bases = BAND_PORTS - Math.max(...offsets)
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const base = first + Math.floor(Math.random() * bases)
    const ports = offsets.map((offset) => base + offset)
    if (ports.some((port) => given.has(port))) continue
    give(ports)
    const free = await Promise.all(ports.map((port) => canListen({ port, host: '127.0.0.1' })))
    if (free.every(Boolean)) return base
  }
  throw new Error(`no free ports from ${first} to ${first + BAND_PORTS - 1}`)
}

function give(ports: readonly number[]): void {
  for (const port of ports) given.add(port)
  for (const port of given) {
    if (given.size <= KEPT_PORTS) break
    given.delete(port)
  }
}

/**
 * Takes a band of ports for this process. An abstract socket with the band's number is the claim: the kernel gives it to one
 * process at a time, takes it back however that process ends, and keeps its name in the network namespace of the ports.
 * @returns its first port.
 */
async function takeBand(): Promise<number> {
  const bands = Math.floor((LAST - FIRST) / BAND_PORTS)
  const start = Math.floor(Math.random() * bands)
  for (let step = 0; step < bands; step += 1) {
    const number = (start + step) % bands
    const server = await listening({ path: `\0flotilla-test-ports-${number}` })
    if (server === null) continue
    server.unref()
    return FIRST + number * BAND_PORTS
  }
  throw new Error(`all ${bands} bands of ports are taken: too many processes of tests on this host`)
}

async function canListen(options: ListenOptions): Promise<boolean> {
  const server = await listening(options)
  if (server === null) return false
  await new Promise((done) => server.close(done))
  return true
}

/** @returns null when another one has the place. */
function listening(options: ListenOptions): Promise<Server | null> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', () => done(null))
    server.listen(options, () => done(server))
  })
}

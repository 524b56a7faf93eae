import { createServer, type ListenOptions, type Server } from 'node:net'

/**
 * This range is below the ports that Linux gives to outgoing connections (32768 and up), so the
 * next outgoing connection cannot use a port that was found free here.
 */
const FIRST = 10_000
const LAST = 32_000
/**
 * Ports of one process: first those of blocks, then single ports, so that the two do not overlap.
 */
const BAND_PORTS = 900
/**
 * Ports of quickstart are in six rows at this distance; a block uses the next few ports of each
 * row, and leaves some free after them.
 */
const ROW_PORTS = 100
const ROWS = 6
/** Ports that a block leaves in each row for controllers that a test adds to its cluster. */
const ADDED_NODES = 2
const SINGLE_PORTS = BAND_PORTS - ROWS * ROW_PORTS

let band: Promise<number> | null = null
let blocksGiven = Math.floor(Math.random() * ROW_PORTS)
let singlesGiven = Math.floor(Math.random() * SINGLE_PORTS)

/**
 * A port that is free now, and that no other test process gets while this process runs. This
 * function returns it again only after it has tried all other single ports of the band, because its
 * user may not listen on it yet.
 */
export async function freePort(): Promise<number> {
  const first = (await ownBand()) + ROWS * ROW_PORTS
  return await firstFree(SINGLE_PORTS, () => {
    singlesGiven = (singlesGiven + 1) % SINGLE_PORTS
    return [first + singlesGiven]
  })
}

/**
 * A port from which quickstart's ports are free, for this number of controllers and the same number
 * of routers.
 */
export async function freePortBlock(nodes = 3): Promise<number> {
  const first = await ownBand()
  return await firstFree(ROW_PORTS, () => {
    if (blocksGiven + nodes > ROW_PORTS) blocksGiven = 0
    const base = first + blocksGiven
    blocksGiven += nodes + ADDED_NODES
    return Array.from({ length: nodes * ROWS }, (_, at) => {
      return base + (at % nodes) + Math.floor(at / nodes) * ROW_PORTS
    })
  })
}

/** The first port of a draw whose ports are all free. */
async function firstFree(drawsMax: number, draw: () => readonly number[]): Promise<number> {
  for (let drawn = 0; drawn < drawsMax; drawn += 1) {
    const ports = draw()
    const free = await Promise.all(ports.map((port) => canListen({ port, host: '127.0.0.1' })))
    if (free.every(Boolean)) return ports[0] ?? 0
  }
  throw new Error(`no free ports in ${drawsMax} places of the band from ${await ownBand()}`)
}

function ownBand(): Promise<number> {
  band ??= takeBand()
  return band
}

/**
 * Claims a band of ports for this process. The claim is an abstract socket with the number of the
 * band: the kernel gives it to one process at a time, releases it when that process ends in any
 * way, and keeps its name in the network namespace of the ports.
 * @returns the first port of the band.
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

/** @returns null when the address cannot be listened on, usually because it is in use. */
function listening(options: ListenOptions): Promise<Server | null> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', () => done(null))
    server.listen(options, () => done(server))
  })
}

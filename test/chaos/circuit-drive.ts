import { parseArgs } from 'node:util'

import { until } from '../process/support/client.ts'
import { CircuitNetwork } from '../process/support/circuit-network.ts'

// Runs circuits that carry numbered words, while controllers fail, leave and join, a link is cut
// and a router is killed. Streams that survive must not lose or repeat a word, and the streams of
// the killed router must end on both sides. `node test/chaos/circuit-drive.ts --circuits 100`

const { values: options } = parseArgs({ options: { circuits: { type: 'string', default: '100' } } })
const circuits = Number(options.circuits)
const far = Math.ceil(circuits * 0.6)
const near = circuits - far
const REROUTED_MS_MAX = 5000
const HALF_CLOSED = 10

await using network = await CircuitNetwork.start()
const { streams, server, fleet } = network
const faults: string[] = []

function check(what: string, isSo: boolean): void {
  if (isSo) return
  faults.push(what)
  console.log(`  NOT: ${what}`)
}

/** Runs an action. @returns the longest time in which a stream received nothing, ms. */
async function phase(title: string, act: () => Promise<void>): Promise<number> {
  console.log(title)
  const before = streams.living
  streams.forgetSilence()
  await act()
  await streams.settled()
  const { living, silenceMs } = streams
  const { lost, doubled } = streams.faults
  console.log(
    `  ${living.length} of ${before.length} streams go on; ${lost} words lost, ${doubled} doubled, ${server.faults} faults at the server; longest silence ${silenceMs} ms`,
  )
  check('no word is lost or doubled', lost + doubled + server.faults === 0)
  return silenceMs
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
const all = (): boolean => streams.living.length === circuits
const shown = async (): Promise<string> =>
  Array.from(await network.circuits(), ([k, count]) => `ctrl${k} ${count}`).join(', ')

await phase(`${circuits} circuits are opened`, async () => {
  await network.open(far, near)
  console.log(`  answered for by ${await shown()}`)
})

await phase('the leader is killed', async () => {
  const leader = await network.leadByOwner()
  console.log(`  ctrl${leader} leads; answered for by ${await shown()}`)
  await network.killController(leader)
  const tookMs = await network.answeredFor(circuits)
  console.log(`  after ${seconds(tookMs)} all are answered for by ${await shown()}`)
  await fleet.start(leader)
  await network.linked(5)
})
check('all circuits go on without the leader', all())

await phase(
  'the controller that answers for them is killed, and starts again at once',
  async () => {
    const owner = await network.owner()
    await network.killController(owner)
    await fleet.start(owner)
    const tookMs = await network.answeredFor(circuits)
    console.log(`  ctrl${owner}; after ${seconds(tookMs)} all are answered for by ${await shown()}`)
    await network.linked(5)
  },
)
check('all circuits go on', all())

await phase('a controller leaves, and another one joins', async () => {
  const leaving = await network.owner()
  await network.replace(leaving, 4)
  const tookMs = await network.answeredFor(circuits)
  console.log(
    `  ctrl${leaving} left; ${seconds(tookMs)} after the join, answered for by ${await shown()}`,
  )
  await network.linked(5)
})
check('all circuits go on without the one that left', all())

const cutMs = await phase('a link is cut, and does not come back', async () => {
  const { cable } = network
  await cable.complete(network.pids('left', 'right'))
  let sockets = 0
  const moved = await network.moved(() => {
    cable.isOut = true
    sockets = cable.cutBusiest(network.pids('left', 'right'))
  })
  console.log(`  it had ${sockets} sockets; ${moved} circuits take another way`)
  check('the link had several sockets', sockets > 1)
})
check(`another way is taken within ${REROUTED_MS_MAX} ms`, cutMs < REROUTED_MS_MAX)
check('all circuits go on over another way', all())

// Some clients have finished sending, and wait for the server.
server.isHolding = true
for (const stream of streams.living.slice(0, HALF_CLOSED)) stream.finish()
await streams.settled()
server.isHolding = false
const killedMs = performance.now()
const endsBefore = server.ends.length
await phase('a router at which circuits end is killed', async () => {
  await network.killRouter('host')
  const tookMs = await network.answeredFor(near)
  console.log(`  the controllers know of the ends after ${seconds(tookMs)}`)
  await until('the streams end on both sides', () =>
    Promise.resolve(streams.living.length === near && server.ends.length - endsBefore === far),
  ).catch((error: unknown) => console.log(String(error)))
})
const ended = streams.all.flatMap(({ end }) => (end === null ? [] : [end]))
const atClientMs = Math.max(0, ...ended.map(({ atMs }) => atMs - killedMs))
const atServer = server.ends.slice(endsBefore)
const atServerMs = Math.max(0, ...atServer.map(({ atMs }) => atMs - killedMs))
console.log(
  `  ${ended.length} streams ended at the client within ${seconds(atClientMs)}, ${ended.filter(({ isReset }) => isReset).length} by a reset; ${atServer.length} at the server within ${seconds(atServerMs)}`,
)
check(
  'the circuits of the router end on both sides',
  ended.length === far && atServer.length === far,
)
check(
  'each client hears that it is no orderly end',
  ended.every(({ isReset }) => isReset),
)
check('the other circuits go on', streams.living.length === near)

await phase('half of the clients close', async () => {
  const beganMs = performance.now()
  const leaving = streams.living.slice(0, Math.floor(near / 2))
  for (const stream of leaving) stream.finish()
  await network.answeredFor(near - leaving.length)
  console.log(`  their ends are listed after ${seconds(performance.now() - beganMs)}`)
})

console.log(faults.length === 0 ? 'all seen' : `${faults.length} faults: ${faults.join('; ')}`)
process.exitCode = faults.length === 0 ? 0 : 1

import { Keyring } from './keyring.ts'
import { drawPlan } from './plan.ts'
import { VirtualLoop } from './virtual-loop.ts'
import { World } from './world.ts'

const keyring = await Keyring.make(['n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7', 'n8', 'n9'])
const first = Number(process.argv[2] ?? 1)
const count = Number(process.argv[3] ?? 1)
const isPrinting = process.argv[4] === 'print'
const log = console.log
for (let seed = first; seed < first + count; seed += 1) {
  const loop = new VirtualLoop()
  loop.install()
  const began = performance.now()
  const world = new World(drawPlan(seed), keyring, loop, isPrinting ? log : undefined)
  try {
    const finished = await world.run()
    log(seed, 'ok', finished.steps, finished.trace, finished.acknowledged, Math.round(finished.virtualMs), `${Math.round(performance.now() - began)} ms`)
  } catch (error) {
    log(seed, 'FAILED', world.steps, Math.round(loop.nowMs), error)
  }
}

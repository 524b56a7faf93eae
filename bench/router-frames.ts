import { encodeFrame } from '../src/channel/frame.ts'
import { heading } from './support/report.ts'
import { dutiesStage } from '../test/fabric/fuzz.ts'
import { settle } from '../test/channel/pipe.ts'
import { heaviestBodies, hostileBodies } from '../test/fabric/heavy-bodies.ts'

// Measures the cost of one frame of an enrolled router for the main thread of a controller: in
// total, and for each step, after which other work runs. `node bench/router-frames.ts`

/** Processor time of this thread; other load on the machine does not increase it. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

console.log(heading('one frame of a router'))
for (const [what, bodies] of [
  ['beyond the bounds', hostileBodies()],
  ['the heaviest within them', heaviestBodies()],
] as const) {
  console.log(what)
  for (const [name, contentType, body] of bodies) {
    let [longestMs, allMs, steps] = [0, 0, 0]
    const timed = <T>(run: () => T): T => {
      const fromMs = cpuMs()
      const result = run()
      const tookMs = cpuMs() - fromMs
      allMs += tookMs
      longestMs = Math.max(longestMs, tookMs)
      return result
    }
    const { stage } = dutiesStage({
      begin: (_caller, work) => {
        const left = timed(work)
        for (; left !== null && timed(() => left.next()).done !== true; steps += 1);
        return null
      },
    })
    const pipe = await stage.dial('er1')
    const heapBefore = process.memoryUsage().heapUsed
    // Delivers the frame in chunks of the size that a socket reads.
    const frame = encodeFrame({ contentType, sequence: 1, headers: new Map(), body })
    for (let at = 0; at < frame.length; at += 65_536) pipe.push(frame.subarray(at, at + 65_536))
    await settle()
    for (let turn = 0; turn < 200; turn += 1) await settle()
    const heapMiB = (process.memoryUsage().heapUsed - heapBefore) / 2 ** 20
    console.log(
      `${name.padEnd(42)} ${allMs.toFixed(1).padStart(8)} ms in all, ${longestMs.toFixed(2).padStart(6)} ms at a stretch, ` +
        `${steps} steps, ${heapMiB.toFixed(0)} MiB`,
    )
    stage.channels.stop()
  }
}
process.exit(0)

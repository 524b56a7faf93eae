import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { isRunning, until } from '../../test/process/support/client.ts'

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: {
      readonly functionName: string
      readonly url: string
      readonly lineNumber: number
    }
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** Environment of a program that writes the profiles of its threads to a folder when it ends. */
export function profiledTo(folder: string): { readonly NODE_OPTIONS: string } {
  return { NODE_OPTIONS: `--cpu-prof --cpu-prof-interval 500 --cpu-prof-dir=${folder}` }
}

/**
 * Stops a profiled process and prints, for each of its threads, the shares of the folders of `src`
 * and the lines that took the most time. `(program)` is time in the kernel and in the engine:
 * sockets, TLS, garbage collection.
 * @param options `operations` is the number by which the time is divided, `operation` its name with
 * an article, `rows` the number of lines.
 */
export async function endAndShow(
  pid: number,
  folder: string,
  options: { readonly operations: number; readonly operation: string; readonly rows: number },
): Promise<void> {
  // SIGTERM stops the process regularly; only then does it write its profile.
  process.kill(pid, 'SIGTERM')
  await until('the process has ended', () => Promise.resolve(!isRunning(pid)))
  const files = readdirSync(folder).filter((name) => name.includes(`.${pid}.`))
  for (const file of files.sort()) {
    show(JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile, options)
  }
}

/**
 * A profile does not contain the name of its thread, so it is determined from the sources that ran.
 */
function threadOf({ nodes }: CpuProfile): string {
  const urls = new Set(nodes.map(({ callFrame }) => callFrame.url))
  const has = (part: string): boolean => [...urls].some((url) => url.includes(part))
  if (has('/src/router/')) return 'router'
  if (has('/src/api/')) return 'main'
  if (has('/src/raft/core.ts')) return 'raft'
  return has('/src/store/log/') ? 'wal' : 'other'
}

function show(
  profile: CpuProfile,
  { operations, operation, rows }: Parameters<typeof endAndShow>[2],
): void {
  const { nodes, samples, timeDeltas } = profile
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]))
  const byRoom = new Map<string, number>()
  const byLine = new Map<string, number>()
  let busyUs = 0
  for (const [at, sample] of samples.entries()) {
    const frame = frames.get(sample)
    const tookUs = timeDeltas[at] ?? 0
    if (frame === undefined || frame.functionName === '(idle)') continue
    busyUs += tookUs
    const room = roomOf(frame.functionName, frame.url)
    byRoom.set(room, (byRoom.get(room) ?? 0) + tookUs)
    if (frame.functionName.startsWith('(')) continue
    const path = frame.url.replace(/^.*\/(src|node_modules)\//, '$1/')
    const place = path === '' ? '(native)' : `${path}:${frame.lineNumber + 1}`
    const line = `${frame.functionName || '(anonymous)'} ${place}`
    byLine.set(line, (byLine.get(line) ?? 0) + tookUs)
  }
  if (busyUs < 100_000) return
  console.log(
    `\n${threadOf(profile)}: ${((busyUs / operations) * 0.001).toFixed(3)} ms ${operation}`,
  )
  for (const [of, count] of [
    [byRoom, 20],
    [byLine, rows],
  ] as const) {
    const shown = [...of].sort(([, a], [, b]) => b - a).slice(0, count)
    for (const [name, us] of shown) {
      const share = (us / busyUs) * 100
      if (share >= 0.5) console.log(`  ${share.toFixed(1).padStart(5)} %  ${name}`)
    }
  }
}

function roomOf(functionName: string, url: string): string {
  const ours = /\/src\/([^/]+)\//.exec(url)
  if (ours !== null) return `src/${ours[1]}`
  const module = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)
  if (module !== null) return module[1] ?? ''
  if (url.includes('/proto/gen/')) return 'proto'
  if (url.startsWith('node:')) return url.split('/').slice(0, 2).join('/').replace('internal/', '')
  return functionName.startsWith('(') ? functionName : 'V8'
}

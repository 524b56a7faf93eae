import { writeFileSync } from 'node:fs'
import { BroadcastChannel, isMainThread } from 'node:worker_threads'

// Loaded into a program with `--expose-gc --import`. On SIGPWR all threads of the program collect
// their garbage. The main thread then writes the number of the request to the file that
// FLOTILLA_COLLECTED names, with `.PID` appended.

interface Message {
  readonly kind: 'begun' | 'collect' | 'collected'
}

const channel = new BroadcastChannel('forced-collection')
channel.unref()
const say = (kind: Message['kind']): void => channel.postMessage({ kind } satisfies Message)
const collect = (): void => {
  // The next round collects the objects that finalizers of the previous round released.
  for (let round = 0; round < 3; round += 1) globalThis.gc?.()
}

if (isMainThread) {
  const path = `${process.env['FLOTILLA_COLLECTED'] ?? ''}.${process.pid}`
  let threads = 0
  let owed = 0
  let requests = 0
  channel.onmessage = (event): void => {
    const { kind } = (event as { readonly data: Message }).data
    if (kind === 'begun') threads += 1
    if (kind !== 'collected') return
    owed -= 1
    if (owed === 0) writeFileSync(path, String(requests))
  }
  process.on('SIGPWR', () => {
    requests += 1
    collect()
    owed = threads
    if (threads === 0) writeFileSync(path, String(requests))
    else say('collect')
  })
} else {
  channel.onmessage = (event): void => {
    if ((event as { readonly data: Message }).data.kind !== 'collect') return
    collect()
    say('collected')
  }
  say('begun')
}

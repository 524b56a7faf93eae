import { parseArgs } from 'node:util'

import {
  chainNames,
  listenerNames,
  ListenersUnderConnections,
} from '../test/process/support/listeners-under-connections.ts'
import { heading } from './support/report.ts'

// Measures the resident memory of a controller and a router after connections have closed. Clients
// present chains of one, two and large certificates, one kind after the other, for each listener.
// All threads run a garbage collection before each measurement. `node bench/connection-memory.ts
// [--connections 20000] [--listener edge]`

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '20000' },
    listener: { type: 'string', multiple: true, default: [...listenerNames] },
  },
})
const LOOKS = 10
const total = Number(values.connections)
const names = listenerNames.filter((name) => values.listener.includes(name))
if (!(total >= LOOKS) || names.length === 0) {
  throw new Error(`--connections: at least ${LOOKS}; --listener: one of ${listenerNames.join()}`)
}

console.log(heading(`MiB resident after each ${total / LOOKS} connections`))
const network = await ListenersUnderConnections.start()
try {
  for (const name of names) {
    const mib: number[] = []
    for (let look = 0; look < LOOKS; look += 1) {
      await network.connect(name, chainNames, Math.floor(total / LOOKS))
      mib.push((await network.residentBytes(name)) / 2 ** 20)
    }
    const [first = NaN] = mib
    const growth = ((mib.at(-1) ?? NaN) / first - 1) * 100
    const shown = mib.map((value) => value.toFixed(0)).join(' ')
    console.log(`${name.padEnd(8)} ${shown}  after the first: ${growth.toFixed(1)} %`)
  }
} finally {
  await network[Symbol.asyncDispose]()
}

import { openSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { createInterface } from 'node:readline'

import { limitConnections } from '../../../src/lib/bounds/connections.ts'
import { clientSocketShare } from '../../../src/lib/bounds/file-descriptors.ts'
import { readProcessMemory, readThreadMemory } from '../../../src/lib/runtime/thread-memory.ts'

// A process that the test starts with few file descriptors. It listens as a controller does, and
// reports after each line of its input whether it can still open a file, and its memory. `fill`
// first uses every remaining descriptor.

const server = createServer((socket) => socket.on('error', () => undefined))
limitConnections(server, {
  connectionsPerSourceMax: 10_000,
  handshakeTimeoutMs: null,
  room: clientSocketShare,
})
server.listen(0, '0.0.0.0', () => {
  console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }))
})
// Loads the module before no descriptors are left, because loading it opens a file.
readProcessMemory()

createInterface(process.stdin).on('line', (line) => {
  const open = (): string => {
    try {
      openSync('/dev/null', 'r')
      return 'opened'
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? ''
    }
  }
  let file = open()
  while (line === 'fill' && file === 'opened') file = open()
  const { heapUsedBytes } = readThreadMemory()
  console.log(JSON.stringify({ file, heapUsedBytes, rss: readProcessMemory().rss }))
})

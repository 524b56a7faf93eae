import { createSocket } from 'node:dgram'
import type { AddressInfo } from 'node:net'

/**
 * A DNS server that answers each query for IPv4 addresses with these, and other queries with none.
 */
export async function nameServer(
  addresses: readonly string[],
): Promise<{ at: string; close: () => void }> {
  const socket = createSocket('udp4')
  socket.on('message', (query, remote) => {
    const end = query.indexOf(0, 12) + 5
    const isIpv4 = query.readUInt16BE(end - 4) === 1
    const answers = (isIpv4 ? addresses : []).map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...address.split('.').map(Number)]),
    )
    const header = Buffer.from(query.subarray(0, 12))
    header.writeUInt16BE(0x8180, 2)
    header.writeUInt16BE(answers.length, 6)
    header.writeUInt32BE(0, 8)
    socket.send(
      Buffer.concat([header, query.subarray(12, end), ...answers]),
      remote.port,
      remote.address,
    )
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const { port } = socket.address() as AddressInfo
  return { at: `127.0.0.1:${port}`, close: () => socket.close() }
}

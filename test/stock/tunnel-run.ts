import type { ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { flotilla } from '../process/support/cluster.ts'
import { freePort } from '../support/ports.ts'
import { inBackground, offerEcho, sendAndReceive } from './echo.ts'
import { StockNetwork } from './network.ts'
import { seen } from './stock-router.ts'

// `flotilla tunnel run` hosts and dials through an OpenZiti edge router, with OpenZiti hosts and
// clients at the other end. The OpenZiti program enrolls its identities. `node
// test/stock/tunnel-run.ts --binary PATH`

const { values: options } = parseArgs({ options: { binary: { type: 'string' } } })
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of the router family, so there is nothing to try')
  process.exit(0)
}
const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const data = randomBytes(3_000_000)
const server = createServer({ allowHalfOpen: true }, (socket) => {
  socket.on('error', () => undefined).pipe(socket)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const port = await freePort()
const children: ChildProcess[] = []
const logs: string[] = []
await using network = await StockNetwork.start(binary, ['gate'])
try {
  for (const k of [1, 2, 3]) await seen(`the router online on ctrl${k}`, () => network.areOnline(k))
  await offerEcho(network, { hosts: 'gate', users: 'gate' })
  await hostedBy(network)
  const { folder } = network.cluster
  const tunnel = (name: string, file: string, ...args: readonly string[]): ChildProcess => {
    chmodSync(file, 0o600)
    const log = join(folder, `${name}.log`)
    logs.push(log)
    const child = inBackground(flotilla, ['tunnel', 'run', '--identity', file, ...args], log)
    children.push(child)
    return child
  }
  const terminators = async (): Promise<number> => {
    const { body } = await network.client(2).request('GET', '/edge/management/v1/terminators')
    return (body.data as unknown[]).length
  }
  const { file: hostFile } = await network.addClient('host', 'hosts')
  const { file: userFile } = await network.addClient('user', 'users')
  const { file: stockHostFile } = await network.addClient('stock host', 'hosts')
  const host = tunnel('host', hostFile)
  tunnel('user', userFile, '--proxy', `echo:${port}`)
  await seen('a terminator of our tunnel', async () => (await terminators()) === 1)
  await seen('bytes come back between two tunnels of ours, and end', async () => {
    return digest(await exchanged()) === digest(data)
  })
  await seen('bytes come back to a client of the family from a tunnel of ours', async () => {
    const { bytes } = await sendAndReceive(binary, userFile, data.subarray(0, 500_000))
    return digest(bytes) === digest(data.subarray(0, 500_000))
  })
  host.kill('SIGTERM')
  await seen('no terminator is left once it has stopped', async () => (await terminators()) === 0)
  const log = join(folder, 'stock-host.log')
  children.push(
    inBackground(binary, ['demo', 'echo-server', '-i', stockHostFile, '-s', 'echo', '-v'], log),
  )
  await seen('a terminator of a host of the family', async () => (await terminators()) === 1)
  await seen('a word comes back to a tunnel of ours from a host of the family', async () => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.on('error', () => undefined)
    socket.setTimeout(5000, () => socket.destroy())
    socket.write('a word\n')
    const [read] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [unknown]
    socket.destroy()
    return Buffer.isBuffer(read) && read.toString() === 'a word\n'
  })
  console.log('all seen')
} catch (error) {
  for (const log of logs) console.log(readFileSync(log, 'utf8').slice(-4000))
  throw error
} finally {
  for (const child of children) child.kill('SIGKILL')
  server.close()
}

async function hostedBy(network: StockNetwork): Promise<void> {
  const query = new URLSearchParams({ filter: 'name="host.v1"' })
  const asked = await network.client(1).request('GET', `/edge/management/v1/config-types?${query}`)
  const config = await network.post('configs', {
    name: 'echo',
    configTypeId: (asked.body.data as { id: string }[])[0]?.id ?? '',
    data: { protocol: 'tcp', address: '127.0.0.1', port: (server.address() as AddressInfo).port },
  })
  const found = await network.client(1).request('GET', '/edge/management/v1/services')
  const [service] = found.body.data as { id: string }[]
  await network.manage('PATCH', `services/${service?.id}`, { configs: [config] })
}

async function exchanged(): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const parts: Buffer[] = []
  socket.setTimeout(15_000, () => socket.destroy())
  socket.on('error', () => undefined)
  socket.on('data', (part: Buffer) => parts.push(part))
  socket.end(data)
  await Promise.race([once(socket, 'end'), once(socket, 'close')])
  socket.destroy()
  return Buffer.concat(parts)
}

import type { ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { inBackground, offerEcho, sendAndReceive } from './echo.ts'
import { StockNetwork } from './network.ts'
import { seen } from './stock-router.ts'

// An OpenZiti host and client reach each other through routers: one for each, or one for both.
// `node test/stock/carry.ts --binary PATH [--bytes N] [--routers
// ours|stock|ours,stock|stock,ours|stock,stock|ours,ours]`

const { values: options } = parseArgs({
  options: {
    binary: { type: 'string' },
    bytes: { type: 'string', default: '4000000' },
    routers: { type: 'string', default: 'ours' },
  },
})
const kinds = options.routers.split(',')
if (kinds.length > 2 || !kinds.every((kind) => kind === 'ours' || kind === 'stock')) {
  console.error('--routers takes one or two of ours and stock, as ours,stock')
  process.exit(2)
}
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of the router family, so there is nothing to try')
  process.exit(0)
}
await using network = await StockNetwork.start(binary, [])
const names = kinds.map((kind, at) => `${kind}${at + 1}`)
for (const [at, name] of names.entries()) {
  if (kinds[at] === 'ours') await network.addOurRouter(name)
  else await network.addRouter(name)
}
const [atHost = '', atUser = atHost] = names
const { folder } = network.cluster
const children: ChildProcess[] = []
try {
  for (const k of [1, 2, 3]) await seen(`the router online on ctrl${k}`, () => network.areOnline(k))
  await seen('where clients connect to them', async () => {
    const details = await Promise.all(
      network.routerIds.map((id) => network.detail(1, `edge-routers/${id}`)),
    )
    return details.every(
      ({ supportedProtocols }) => (supportedProtocols as { tls?: string }).tls !== undefined,
    )
  })
  await offerEcho(network, { hosts: atHost, users: atUser })
  const { file: host } = await network.addClient('host', 'hosts')
  const { id: userId, file: user } = await network.addClient('user', 'users')
  const log = join(folder, 'host.log')
  children.push(inBackground(binary, ['demo', 'echo-server', '-i', host, '-s', 'echo', '-v'], log))
  await seen('a terminator of the host', async () => {
    const { body } = await network.client(2).request('GET', '/edge/management/v1/terminators')
    return (body.data as unknown[]).length > 0
  })
  await seen('the host shown as connected to an edge router', async () => {
    const { body } = await network
      .client(2)
      .request('GET', '/edge/management/v1/identities?limit=100')
    const shown = body.data as { name: string; hasEdgeRouterConnection: boolean }[]
    return shown.find(({ name }) => name === 'host')?.hasEdgeRouterConnection === true
  })
  await comesBack('a word', Buffer.from('a word of eighteen letters\n'))
  await comesBack(`${options.bytes} bytes`, randomBytes(Number(options.bytes)))
  await seen('no circuit is left', async () => {
    const counts = await Promise.all([1, 2, 3].map((k) => network.fabric(k, 'circuits')))
    return counts.every((circuits) => circuits.length === 0)
  })
  await network.manage('DELETE', `identities/${userId}`)
  await seen('a client that was deleted is refused', async () => {
    const { bytes } = await sendAndReceive(binary, user, Buffer.from('more\n'))
    return bytes.length === 0
  })
  for (const child of children) child.kill('SIGKILL')
  await seen('no terminator is left once the host is gone', async () => {
    const { body } = await network.client(2).request('GET', '/edge/management/v1/terminators')
    return (body.data as unknown[]).length === 0
  })
  console.log('all seen')

  async function comesBack(what: string, bytes: Buffer): Promise<void> {
    const digest = (of: Buffer): string => createHash('sha256').update(of).digest('hex')
    await seen(`${what} comes back through ${options.routers}`, async () => {
      const back = await sendAndReceive(binary ?? '', user, bytes)
      const isSame = digest(back.bytes) === digest(bytes)
      if (!isSame) console.log(`    ${back.bytes.length} of ${bytes.length}: ${back.errors}`)
      return isSame
    })
  }
} catch (error) {
  for (const router of network.ourRouters) {
    console.log((await router.logText()).split('\n').slice(-40).join('\n'))
  }
  throw error
} finally {
  for (const child of children) child.kill('SIGKILL')
}

import type { ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { inBackground, offerEcho, sendAndReceive } from './echo.ts'
import { StockNetwork } from './network.ts'
import { seen } from './stock-router.ts'

// An OpenZiti host and an OpenZiti client that reach one of our routers only by WebSockets. `node
// test/stock/web-sockets.ts --binary PATH --mb 100`

const { values: options } = parseArgs({
  options: { binary: { type: 'string' }, mb: { type: 'string', default: '100' } },
})
const { binary, mb } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of OpenZiti, so there is nothing to try')
  process.exit(0)
}
await using network = await StockNetwork.start(binary, [])
const router = await network.addOurRouter('web', { edgeProtocol: 'wss' })
const [id = ''] = network.routerIds
const protocols = JSON.stringify({ wss: `wss://127.0.0.1:${router.options.edgePort}` })
for (const k of [1, 2, 3]) {
  await seen(`the router reports ${protocols} on ctrl${k}`, async () => {
    const { supportedProtocols } = await network.detail(k, `edge-routers/${id}`)
    return JSON.stringify(supportedProtocols) === protocols
  })
}
await offerEcho(network, { hosts: 'web', users: 'web' })
const { file: host } = await network.addClient('host', 'hosts')
const { file: user } = await network.addClient('user', 'users')
const children: ChildProcess[] = []
try {
  children.push(
    inBackground(
      binary,
      ['demo', 'echo-server', '-i', host, '-s', 'echo'],
      join(network.cluster.folder, 'host.log'),
    ),
  )
  await seen('a terminator of the host', async () => {
    const { body } = await network.client(1).request('GET', '/edge/management/v1/terminators')
    return (body.data as unknown[]).length > 0
  })
  await echoes(Buffer.from('a word\n'))
  await echoes(randomBytes(Number(mb) * 1_000_000))
  console.log('all seen')
} finally {
  for (const child of children) child.kill('SIGKILL')
}

async function echoes(sent: Buffer): Promise<void> {
  const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
  await seen(`${sent.length} bytes come back`, async () => {
    const startMs = performance.now()
    const { bytes, errors } = await sendAndReceive(binary ?? '', user, sent)
    const isBack = digest(bytes) === digest(sent)
    const seconds = (performance.now() - startMs) / 1000
    console.log(isBack ? `    in ${seconds.toFixed(1)} s` : `    ${bytes.length}: ${errors}`)
    return isBack
  })
}

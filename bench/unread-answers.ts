import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type TLSSocket } from 'node:tls'

import { TestCluster } from '../test/process/support/cluster.ts'
import { LeanClient } from './support/lean-client.ts'
import { heading, percentile } from './support/report.ts'

// Measures the memory cost of clients that do not read responses: the resident memory of an idle
// controller, and with connections that request lists and documents and do not read the responses.
// Also measures the latency of another client. `node bench/unread-answers.ts`

const floods = {
  '300 connections, 60 pipelined lists of 50 KB each': { connections: 300, requests: 60 },
  '300 connections, 15 pipelined lists of 50 KB each': { connections: 300, requests: 15 },
  '1,500 connections, 15 lists of 500 KB each': { connections: 1500, requests: 15 },
} as const
type Kind = keyof typeof floods

interface Flood {
  readonly kind: Kind
  readonly url: string
  readonly token: string
}

const [first = '', given = ''] = process.argv.slice(2)
if (first === 'flood') await flood(JSON.parse(given) as Flood)
else await main()

/** Opens connections that send requests, read nothing, and reconnect when they are closed. */
async function flood({ kind, url, token }: Flood): Promise<void> {
  const { connections, requests } = floods[kind]
  const { hostname, port } = new URL(url)
  const limit = kind.includes('500 KB') ? 500 : 50
  const request =
    `GET /edge/management/v1/services?limit=${limit} HTTP/1.1\r\n` +
    `host: x\r\nnet-session: ${token}\r\n\r\n`
  const open = new Set<TLSSocket>()
  let opened = 0
  const timer = setInterval(() => {
    for (let at = 0; at < 10 && open.size < connections; at += 1) {
      opened += 1
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
      open.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => open.delete(socket))
      socket.once('secureConnect', () => socket.write(request.repeat(requests)))
    }
  }, 20)
  process.stdin.once('end', () => process.exit())
  console.log('flooding')
  await once(process.stdin, 'data')
  clearInterval(timer)
  console.log(JSON.stringify({ opened, open: open.size }))
  process.exit()
}

async function main(): Promise<void> {
  console.log(heading('Memory beside clients that read nothing'))
  await using cluster = await TestCluster.start({ nodes: 1 })
  const { admin } = cluster
  const url = admin.controllers[0] ?? ''
  const client = await LeanClient.connect(url, admin.ca)
  const logIn = '/edge/management/v1/authenticate?method=password'
  const credential = JSON.stringify({ username: admin.username, password: admin.password })
  const answer = await client.request('POST', logIn, null, credential)
  const { token } = (JSON.parse(answer.body) as { data: { token: string } }).data
  for (let at = 0; at < 500; at += 1) {
    const tags = { text: 'x'.repeat(500) }
    const body = JSON.stringify({ name: `service ${at}`, encryptionRequired: true, tags })
    const { status } = await client.request('POST', '/edge/management/v1/services', token, body)
    if (status !== 201) throw new Error(`status ${status}`)
  }
  const pid = cluster.pid(1) ?? 0
  console.log(`  idle: ${residentMiB(pid)} MiB`)
  for (const kind of Object.keys(floods) as Kind[]) {
    const what = JSON.stringify({ kind, url, token })
    const args = ['-n', '19', process.execPath, import.meta.filename, 'flood', what]
    const child = spawn('nice', args, { stdio: ['pipe', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    const latencies: number[] = []
    let peak = 0
    const end = performance.now() + 25_000
    while (performance.now() < end) {
      const from = performance.now()
      await client.request('GET', '/edge/management/v1/version', null)
      latencies.push(performance.now() - from)
      peak = Math.max(peak, residentMiB(pid))
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    child.stdin.write('end')
    const [counts] = (await once(child.stdout, 'data')) as [Buffer]
    const [p50, p99] = [0.5, 0.99].map((part) => percentile(latencies, part).toFixed(1))
    console.log(`  ${kind}: ${peak} MiB at most; another client p50 ${p50} ms, p99 ${p99} ms`)
    console.log(`    ${String(counts).trim()}`)
    await new Promise((resolve) => setTimeout(resolve, 3000))
  }
  client.close()
}

function residentMiB(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Math.round(Number(line?.[1] ?? 0) / 1024)
}

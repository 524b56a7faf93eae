import { readFileSync } from 'node:fs'
import https from 'node:https'
import { beforeAll, expect, test } from 'vitest'

import { type Client, until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'
import { PATIENCE_MS } from '../../support/patience.ts'

// Goal: transferring leadership and stopping the leader fail no request. Method: three real
// processes and twelve clients that write over kept-alive connections, half of them without a
// pause; three transfers, then SIGTERM to the leader. The only permitted error is a connection that
// a client could not open; the client then sends the request to another controller.

const WRITERS = 12

let cluster: TestCluster
beforeAll(() => {
  cluster = sharedCluster()
})

class NotConnected extends Error {}

/** Writes over one connection at a time, which it keeps open until the controller closes it. */
class Writer {
  readonly #agent: https.Agent
  readonly #urls: readonly string[]
  readonly #tokens: readonly string[]
  #at: number
  answers = 0
  moves = 0
  slowestMs = 0
  readonly failures: string[] = []

  constructor(urls: readonly string[], tokens: readonly string[], ca: string, at: number) {
    this.#agent = new https.Agent({ keepAlive: true, ca: readFileSync(ca), maxSockets: 1 })
    this.#urls = urls
    this.#tokens = tokens
    this.#at = at
  }

  async write(name: string): Promise<void> {
    const fromMs = performance.now()
    for (let attempt = 0; attempt <= this.#urls.length; attempt += 1) {
      try {
        const { status, text } = await this.#post(name)
        if (status !== 201) this.failures.push(`${name}: ${status} ${text}`)
        this.answers += 1
        this.slowestMs = Math.max(this.slowestMs, performance.now() - fromMs)
        return
      } catch (error) {
        if (!(error instanceof NotConnected)) {
          this.failures.push(`${name}: ${String(error)}`)
          return
        }
        this.#at += 1
        this.moves += 1
      }
    }
    this.failures.push(`${name}: no controller could be reached`)
  }

  close(): void {
    this.#agent.destroy()
  }

  /** @throws {NotConnected} when nothing was sent, because no connection could be opened. */
  #post(name: string): Promise<{ status: number; text: string }> {
    const at = this.#at % this.#urls.length
    const payload = JSON.stringify({ name, encryptionRequired: false })
    let isConnected = false
    return new Promise((resolve, reject) => {
      const request = https.request(
        `${this.#urls[at] ?? ''}/edge/management/v1/services`,
        {
          method: 'POST',
          agent: this.#agent,
          timeout: PATIENCE_MS,
          headers: {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(payload),
            'net-session': this.#tokens[at] ?? '',
          },
        },
        (response) => {
          let text = ''
          response.on('data', (chunk: Buffer) => (text += chunk.toString()))
          response.on('error', reject)
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
        },
      )
      request.on('socket', (socket) => {
        if (request.reusedSocket) isConnected = true
        else socket.once('secureConnect', () => (isConnected = true))
      })
      request.on('timeout', () => request.destroy(new Error('timed out')))
      request.on('error', (error) => {
        reject(isConnected ? error : new NotConnected(error.message))
      })
      request.end(payload)
    })
  }
}

async function transfer(from: Client, to: number): Promise<void> {
  const answer = await from.request('POST', '/fabric/v1/cluster/transfer-leadership', {
    body: { newLeaderId: cluster.id(to) },
  })
  expect(answer.status, answer.text).toBe(200)
  await until(`${cluster.id(to)} leads`, async () => (await cluster.leader()) === to)
}

test('three leadership transfers and a SIGTERM of the leader under load cause no failed request', async () => {
  const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  const tokens = clients.map(({ token }) => token ?? '')
  const { controllers, ca } = cluster.admin
  const writers = Array.from(
    { length: WRITERS },
    (_, at) => new Writer(controllers, tokens, ca, at),
  )
  const all = (): number => writers.reduce((sum, { answers }) => sum + answers, 0)
  const failures = (): string[] => writers.flatMap((writer) => writer.failures)
  const flowing = async (): Promise<void> => {
    const before = all()
    await until('writes flow', () => Promise.resolve(all() > before + 20 * WRITERS))
  }
  const countBefore = await serviceCount(clients[0])
  let isOver = false
  const loops = writers.map(async (writer, at) => {
    for (let n = 0; !isOver && writer.failures.length === 0; n += 1) {
      await writer.write(`h-${at}-${n}`)
      // A stop must not cut a connection that is briefly idle, so half of the clients pause.
      if (at % 2 === 0) await new Promise((resolve) => setTimeout(resolve, (n * 7) % 100))
    }
  })
  await flowing()
  const slowest = (): number => Math.round(Math.max(...writers.map(({ slowestMs }) => slowestMs)))
  const slowestMs = { before: slowest(), transfers: 0, stop: 0 }
  for (const writer of writers) writer.slowestMs = 0
  for (let round = 0; round < 3; round += 1) {
    const leader = await cluster.leader()
    const from = clients[leader - 1]
    if (from === undefined) throw new Error('the leader has a client')
    await transfer(from, (leader % 3) + 1)
    await flowing()
    expect(failures(), `after transfer ${round + 1}`).toEqual([])
  }

  slowestMs.transfers = slowest()
  for (const writer of writers) writer.slowestMs = 0
  const leader = await cluster.leader()
  const termBefore = await term(leader)
  cluster.kill(leader, 'SIGTERM')
  await until('the leader has ended', () => Promise.resolve(cluster.pid(leader) === null))
  await flowing()
  slowestMs.stop = slowest()
  isOver = true
  await Promise.all(loops)
  for (const writer of writers) writer.close()

  expect(failures(), 'after SIGTERM').toEqual([])
  // The clients of the former leader continued at other controllers, and the transfer caused only
  // its own election.
  expect(writers.filter(({ moves }) => moves > 0).length).toBeGreaterThan(0)
  const survivor = (leader % 3) + 1
  expect(await term(survivor)).toBe(termBefore + 1)
  expect(await serviceCount(clients[survivor - 1])).toBe(countBefore + all())
  process.stdout.write(
    `handover: ${all()} writes, slowest ${slowestMs.before} ms before, ${slowestMs.transfers} ms with transfers, ${slowestMs.stop} ms with the stop\n`,
  )
  cluster.run(leader)
})

async function serviceCount(client: Client | undefined): Promise<number> {
  const listed = await client?.request('GET', '/edge/management/v1/services?limit=1')
  const { pagination } = listed?.body.meta as { pagination: { totalCount: number } }
  return pagination.totalCount
}

async function term(k: number): Promise<number> {
  const members = await cluster.status(k)
  return members.find(({ id }) => id === cluster.id(k))?.term ?? 0
}

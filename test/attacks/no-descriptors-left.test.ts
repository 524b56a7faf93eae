import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, expect, test } from 'vitest'

import { clientSocketsMax, fileDescriptorsMax } from '../../src/lib/bounds/file-descriptors.ts'

// The attack: an attacker without credentials opens so many connections that the controller has no
// file descriptor left. It can then open no log segment and accept no peer, and a thread that reads
// its memory usage ends with EMFILE.

const DESCRIPTORS = 200

interface Said {
  readonly port?: number
  readonly file?: string
  readonly heapUsedBytes?: number
  readonly rss?: number
}

const child = spawn('bash', [
  '-c',
  `ulimit -n ${DESCRIPTORS}; exec "$0" "$@"`,
  process.execPath,
  join(import.meta.dirname, 'support/few-descriptors.ts'),
])
let errors = ''
child.stderr.on('data', (chunk: Buffer) => (errors += String(chunk)))
const ended = once(child, 'exit')
const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
afterAll(async () => {
  child.kill()
  await ended
})

async function said(): Promise<Said> {
  const { value } = await lines.next()
  if (value === undefined) throw new Error(`the process has ended: ${errors}`)
  return JSON.parse(value) as Said
}

async function asked(what: string): Promise<Said> {
  child.stdin.write(`${what}\n`)
  return await said()
}

test('connections from many sources leave some file descriptors free, and a process without free descriptors continues to run', async () => {
  const { port = 0 } = await said()
  const sockets = Array.from({ length: DESCRIPTORS * 2 }, (_, at) =>
    connect({ host: '127.0.0.1', port, localAddress: `127.0.2.${1 + (at % 100)}` })
      .on('error', () => undefined)
      .resume(),
  )
  await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => undefined)))
  const held = (): number => sockets.filter(({ destroyed }) => !destroyed).length
  await expect.poll(held).toBeLessThanOrEqual(clientSocketsMax(DESCRIPTORS))
  expect(await asked('look')).toMatchObject({ file: 'opened' })

  const { file, heapUsedBytes = 0, rss = 0 } = await asked('fill')
  expect(file).toBe('EMFILE')
  expect(heapUsedBytes).toBeGreaterThan(0)
  expect(rss).toBeGreaterThan(0)
  for (const socket of sockets) socket.destroy()
})

test('client connections may use only a share of all file descriptors, however few descriptors the process has', () => {
  expect(fileDescriptorsMax()).toBeGreaterThan(0)
  expect([64, 1024, 65_536].map(clientSocketsMax)).toEqual([32, 512, 64_512])
})

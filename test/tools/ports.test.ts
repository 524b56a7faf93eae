import { createServer } from 'node:net'
import { expect, test } from 'vitest'

import { freePort, freePortBlock } from '../support/ports.ts'

// Goal: a process with many tests always gets a free port, and does not get the same port twice in
// a short time.

const portsOf = (base: number): number[] =>
  [0, 100, 200, 300, 400].flatMap((row) => [0, 1, 2].map((at) => base + row + at))

test('a block of test ports does not contain the test ports that are requested after it', async () => {
  for (let turn = 0; turn < 80; turn += 1) {
    const [block, ...singles] = [await freePortBlock(), await freePort(), await freePort()]
    expect(portsOf(block)).not.toContain(singles[0])
    expect(portsOf(block)).not.toContain(singles[1])
  }
})

test('a test port is not used again while it is among the latest ports of its kind', async () => {
  const singles: number[] = []
  for (let drawn = 0; drawn < 250; drawn += 1) singles.push(await freePort())
  expect(new Set(singles).size).toBe(singles.length)
  const blocks: number[] = []
  for (let drawn = 0; drawn < 15; drawn += 1) blocks.push(...portsOf(await freePortBlock()))
  expect(new Set(blocks).size).toBe(blocks.length)
})

test('a test port that another program uses is skipped', async () => {
  const before = await freePortBlock(1)
  const taken = createServer().listen(before + 1, '127.0.0.1')
  await new Promise((listening) => taken.once('listening', listening))
  expect(await freePortBlock(1)).not.toBe(before + 1)
  await new Promise((closed) => taken.close(closed))
})

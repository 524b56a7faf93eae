// Goal: the invariants are true after every step under lost, repeated, delayed and reordered
// messages, partitions, crashes, damage, wiped disks and membership changes. Once the faults stop,
// the cluster serves through every controller and becomes quiet. Method: whole controllers in
// virtual time, each seed another run; `make sim SEED=n` repeats one exactly.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const MAIN = join(import.meta.dirname, 'main.ts')
const WAN = join(import.meta.dirname, 'wan.ts')
const run = promisify(execFile)

async function simulate(flags: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { stdout } = await run(process.execPath, [MAIN, ...flags], {
    env: { ...process.env, ...env },
    maxBuffer: 64 * 1024 * 1024,
  })
  return stdout
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? ''
}

test('the invariants of a simulated cluster hold under faults, and afterwards the cluster serves requests and is stable (6 seeds)', async () => {
  const text = await simulate(['--first', '1', '--seeds', '6', '--workers', '2'])
  console.log(text)
  expect(text).toMatch(/simulated 6 seeds .* 0 failed, \d{3,} writes acknowledged/)
  expect(lastLine(text)).toMatch(/^trace [0-9a-f]{16}$/)
}, 0)

test('the same seed repeats the simulation of a cluster step by step with any time zone, language, heap size and number of processes', async () => {
  const one = await simulate(['--first', '7', '--seeds', '2', '--workers', '1'], {
    TZ: 'Asia/Tokyo',
  })
  const other = await simulate(['--first', '7', '--seeds', '2', '--workers', '2'], {
    TZ: 'America/New_York',
    LANG: 'tr_TR.UTF-8',
    NODE_OPTIONS: '--max-old-space-size=200',
  })
  expect(lastLine(other)).toBe(lastLine(one))
  const another = await simulate(['--first', '8', '--seeds', '1', '--workers', '1'])
  expect(lastLine(another)).not.toBe(lastLine(one))
}, 0)

test('with 200 ms of delay each way and 5 % loss, the WAN profile causes no election after the first in ten minutes, and the default profile causes at least one in a minute', async () => {
  const wan = async (...words: readonly string[]): Promise<Record<string, number>> => {
    const { stdout } = await run(process.execPath, [WAN, ...words])
    console.log(stdout)
    return JSON.parse(stdout) as Record<string, number>
  }
  const [wide, local] = [await wan('wan', '10'), await wan('lan', '1')]
  expect(wide['elections']).toBe(1)
  // The time of three round trips.
  expect(wide['writeMs']).toBeLessThan(1200)
  expect(local['elections']).toBeGreaterThan(1)
}, 0)

test('the simulation refuses an argument that is not a number, and names the option', async () => {
  const wrong = simulate(['--seeds', 'many'])
  await expect(wrong).rejects.toMatchObject({ code: 2 })
  await expect(wrong).rejects.toThrow(/--seeds takes a number/)
})

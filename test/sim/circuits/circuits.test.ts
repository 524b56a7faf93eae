// Goal: under faults of routers, links, channels and controllers, surviving circuits deliver each
// byte once and in order. Once the faults stop, every circuit has an owner, and every route belongs
// to a circuit. Method: whole controllers with routers in virtual time, each seed another run;
// `make sim CIRCUITS=1 SEED=n` repeats one.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const MAIN = join(import.meta.dirname, '..', 'main.ts')

async function simulate(flags: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, '--circuits', ...flags], {
    env: { ...process.env, ...env },
    maxBuffer: 64 * 1024 * 1024,
  })
  return stdout
}

function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? ''
}

test('simulated circuits deliver all data, have one owner, and are gone after they have ended (8 seeds)', async () => {
  const text = await simulate(['--first', '1', '--seeds', '8', '--workers', '2'])
  expect(text).toMatch(/simulated 8 seeds .* 0 failed/)
  for (const kind of ['circuit rerouted', 'circuit survived', 'frame lost', 'router crash']) {
    expect(Number(new RegExp(`${kind} (\\d+)`).exec(text)?.[1]), kind).toBeGreaterThan(1)
  }
}, 0)

test('the simulation of circuits is exactly repeated by the same seed, in any process', async () => {
  const one = await simulate(['--first', '5', '--seeds', '2', '--workers', '1'])
  const other = await simulate(['--first', '5', '--seeds', '2', '--workers', '2'], {
    TZ: 'America/New_York',
    LANG: 'tr_TR.UTF-8',
  })
  expect(lastLine(one)).toMatch(/^trace [0-9a-f]{16}$/)
  expect(lastLine(other)).toBe(lastLine(one))
}, 0)

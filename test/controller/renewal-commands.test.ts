import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'

import {
  RenewalCommands,
  type RenewedByCommand,
} from '../../src/controller/certificates/renewal-commands.ts'
import { alarmTable } from '../../src/ports/alarms.ts'
import { temporaryFolder } from '../store/support/folders.ts'
import { eventually } from '../support/eventually.ts'

// Goal: a program of the operator renews a certificate in time; whatever it does wrong is told and tried again, and costs nothing.

const MINUTE_MS = 60_000
const START_MS = 30_000

let dir = ''
let nowMs = 0
let monotonicMs = 0
let renewAtMs = 1000
let inForce: string | null = 'first'
let alarms: string[] = []
let errors: { readonly fields: Record<string, unknown>; readonly message: string }[] = []

beforeEach(() => {
  dir = temporaryFolder()
  nowMs = 0
  monotonicMs = 0
  renewAtMs = 1000
  inForce = 'first'
  alarms = []
  errors = []
})

const path = (name: string): string => join(dir, name)

/** A program that notes with what and in which environment it was run, and ends as it is told. */
function program(lines: string): string {
  writeFileSync(
    path('renew'),
    `#!/bin/sh\nprintf '%s\\n' "$@" >> '${path('words')}'\nenv > '${path('env')}'\n${lines}\n`,
  )
  chmodSync(path('renew'), 0o755)
  return path('renew')
}

function certificate(
  command: readonly string[],
  changes: Partial<RenewedByCommand> = {},
): RenewedByCommand {
  return {
    cert: path('cert.pem'),
    key: path('key.pem'),
    command,
    renewAtMs: () => renewAtMs,
    inForce: () => inForce,
    // As the files are read again: what is there is in force from then on.
    reload: () => {
      if (existsSync(path('cert.pem'))) {
        inForce = readFileSync(path('cert.pem'), 'utf8')
        renewAtMs = nowMs + 1000
      }
      return Promise.resolve()
    },
    ...changes,
  }
}

function commandsOf(one: RenewedByCommand, timeoutMs = 20_000): RenewalCommands {
  return new RenewalCommands({
    certificates: [one],
    timeoutMs,
    environment: {
      PATH: process.env['PATH'],
      HOME: dir,
      FLOTILLA_SECRET: 'hunter2',
      NODE_OPTIONS: '--bad',
    },
    alarms: {
      raise: (code, facts) => alarms.push(`${code} ${alarmTable[code].text(facts as never)}`),
      clear: (code) => alarms.push(`clear ${code}`),
    },
    clock: { nowMs: () => nowMs, monotonicMs: () => monotonicMs },
    log: {
      info: () => undefined,
      warn: () => undefined,
      error: (fields: Record<string, unknown>, message: string) => errors.push({ fields, message }),
    } as never,
  })
}

function pass(ms: number): void {
  nowMs += ms
  monotonicMs += ms
}

const runs = (): number =>
  existsSync(path('words')) ? readFileSync(path('words'), 'utf8').split('\n').length - 1 : 0

test('is run when a certificate is due and not before, with the two files as its last arguments', async () => {
  const commands = commandsOf(
    certificate([program(`printf second > '${path('cert.pem')}'`), '--force', '$(id); x']),
  )
  pass(START_MS)
  nowMs = 999
  await commands.look()
  expect(runs()).toBe(0)
  nowMs = 1000
  await commands.look()
  const words = ['--force', '$(id); x', path('cert.pem'), path('key.pem'), '']
  expect(readFileSync(path('words'), 'utf8').split('\n')).toEqual(words)
  expect([inForce, errors]).toEqual(['second', []])
  expect(alarms).toEqual(['clear CERTIFICATE_RENEWAL_FAILED'])
})

test('is not run in the first half minute, so that a process that ends again and again does not wear an authority out', async () => {
  const commands = commandsOf(certificate([program('')]))
  nowMs = 5000
  monotonicMs = START_MS - 1
  await commands.look()
  expect(runs()).toBe(0)
})

test('gets nothing of the environment of the controller but what programs need', async () => {
  const commands = commandsOf(certificate([program(`printf second > '${path('cert.pem')}'`)]))
  pass(START_MS)
  await commands.look()
  const env = readFileSync(path('env'), 'utf8')
  expect(env).toContain(`HOME=${dir}`)
  expect(env).not.toMatch(/FLOTILLA|hunter2|NODE_OPTIONS/)
})

test('that fails raises an alarm, is tried again after ever longer waits, and clears it when it succeeds', async () => {
  const commands = commandsOf(
    certificate([program('echo "no answer from the authority" >&2; exit 3')]),
  )
  pass(START_MS)
  await commands.look()
  expect(alarms).toEqual([
    expect.stringMatching(
      /^CERTIFICATE_RENEWAL_FAILED .*cert\.pem was not renewed: its command ended with code 3/,
    ),
  ])
  expect(errors[0]?.message).toContain('next attempt in 5 minutes')
  expect(errors[0]?.fields).toMatchObject({ stderr: 'no answer from the authority' })
  for (const minutes of [5, 10, 20, 40]) {
    const before = runs()
    pass(minutes * MINUTE_MS - 1)
    await commands.look()
    expect(runs(), `not before ${minutes} minutes`).toBe(before)
    pass(1)
    await commands.look()
    expect(runs()).toBe(before + 2)
  }
  program(`printf second > '${path('cert.pem')}'`)
  pass(80 * MINUTE_MS)
  await commands.look()
  expect(alarms.at(-1)).toBe('clear CERTIFICATE_RENEWAL_FAILED')
})

test('that cannot be run, or takes too long, is a failure as well, and what it started ends with it', async () => {
  const none = commandsOf(certificate([path('nowhere')]))
  pass(START_MS)
  await none.look()
  expect(errors.at(-1)?.message).toContain('could not be run')
  const slow = commandsOf(
    certificate([program(`sleep 600 & echo $! > '${path('pid')}'; wait`)]),
    1000,
  )
  pass(START_MS)
  await slow.look()
  expect(errors.at(-1)?.message).toContain('took longer than 1000 ms and was killed')
  const pid = Number(readFileSync(path('pid'), 'utf8'))
  await eventually(() => expect(() => process.kill(pid, 0)).toThrow())
})

test('that leaves files which are not accepted has failed, and what was in force goes on', async () => {
  const reload = (): Promise<void> =>
    Promise.reject(new Error('the private key does not belong to the certificate'))
  const commands = commandsOf(certificate([program('')], { reload }))
  pass(START_MS)
  await commands.look()
  expect(alarms[0]).toContain('left files that were rejected: the private key does not belong')
  expect(inForce).toBe('first')
})

test('that finds nothing to do is asked again, and is an alarm the third time only', async () => {
  const commands = commandsOf(certificate([program('')]))
  pass(START_MS)
  await commands.look()
  pass(5 * MINUTE_MS)
  await commands.look()
  expect([errors.length, alarms]).toEqual([2, []])
  pass(10 * MINUTE_MS)
  await commands.look()
  expect(alarms).toEqual([expect.stringContaining('left the certificate as it was')])
  // Somebody renewed it by hand.
  renewAtMs = nowMs + 1000
  await commands.look()
  expect(alarms.at(-1)).toBe('clear CERTIFICATE_RENEWAL_FAILED')
})

test('may have the controller read the files again by itself, as hooks of ACME clients do', async () => {
  const one = certificate([
    program(`touch '${path('asked')}'; until test -e '${path('read')}'; do sleep 0.1; done`),
  ])
  const commands = commandsOf(one)
  pass(START_MS)
  const looked = commands.look()
  await eventually(() => expect(existsSync(path('asked'))).toBe(true))
  writeFileSync(path('cert.pem'), 'second')
  await one.reload()
  writeFileSync(path('read'), '')
  await looked
  expect([inForce, errors]).toEqual(['second', []])
})

test('ends with the controller, which says nothing of it', async () => {
  const commands = commandsOf(certificate([program(`touch '${path('asked')}'; sleep 600`)]))
  pass(START_MS)
  const looked = commands.look()
  await eventually(() => expect(existsSync(path('asked'))).toBe(true))
  await commands.close()
  await looked
  expect([errors, alarms]).toEqual([[], []])
  await commands.look()
})

test('prints no key into the log, whole or cut off', async () => {
  const key = 'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg'
  const lines = `yes '${key}' | head -n 200 >&2; echo "-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----" >&2; echo refused >&2; exit 1`
  const commands = commandsOf(certificate([program(lines)]))
  pass(START_MS)
  await commands.look()
  const { stderr } = errors[0]?.fields as { stderr: string }
  expect(stderr).toMatch(/refused$/)
  expect(stderr).not.toContain(key.slice(0, 20))
  expect(stderr.length).toBeLessThan(1100)
})

test('is never asked for where none is configured', async () => {
  const commands = commandsOf(certificate([]))
  pass(10 * MINUTE_MS)
  await commands.look()
  expect([errors, alarms]).toEqual([[], []])
})

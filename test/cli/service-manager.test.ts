import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { ServiceManager } from '../../src/cli/terminal/service-manager.ts'

// A script instead of systemd-notify records the messages, because Node.js cannot open the
// datagram socket of systemd. test/process/units.nightly.ts runs the units under systemd itself.

const PID = 4711
let folder: string
let warnings: string[]
const log = { warn: (_: object, message: string) => warnings.push(message) }

beforeEach(() => {
  warnings = []
  folder = mkdtempSync(join(tmpdir(), 'flotilla-notify-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function recordMessages(ending = ''): void {
  const script = join(folder, 'systemd-notify')
  writeFileSync(script, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> "${folder}/sent"\n${ending}\n`)
  chmodSync(script, 0o700)
}

const messages = (): string[] => {
  const path = join(folder, 'sent')
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : []
}

function managerWith(more: NodeJS.ProcessEnv): { manager: ServiceManager; env: NodeJS.ProcessEnv } {
  const env = { PATH: `${folder}:/usr/bin:/bin`, NOTIFY_SOCKET: '/run/notify', ...more }
  return { manager: new ServiceManager({ env, pid: PID, log }), env }
}

describe('ServiceManager (the client of systemd’s notify socket)', () => {
  test('sends its states in order, and removes NOTIFY_SOCKET from the environment of child processes', async () => {
    recordMessages()
    const { manager, env } = managerWith({ WATCHDOG_USEC: '60000000', WATCHDOG_PID: `${PID}` })
    expect(Object.keys(env)).toEqual(['PATH'])
    manager.ready('serves as ctrl1')
    manager.stopping()
    await manager.ended('removed')
    expect(messages()).toEqual([
      '/run/notify READY=1 STATUS=serves as ctrl1',
      '/run/notify STOPPING=1 STATUS=stopping',
      '/run/notify READY=1 STATUS=removed',
    ])
  })

  test('sends repeated keep-alive messages if the watchdog belongs to this process', async () => {
    recordMessages()
    const { manager } = managerWith({ WATCHDOG_USEC: '60000', WATCHDOG_PID: `${PID}` })
    manager.ready('runs')
    await expect
      .poll(() => messages().slice(1, 4))
      .toEqual(['/run/notify WATCHDOG=1', '/run/notify WATCHDOG=1', '/run/notify WATCHDOG=1'])
    await manager.ended('stopped')
  })

  test('sends no keep-alive messages if the watchdog belongs to another process', async () => {
    recordMessages()
    const { manager } = managerWith({ WATCHDOG_USEC: '3000', WATCHDOG_PID: '1' })
    manager.ready('runs')
    for (let at = 0; at < 3; at += 1) await manager.ended('runs')
    expect(messages().filter((line) => line.includes('WATCHDOG'))).toEqual([])
  })

  test('sends nothing if NOTIFY_SOCKET is not set', async () => {
    recordMessages()
    const { manager } = managerWith({ NOTIFY_SOCKET: undefined, WATCHDOG_USEC: '3000' })
    manager.ready('runs')
    await manager.ended('stopped')
    expect(messages()).toEqual([])
  })

  test('logs only once that it cannot send', async () => {
    recordMessages('exit 1')
    const { manager } = managerWith({})
    manager.ready('runs')
    await manager.ended('stopped')
    expect(warnings).toEqual([
      'cannot report to systemd: systemd-notify ended with 1; the unit needs the program systemd-notify and NotifyAccess=all',
    ])
  })

  test('logs that the program systemd-notify is missing', async () => {
    const env = { PATH: folder, NOTIFY_SOCKET: '/run/notify' }
    await new ServiceManager({ env, pid: PID, log }).ended('stopped')
    expect(warnings).toEqual([
      'cannot report to systemd: spawn systemd-notify ENOENT; the unit needs the program systemd-notify and NotifyAccess=all',
    ])
  })
})

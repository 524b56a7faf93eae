import { describe, expect, test } from 'vitest'

import { LogLevelSwitch } from '../../src/controller/log-level.ts'
import { anOperator, RecordedActions } from '../support/recorded-actions.ts'
import { CallerOf, fabric } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

// Goal: only an administrator can change the log level of a running controller, and the log records
// who changed it.

const { controller, root } = await controllerForFile()
const url = `${fabric}/log-level`

describe('The operation that sets the log level', () => {
  test('changes the level immediately, and reports the level that applies after a restart', async () => {
    const changed = { level: 'debug', configured: 'info' }
    const reply = await root.call('PUT', url, { level: 'debug' })
    expect([reply.status, reply.body.data]).toEqual([200, changed])
    expect((await root.get(url)).body.data).toEqual(changed)
    expect(controller.parts.logLevel.get()).toEqual(changed)
  })

  test('refuses an unknown level, and callers who are not administrators', async () => {
    expect((await root.call('PUT', url, { level: 'loud' })).status).toBe(400)
    expect((await root.call('PUT', url, {})).status).toBe(400)
    const alice = new CallerOf(controller)
    alice.token = controller.openSession('alice-id')
    expect((await alice.call('PUT', url, { level: 'trace' })).status).toBe(401)
    expect((await alice.get(url)).status).toBe(401)
    expect(controller.parts.logLevel.get().level).toBe('debug')
  })

  test('records its caller in the audit log', async () => {
    await root.call('PUT', url, { level: 'warn' })
    const filter = encodeURIComponent('action = "set-log-level"')
    const reply = await root.get(`${fabric}/audit?filter=${filter}`)
    expect(reply.body.data).toMatchObject([
      { outcome: 'done', reason: 'debug to warn', actor: { id: 'admin-id' } },
      { outcome: 'done', reason: 'info to debug', entityId: 'ctrl1' },
    ])
  })
})

test('each change of the log level is logged, even a change to or from the level error; setting the current level logs nothing', () => {
  const lines: string[] = []
  const log = {
    level: 'info',
    warn: (_: object, text: string) => void (log.level === 'error' || lines.push(text)),
  }
  const actions = new RecordedActions()
  const levels = new LogLevelSwitch('ctrl1', log, 'info', actions)
  levels.set('error', anOperator)
  levels.set('error', anOperator)
  levels.set('debug', anOperator)
  expect(lines).toEqual([
    'log level changed from info to error; a restart resets it to info',
    'log level changed from error to debug; a restart resets it to info',
  ])
  const action = { action: 'set-log-level', target: 'ctrl1', outcome: 'done', by: 'uid:1000 (op)' }
  expect(actions.all).toEqual([
    { ...action, reason: 'info to error' },
    { ...action, reason: 'error to debug' },
  ])
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { loadControllerConfig } from '../../src/config/controller/load.ts'
import { ConfigurationReload } from '../../src/controller/configuration-reload.ts'
import { RunningOptions } from '../../src/controller/running-options.ts'
import { SYSTEM_ACTOR } from '../../src/ports/actor.ts'
import { RecordedActions } from '../support/recorded-actions.ts'
import { RecordedLog } from '../cluster/mesh-fixture.ts'
import { GOOD } from '../config/controller/support.ts'

let folder = ''
let path = ''
let running: RunningOptions
let log: RecordedLog
let actions: RecordedActions
let certificates: ConstructorParameters<typeof ConfigurationReload>[0]['certificates']

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-reload-'))
  path = join(folder, 'config.yml')
  write('')
  const loaded = loadControllerConfig(path, {})
  if (!loaded.ok) throw new Error('the configuration is good')
  running = new RunningOptions(loaded.config)
  log = new RecordedLog()
  actions = new RecordedActions()
  certificates = () => Promise.resolve([])
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function write(more: string): void {
  writeFileSync(path, GOOD + more)
}

function opened(): ConfigurationReload {
  return new ConfigurationReload({
    path,
    environment: {},
    running,
    certificates: () => certificates(),
    actions,
    log: log.log,
  })
}

describe('A reload of the configuration', () => {
  test('applies the options that need no restart, and reports the result for each option', async () => {
    write('logLevel: debug\nthreads: false\n')
    const applied: string[] = []
    running.onReload(({ logLevel }, before) => {
      applied.push(`${before.logLevel} ${logLevel}`)
    })
    expect(await opened().reload(SYSTEM_ACTOR)).toEqual({
      path,
      changed: [
        { key: 'logLevel', from: 'info', to: 'debug', isInForce: true },
        { key: 'threads', from: 'true', to: 'false', isInForce: false },
      ],
      changedFiles: [],
      refusedCertificates: null,
    })
    expect(applied).toEqual(['info debug'])
    expect(running.config).toMatchObject({ logLevel: 'debug', threads: true })
    expect(log.lines).toEqual([
      'info option logLevel changed from info to debug; it is in force {"key":"logLevel"}',
      'info option threads changed from true to false; a restart applies it {"key":"threads"}',
    ])
    expect(actions.all).toEqual([
      {
        action: 'configuration-reload',
        target: 'ctrl1',
        outcome: 'done',
        reason: 'logLevel',
        by: '',
      },
    ])
  })

  test('logs the error of an option that could not be applied, and can be repeated', async () => {
    write('logLevel: debug\n')
    let isBroken = true
    running.onReload(() => {
      if (isBroken) throw new Error('the disk is full')
    })
    const reload = opened()
    await expect(reload.reload(SYSTEM_ACTOR)).rejects.toThrow('the disk is full')
    expect(log.lines).toEqual([
      expect.stringMatching(/^error configuration reload failed: the disk is full; some options/),
    ])
    isBroken = false
    await reload.reload(SYSTEM_ACTOR)
  })

  test('reports at each reload that an option needs a restart, until the restart', async () => {
    write('threads: false\n')
    const reload = opened()
    const [first, second] = [await reload.reload(SYSTEM_ACTOR), await reload.reload(SYSTEM_ACTOR)]
    expect(second).toEqual(first)
  })

  test.each([
    ['is invalid', 'logLevel: loud\n', /config\.yml:\d+: logLevel: expected one of/],
    [
      'contradicts an option that only a restart can change',
      'identity: {cert: other.pem, key: pki/key.pem, ca: /srv/ca.pem}\nserverCertificates: [{cert: pki/cert.pem, key: web.key}]\n',
      /serverCertificates\[0\]\.cert: is named more than once .*; restart the controller/,
    ],
    ['has another id', 'id: ctrl7\n', /^id: cannot change from ctrl1 to ctrl7; undo this change$/],
    [
      'has another trust domain',
      'trustDomain: other.net\n',
      /^trustDomain: cannot change from \S+ to other\.net; undo this change$/,
    ],
  ])('changes nothing if the file %s', async (_what, more, detail) => {
    const before = running.config
    const [key = ''] = more.split(':')
    const text = GOOD.replace(new RegExp(`^${key}:.*\\n( .*\\n)*`, 'm'), '')
    writeFileSync(path, text + more)
    await expect(opened().reload(SYSTEM_ACTOR)).rejects.toMatchObject({
      code: 'CONFIGURATION_REFUSED',
      message: expect.stringMatching(detail),
    })
    expect(running.config).toBe(before)
    expect(log.lines.join()).toMatch(/^error configuration rejected: .*nothing was changed/s)
    expect(actions.all).toEqual([])
  })

  test('reports certificate files that it rejects, and still applies the options', async () => {
    write('logLevel: warn\n')
    certificates = () =>
      Promise.resolve([{ paths: ['/srv/key.pem'], error: new Error('the key does not fit') }])
    expect(await opened().reload(SYSTEM_ACTOR)).toMatchObject({
      changed: [{ key: 'logLevel', isInForce: true }],
      refusedCertificates: 'the key does not fit',
    })
  })

  test('reports each certificate file whose content changed, and whether the new content is in use', async () => {
    const [ca, key, signers] = ['ca.pem', 'key.pem', 'signers.pem'].map((name) => {
      writeFileSync(join(folder, name), 'before')
      return join(folder, name)
    })
    const identity = `identity: {cert: cert.pem, key: key.pem, ca: ca.pem}\napi: {signerCa: signers.pem}\n`
    writeFileSync(path, GOOD.replace(/identity:\n( .*\n)+/, identity))
    const loaded = loadControllerConfig(path, {})
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
    running = new RunningOptions(loaded.config)
    const reload = opened()
    const changedFiles = async () => (await reload.reload(SYSTEM_ACTOR)).changedFiles
    expect(await changedFiles()).toEqual([])
    for (const name of ['ca.pem', 'key.pem', 'signers.pem']) {
      writeFileSync(join(folder, name), 'after')
    }
    certificates = () => Promise.resolve([{ paths: [key ?? ''], error: new Error('no key') }])
    const isOfStart = { key: 'api.signerCa', path: signers, isInForce: false, isRejected: false }
    expect(await changedFiles()).toEqual([
      { key: 'identity.key', path: key, isInForce: false, isRejected: true },
      { key: 'identity.ca', path: ca, isInForce: true, isRejected: false },
      isOfStart,
    ])
    expect(log.lines).toContain(
      `info the file of identity.ca changed; it is in force ${JSON.stringify({ path: ca })}`,
    )
    certificates = () => Promise.resolve([])
    expect(await changedFiles()).toEqual([
      { key: 'identity.key', path: key, isInForce: true, isRejected: false },
      isOfStart,
    ])
    expect(await changedFiles()).toEqual([isOfStart])
  })
})

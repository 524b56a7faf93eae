import { describe, expect, test } from 'vitest'

import { compareConfigs } from '../../../src/config/controller/changed-options.ts'
import { GOOD, load } from './support.ts'

describe('Comparing the active configuration with the file', () => {
  const running = load(GOOD)

  test('reports no change if the file is unchanged', () => {
    expect(compareConfigs(running, load(GOOD))).toEqual({ changes: [], merged: running })
  })

  test('merges the options that a reload can apply, and lists the options that need a restart', () => {
    const text = `${GOOD}logLevel: debug\nraft: {tickMs: 25}\nlimits: {connectionsMax: 5, logInsMax: 6}\n`
    const { changes, merged } = compareConfigs(running, load(text))
    expect(changes).toEqual([
      { key: 'raft.tickMs', from: '50', to: '25', isReloaded: false },
      { key: 'limits.logInsMax', from: '64', to: '6', isReloaded: false },
      { key: 'limits.connectionsMax', from: '10000', to: '5', isReloaded: true },
      { key: 'logLevel', from: 'info', to: 'debug', isReloaded: true },
    ])
    const limits = { ...running.limits, connectionsMax: 5 }
    expect(merged).toEqual({ ...running, limits, logLevel: 'debug' })
  })

  test('compares the sections of a list one by one, and merges those options that a reload can apply', () => {
    const moved = GOOD.replace('localhost:1280', 'localhost:1281')
    const { changes, merged } = compareConfigs(running, load(`${moved}    names: [api.test]\n`))
    expect(changes).toEqual([
      { key: 'web[0].advertise', from: 'localhost:1280', to: 'localhost:1281', isReloaded: false },
      { key: 'web[0].names', from: '', to: 'api.test', isReloaded: true },
    ])
    expect(merged).toEqual({ ...running, web: [{ ...running.web[0], names: ['api.test'] }] })
  })

  test('compares a list as a whole if its length differs or if a reload can apply it', () => {
    const certificates = 'serverCertificates: [{cert: /srv/a.pem, key: /srv/a.key}]\n'
    const more = '  - {bind: "127.0.0.1:1281", advertise: "localhost:1281"}\n'
    const read = load(`${GOOD}${more}${certificates}`)
    const { changes, merged } = compareConfigs(running, read)
    expect(changes).toEqual([
      { key: 'web', from: null, to: null, isReloaded: false },
      { key: 'serverCertificates', from: null, to: null, isReloaded: true },
    ])
    expect(merged).toEqual({ ...running, serverCertificates: read.serverCertificates })
  })

  test('reports that a secret has changed, and shows neither the old nor the new value', () => {
    const hooked = (word: string): string => `${GOOD}backup: {hook: [/bin/copy, ${word}]}\n`
    const { changes } = compareConfigs(load(hooked('secret-one')), load(hooked('secret-two')))
    expect(changes).toEqual([
      { key: 'backup.hook', from: '(redacted)', to: '(redacted)', isReloaded: true },
    ])
  })
})

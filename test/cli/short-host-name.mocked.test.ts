import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

let name = ''
vi.mock(import('node:os'), async (original) => ({ ...(await original()), hostname: () => name }))

const { planConfig } = await import('../../src/cli/bootstrap/config-from-flags.ts')
const { runHere } = await import('./run-here.ts')

// Goal: an operator who omits --advertise learns that other hosts may not resolve the short name.

const warningFor = (host: string): string =>
  `--advertise is missing, so addresses and certificates contain the host name ${host}, which has no domain; unless every other host resolves ${host}, start over with the full name or an IP address of this host, such as --advertise ${host}.example.net`

const printed = (host: string): string => `flotilla: warning: ${warningFor(host)}\n`

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-host-name-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))
const at = (file: string): string => join(folder, file)

describe('a command that advertises the name of its host', () => {
  test.each(['edge', 'private'])(
    'as router init %s, warns if the name has no domain',
    async (type) => {
      name = 'edge1'
      const short = await runHere(['router', 'init', type, at('short.yml')])
      expect([short.code, short.stderr]).toEqual([0, printed('edge1')])
      name = 'edge1.corp.example'
      const full = await runHere(['router', 'init', type, at('full.yml')])
      expect([full.code, full.stderr]).toEqual([0, ''])
    },
  )

  test('as router init, does not warn for a router that no other host dials', async () => {
    name = 'edge1'
    const made = await runHere(['router', 'init', 'tunnel', at('tunnel.yml')])
    expect([made.code, made.stderr]).toEqual([0, ''])
  })

  test('as cluster init, warns once if the name has no domain, and does not warn if --advertise is given', async () => {
    name = 'ctrl1'
    const short = await runHere(['cluster', 'init', at('short/config.yml')])
    expect([short.code, short.stderr]).toEqual([0, printed('ctrl1')])
    const full = await runHere(['cluster', 'init', at('full/config.yml'), '--advertise', 'ctrl1'])
    expect([full.code, full.stderr]).toEqual([0, ''])
  })

  test.each([
    ['any address', {}, 'ctrl3', true],
    ['one wildcard', { bindApi: '127.0.0.1:1280' }, 'ctrl3', true],
    ['localhost', {}, 'localhost', false],
    ['a full name', {}, 'ctrl3.example.org', false],
    ['loopback', { bindApi: '127.0.0.1:1280', bindCluster: '127.0.0.1:1480' }, 'ctrl3', false],
  ] as const)(
    'gets a warning from planConfig only if other hosts must resolve a name without a domain (case: %s)',
    (_case, flags, host, isWarned) => {
      name = host
      const { config, warning } = planConfig(
        at('config.yml'),
        { id: 'ctrl3', ...flags },
        'a.internal',
      )
      expect(warning).toEqual(isWarned ? warningFor(host) : null)
      const isLoopback = 'bindCluster' in flags
      expect(config.cluster.advertise).toBe(isLoopback ? '127.0.0.1:1480' : `${host}:1480`)
    },
  )
})

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

import { routerTypes } from '../../../src/config/router/commented-config.ts'
import { freePort } from '../../support/ports.ts'
import { runHere } from '../run-here.ts'

// Goal: an operator gets a working router configuration from one command.

const folder = mkdtempSync(join(tmpdir(), 'flotilla-router-init-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const at = (name: string): string => join(folder, name)

describe('router init', () => {
  test.each([
    ...routerTypes.map((type) => [type, ['--advertise', 'r1.example.net']] as const),
    ['edge', ['--advertise', '2001:db8::1', '--controller', '[2001:db8::2]:1380']],
    ['edge', ['--advertise', '192.0.2.1', '--name', 'gate', '--controller', 'tls:c1:1380']],
    ['tunnel', ['--mode', 'proxy', '--advertise', 'r1']],
    ['tunnel', ['--mode', 'tproxy', '--advertise', 'r1']],
    ['private', ['--advertise', 'r1', '--name', 'inner']],
    ['tunnel', ['--name', 'inner']],
  ] as const)(
    'writes, for the router type %s and the options %j, a configuration that router check accepts',
    async (type, flags) => {
      const path = at(`${type}${flags.join('').replace(/[^a-z0-9]/g, '')}.yml`)
      const ports = [
        '--edge-port',
        String(await freePort()),
        '--link-port',
        String(await freePort()),
      ]
      const made = await runHere(['router', 'init', type, path, ...flags, ...ports])
      expect([made.code, made.stderr]).toEqual([0, ''])
      expect(statSync(path).mode & 0o777).toBe(0o644)
      const checked = await runHere(['router', 'check', path, '-o', 'json'])
      expect([checked.code, checked.stderr]).toEqual([0, ''])
      expect(JSON.parse(checked.stdout)).toMatchObject({ isValid: true, faults: [], warnings: [] })
    },
  )

  test('writes comments that become valid configuration when uncommented', async () => {
    const [edge, link, health, metrics] = [
      await freePort(),
      await freePort(),
      await freePort(),
      await freePort(),
    ]
    const ports = ['--edge-port', String(edge), '--link-port', String(link)]
    await runHere(['router', 'init', 'edge', at('full.yml'), '--advertise', 'r1', ...ports])
    const text = readFileSync(at('full.yml'), 'utf8')
      .replace(/^( *)# (endpoints:|web:|  )/gm, '$1$2')
      .replace(/:1780\b/g, `:${health}`)
      .replace(/:9443\b/g, `:${metrics}`)
    writeFileSync(at('full.yml'), text)
    const checked = await runHere(['router', 'check', at('full.yml'), '--print', '-o', 'json'])
    expect([checked.code, checked.stderr]).toEqual([0, ''])
    const { effective } = JSON.parse(checked.stdout) as {
      effective: { key: string; value: string }[]
    }
    const valueOf = (key: string) => effective.find((one) => one.key === key)?.value
    expect([valueOf('web[0].apis[0].binding'), valueOf('web[1].apis[0].binding')]).toEqual([
      'health-checks',
      'metrics',
    ])
    expect(valueOf('ctrl.endpoints')).toContain('tls:ctrl1.example.net:1380')
  })

  test('proposes the port for metrics that the shipped Prometheus configuration scrapes', async () => {
    const path = resolve(import.meta.dirname, '../../../deploy/prometheus/scrape.yml')
    const [, port] = /'router1\.example\.net:(\d+)'/.exec(readFileSync(path, 'utf8')) ?? []
    await runHere(['router', 'init', 'edge', at('monitored.yml'), '--advertise', 'r1'])
    expect(readFileSync(at('monitored.yml'), 'utf8')).toContain(
      `interface: '0.0.0.0:${port}', address: 'r1:${port}'`,
    )
  })

  test('writes a commented block for web servers that is valid once the comment signs are removed', async () => {
    await runHere(['router', 'init', 'edge', at('web.yml'), '--advertise', 'r1'])
    const [before = '', block = ''] = readFileSync(at('web.yml'), 'utf8').split(/(?=^# web:)/m)
    writeFileSync(at('web.yml'), before + block.replaceAll(/^# /gm, ''))
    const checked = await runHere(['router', 'check', at('web.yml'), '--print'])
    expect([checked.code, checked.stderr]).toEqual([0, ''])
    expect(checked.stdout).toContain('web[1].apis[0].binding = metrics')
  })

  test('writes, for each router type, the sections that a router of this type needs', async () => {
    const keysOf = async (type: string): Promise<string[]> => {
      await runHere(['router', 'init', type, at(`${type}.yml`), '--advertise', 'r1'])
      const text = readFileSync(at(`${type}.yml`), 'utf8')
      return [...text.matchAll(/^ *(edge|listeners|dialers|link|- binding: tunnel)\b/gm)].map(
        ([word]) => word.trim(),
      )
    }
    expect(await keysOf('edge')).toEqual([
      'link',
      'listeners',
      'dialers',
      'edge',
      'listeners',
      'dialers',
    ])
    expect(await keysOf('private')).toEqual(['link', 'dialers', 'edge', 'listeners', 'dialers'])
    expect(await keysOf('tunnel')).toEqual([
      'link',
      'dialers',
      'listeners',
      '- binding: tunnel',
      'dialers',
    ])
  })

  test.each([
    [['edge', 'KEPT'], 1, /already exists and stays unchanged/],
    [['gateway', 'new.yml'], 2, /edge, private, tunnel/],
    [
      ['edge', 'new.yml', '--advertise', 'r1:3022'],
      2,
      /--advertise: expected a host name or an IP/,
    ],
    [['edge', 'new.yml', '--advertise', "r1'"], 2, /--advertise: expected a host name or an IP/],
    [['edge', 'new.yml', '--name', '../r'], 2, /--name: expected up to 64 letters/],
    [['edge', 'new.yml', '--controller', 'ctrl1'], 2, /--controller: expected the router port/],
    [['edge', 'new.yml', '--edge-port', '0'], 2, /edge-port/],
  ])('refuses %j, and leaves every file unchanged', async (words, code, sentence) => {
    writeFileSync(at('kept.yml'), 'mine\n')
    const done = await runHere([
      'router',
      'init',
      ...words.map((word) => word.replace('KEPT', at('kept.yml'))),
    ])
    expect([done.code, done.stdout]).toEqual([code, ''])
    expect(done.stderr).toMatch(sentence)
    expect(readFileSync(at('kept.yml'), 'utf8')).toBe('mine\n')
  })
})

const page = resolve(import.meta.dirname, '../../../docs/operate/run-a-router.md')
const EXAMPLE = /(<!-- router init edge -->\n```yaml\n)[^`]*(```\n)/

test('the docs page about running a router contains the file that router init writes', async () => {
  await runHere(['router', 'init', 'edge', at('page.yml'), '--advertise', 'router1.example.net'])
  const written = readFileSync(at('page.yml'), 'utf8')
  const text = readFileSync(page, 'utf8')
  const expected = text.replace(
    EXAMPLE,
    (_all, before: string, after: string) => `${before}${written}${after}`,
  )
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(page, expected)
  expect(readFileSync(page, 'utf8'), 'FLOTILLA_RECORD=1 records it').toBe(expected)
})

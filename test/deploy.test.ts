import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'

import { parseRouterConfig } from '../src/config/router/load.ts'
import type { RouterConfig } from '../src/config/router/table.ts'

// Checks that names in deploy/ exist: metrics that the programs expose, commands and flags that the
// program accepts.

const root = resolve(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, 'deploy', path), 'utf8')

/**
 * Names of all metrics, from the metrics page, which tests record from the responses of the
 * programs.
 */
function exposed(): Set<string> {
  const page = readFileSync(join(root, 'docs/reference/metrics.md'), 'utf8')
  return new Set(Array.from(page.matchAll(/^\| `(flotilla_\w+)`/gm), ([, name = '']) => name))
}

test('the Helm chart contains the alert rules from deploy/prometheus', () => {
  expect(read('helm/flotilla/files/rules.yml')).toBe(read('prometheus/rules.yml'))
})

test('the schema of the Helm chart describes the values in values.yaml and no others', () => {
  const values = parse(read('helm/flotilla/values.yaml')) as object
  const schema = JSON.parse(read('helm/flotilla/values.schema.json')) as Schema
  expect(keysOf(schema).filter((key) => key !== 'global')).toEqual(valueKeys(values, schema))
})

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
}

/** Keys that a schema describes, at all levels. */
function keysOf({ properties = {} }: Schema): string[] {
  return Object.entries(properties)
    .flatMap(([name, below]) => {
      const inner = keysOf(below)
      return inner.length === 0 ? [name] : inner.map((key) => `${name}.${key}`)
    })
    .sort()
}

/** Keys of the values, to the depth that the schema describes. */
function valueKeys(values: object, { properties = {} }: Schema): string[] {
  return Object.entries(values)
    .flatMap(([name, value]: [string, unknown]) => {
      const below = properties[name]
      const isSection = below?.properties !== undefined && typeof value === 'object'
      if (!isSection || value === null) return [name]
      return valueKeys(value, below).map((key) => `${name}.${key}`)
    })
    .sort()
}

test('every alert rule uses existing metrics, and advises the operator what to do', () => {
  const rules = parse(read('prometheus/rules.yml')) as {
    groups: { rules: { alert?: string; expr: string; annotations?: Record<string, string> }[] }[]
  }
  const everyRule = rules.groups.flatMap((group) => group.rules)
  const all = everyRule.filter(({ alert }) => alert !== undefined)
  expect(all.length).toBeGreaterThan(5)
  const names = exposed()
  const unknown = everyRule.flatMap(({ expr }) =>
    (expr.match(/flotilla_[a-z0-9_]+/g) ?? []).filter(
      (name) => !names.has(name) && !names.has(name.replace(/_(bucket|count|sum)$/, '')),
    ),
  )
  expect(unknown).toEqual([])
  const silent = all.filter(({ annotations }) => !annotations)
  expect(silent.map(({ alert }) => alert)).toEqual([])
  const page = readFileSync(join(root, 'docs/operate/alerts.md'), 'utf8')
  const sections = [...page.matchAll(/^## (\w+)$/gm)].map(([, name = '']) => name)
  expect(sections).toEqual(all.map(({ alert }) => alert))
  expect(all.map(({ annotations }) => annotations?.['runbook_url'])).toEqual(
    sections.map((name) => `docs/operate/alerts.md#${name.toLowerCase()}`),
  )
})

test.each([
  ['flotilla', 20],
  ['flotilla-network', 10],
])(
  'every panel of dashboard %s uses existing metrics, and overlaps no other panel',
  (name, least) => {
    const { panels } = JSON.parse(read(`grafana/${name}.json`)) as {
      panels: {
        type: string
        title: string
        gridPos: { x: number; y: number; w: number; h: number }
        targets?: { expr: string }[]
      }[]
    }
    const shown = panels.filter(({ type }) => type !== 'row')
    expect(shown.length).toBeGreaterThan(least)
    const names = exposed()
    for (const { title, targets = [] } of shown) {
      const found = targets.flatMap(({ expr }) => expr.match(/\bflotilla_[a-z0-9_]+/g) ?? [])
      const isOfProcess = targets.some(({ expr }) => /\bprocess_[a-z_]+/.test(expr))
      expect(found.length > 0 || isOfProcess, title).toBe(true)
      const unknown = found.filter((name) => !names.has(name.replace(/_(bucket|count|sum)$/, '')))
      expect(unknown, title).toEqual([])
    }
    const overlapping = shown.filter(({ gridPos: a }, at) =>
      shown.slice(0, at).some(({ gridPos: b }) => {
        const isBeside = a.x >= b.x + b.w || b.x >= a.x + a.w
        return !isBeside && a.y < b.y + b.h && b.y < a.y + a.h
      }),
    )
    expect(overlapping.map(({ title }) => title)).toEqual([])
  },
)

test('deploy/check.sh runs those checks whose tools are installed, and lists the checks that it skipped', () => {
  const told = execFileSync(join(root, 'deploy/check.sh'), { encoding: 'utf8' })
  expect(told).toMatch(/^0 wrong, \d+ not run$/m)
  const judged = told.trim().split('\n').slice(0, -1)
  expect(judged.filter((line) => !/^(ok|not run) {2,}\S/.test(line))).toEqual([])
  expect(judged.length).toBe(13)
})

test('the compose file advertises every published port at one host, and passes the list of all controllers to the containers', () => {
  const { services } = parse(read('docker/compose.yml'), { merge: true }) as {
    services: Record<string, { ports?: string[]; environment?: Record<string, string> }>
  }
  const host = '${FLOTILLA_HOST:-127.0.0.1}'
  const published = Object.entries(services).flatMap(([name, { ports = [], environment }]) =>
    ports.map((port) => {
      const of = /^\$\{FLOTILLA_PUBLISH_ADDRESS:-127\.0\.0\.1\}:(\$\{\w+:-\d+\}):(\d+)$/.exec(port)
      const { FLOTILLA_WEB_0_ADVERTISE: web, ROUTER_ADVERTISE: edge } = environment ?? {}
      return { name, port: of?.[2], isAdvertised: (web ?? edge) === `${host}:${of?.[1]}` }
    }),
  )
  expect(published).toEqual([
    { name: 'ctrl1', port: '1280', isAdvertised: true },
    { name: 'ctrl2', port: '1280', isAdvertised: true },
    { name: 'ctrl3', port: '1280', isAdvertised: true },
    { name: 'router1', port: '3022', isAdvertised: true },
  ])
  for (const name of ['ctrl1', 'ctrl2', 'ctrl3', 'router-token', 'router1']) {
    expect(services[name]?.environment?.['CONTROLLER_URLS'], name).toBe(
      'https://ctrl1:1280 https://ctrl2:1280 https://ctrl3:1280',
    )
  }
})

describe('the router container', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'flotilla-deploy-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  /**
   * Runs the entrypoint, which writes the configuration and then waits for a token that is never
   * written.
   */
  async function configure(env: Record<string, string>): Promise<{ text: string; said: string }> {
    const words = ['router', folder, 'router1', join(folder, 'token'), 'ctrl1:1380', 'ctrl2:1380']
    const entrypoint = join(root, 'deploy/docker/entrypoint.sh')
    const child = spawn(entrypoint, words, {
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    const ended = once(child, 'close')
    await expect.poll(() => said).toContain('waiting for')
    child.kill('SIGTERM')
    expect(await ended).toEqual([143, null])
    return { text: readFileSync(join(folder, 'router.yml'), 'utf8'), said }
  }

  function parsedRouter(text: string): RouterConfig {
    const parsed = parseRouterConfig(join(folder, 'router.yml'), text, {})
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults))
    return parsed.config
  }

  test.each([
    ['vpn.example.net', { dns: ['router1', 'vpn.example.net'], ip: [] }],
    ['127.0.0.1', { dns: ['router1'], ip: ['127.0.0.1'] }],
  ])('listens for clients at the advertised host %s', async (host, sans) => {
    const { text } = await configure({ ROUTER_ADVERTISE: `${host}:3122` })
    const { listeners, edge, csr } = parsedRouter(text)
    expect(edge).not.toBeNull()
    expect(listeners).toMatchObject([
      { binding: 'edge', bind: { port: 3022 }, options: { advertise: { host, port: 3122 } } },
    ])
    expect(csr?.sans).toMatchObject(sans)
  })

  test('serves metrics to monitoring systems only if a port for them is set', async () => {
    const host = 'router1.routers.svc'
    const first = await configure({ ROUTER_LINK_HOST: host })
    const health = { apis: [{ binding: 'health-checks' }] }
    expect(parsedRouter(first.text).web).toMatchObject([health])
    const second = await configure({ ROUTER_LINK_HOST: host, ROUTER_METRICS_PORT: '9443' })
    expect(parsedRouter(second.text).web).toMatchObject([
      health,
      {
        bindPoints: [{ interface: { host: '0.0.0.0', port: 9443 }, address: { host, port: 9443 } }],
        apis: [{ binding: 'metrics' }],
      },
    ])
  })

  test('advertises another host for links if other routers cannot resolve its name', async () => {
    const host = 'router1.routers.svc'
    const { text } = await configure({ ROUTER_LINK_HOST: host, ROUTER_ADVERTISE: `${host}:3022` })
    const { link, csr } = parsedRouter(text)
    expect(link?.listeners).toMatchObject([{ advertise: { host, port: 1680 } }])
    expect(csr?.sans).toMatchObject({ dns: [host], ip: [] })
  })

  test('opens its edge listener after an upgrade, applies a changed address, and keeps a file that the operator edited', async () => {
    const former = await configure({})
    expect(parsedRouter(former.text).listeners).toEqual([])
    // Releases up to 0.3.0 stored no copy of the file that they wrote.
    rmSync(join(folder, 'router.yml.written'))
    const first = await configure({ ROUTER_ADVERTISE: '127.0.0.1:3022' })
    expect(first.text).toContain("advertise: '127.0.0.1:3022'")
    const second = await configure({ ROUTER_ADVERTISE: 'vpn.example.net:3022' })
    expect(second.text).toContain("advertise: 'vpn.example.net:3022'")

    const edited = `${second.text}\n# edited\n`
    writeFileSync(join(folder, 'router.yml'), edited)
    const third = await configure({ ROUTER_ADVERTISE: '127.0.0.1:3022' })
    expect(third.text).toBe(edited)
    expect(third.said).toContain('was edited, so it stays as it is')
  })
})

test('the systemd units, the container entrypoint and the README use existing commands', () => {
  const text = [
    read('README.md'),
    read('systemd/flotilla-controller@.service'),
    read('systemd/flotilla-router@.service'),
    read('docker/entrypoint.sh'),
  ].join('\n')
  const verbs = new Set(
    [...text.matchAll(/flotilla (cluster|controller|router|pki) ([a-z-]+)/g)].map(
      ([, room = '', verb = '']) => `${room} ${verb}`,
    ),
  )
  expect(verbs.size).toBeGreaterThan(4)
  for (const words of verbs) {
    const help = execFileSync(join(root, 'bin/flotilla'), [...words.split(' '), '--help'], {
      encoding: 'utf8',
    })
    expect(help, words).toContain(`Usage: flotilla ${words}`)
  }
})

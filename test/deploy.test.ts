import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

// The names in deploy/ exist: metrics that the program exposes, verbs and flags that it accepts.

const root = resolve(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, 'deploy', path), 'utf8')

/** Every text in the sources of the metrics that looks like a metric name. */
function exposed(): Set<string> {
  const pattern = 'flotilla_[a-z0-9_]+|\\$\\{raft\\}[a-z0-9_]+'
  const found = execFileSync('grep', ['-rhoE', pattern, join(root, 'src')], { encoding: 'utf8' })
  return new Set(found.replaceAll('${raft}', 'flotilla_raft_').split('\n'))
}

test('every alert uses metrics of the program, and says what to do', () => {
  const rules = parse(read('prometheus/rules.yml')) as {
    groups: { rules: { alert?: string; expr: string; annotations?: Record<string, string> }[] }[]
  }
  const all = rules.groups.flatMap((group) => group.rules)
  expect(all.length).toBeGreaterThan(5)
  const names = exposed()
  const unknown = all.flatMap(({ expr }) =>
    (expr.match(/flotilla_[a-z0-9_]+/g) ?? []).filter(
      (name) => !names.has(name) && !names.has(name.replace(/_(bucket|count|sum)$/, '')),
    ),
  )
  expect(unknown).toEqual([])
  const silent = all.filter(({ alert, annotations }) => alert !== undefined && !annotations)
  expect(silent.map(({ alert }) => alert)).toEqual([])
})

test('every panel of the dashboard uses metrics of the program, and overlaps no other', () => {
  const { panels } = JSON.parse(read('grafana/flotilla.json')) as {
    panels: {
      type: string
      title: string
      gridPos: { x: number; y: number; w: number; h: number }
      targets?: { expr: string }[]
    }[]
  }
  const shown = panels.filter(({ type }) => type !== 'row')
  expect(shown.length).toBeGreaterThan(20)
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
})

test('deploy/check.sh checks what it has tools for, and names the skipped checks', () => {
  const told = execFileSync(join(root, 'deploy/check.sh'), { encoding: 'utf8' })
  expect(told).toMatch(/^0 wrong, \d+ not run$/m)
  const judged = told.trim().split('\n').slice(0, -1)
  expect(judged.filter((line) => !/^(ok|not run) {2,}\S/.test(line))).toEqual([])
  expect(judged.length).toBe(13)
})

test('units, compose file and README use existing verbs and flags', () => {
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

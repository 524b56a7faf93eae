import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

// What deploy/ names is there: metrics that the program exposes, verbs and flags that it takes.

const root = resolve(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(root, 'deploy', path), 'utf8')

/** Every name that stands as a text in the sources of the metrics. */
function exposed(): Set<string> {
  const pattern = 'flotilla_[a-z0-9_]+|\\$\\{raft\\}[a-z0-9_]+'
  const found = execFileSync('grep', ['-rhoE', pattern, join(root, 'src')], { encoding: 'utf8' })
  return new Set(found.replaceAll('${raft}', 'flotilla_raft_').split('\n'))
}

test('every alert rests on metrics that the program exposes, and says what to do', () => {
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

test('units, compose file and README use verbs and flags that there are', () => {
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

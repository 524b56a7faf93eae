// Packs the built program for hosts without access to a package registry: `node
// tools/package/main.ts PROGRAM OUT [--arch x64|arm64]... [--level 0-9]`.
//
// PROGRAM is the output of tools/build-program.ts. OUT gets, for each architecture,
// flotilla-VERSION-linux-ARCH.tar.xz with the program, its packages and its Node.js, and a Debian
// package with the same files. It also gets the Debian packages that do not depend on the
// architecture, and SHA256SUMS.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { writeArchive } from './archive.ts'
import { type Architecture, architectures } from './architectures.ts'
import { buildCommonPackages, buildProgramPackage } from './debian.ts'
import { makeTree } from './tree.ts'

const { values, positionals } = parseArgs({
  options: {
    arch: { type: 'string', multiple: true },
    // Level 6 makes the files a tenth smaller, and takes three times as long.
    level: { type: 'string', default: '2' },
  },
  allowPositionals: true,
})
const [program, out] = positionals
const wanted = values.arch ?? Object.keys(architectures)
const unknown = wanted.find((name) => !(name in architectures))
if (program === undefined || out === undefined || unknown !== undefined) {
  if (unknown !== undefined) console.error(`unknown architecture ${unknown}`)
  console.error('usage: node tools/package/main.ts PROGRAM OUT [--arch x64|arm64]... [--level 0-9]')
  process.exit(2)
}

const { version, built } = JSON.parse(readFileSync(join(program, 'package.json'), 'utf8')) as {
  readonly version: string
  readonly built: { readonly date: string }
}
// The time of the commit, so that the same sources give the same files.
const timeS = built.date === '' ? 0 : Math.floor(Date.parse(built.date) / 1000)
const { level } = values
const release = { program, out, version, timeS, level, work: join(out, 'work') }
const hasDpkg = spawnSync('dpkg-deb', ['--version'], { stdio: 'ignore' }).status === 0

mkdirSync(release.work, { recursive: true })
for (const name of wanted as Architecture[]) {
  const tree = makeTree(release, name)
  writeArchive(release, tree, join(out, `flotilla-${version}-linux-${name}.tar.xz`))
  if (hasDpkg) buildProgramPackage(release, tree, architectures[name].debian)
}
if (hasDpkg) buildCommonPackages(release)
else console.error('skipped the Debian packages: dpkg-deb is not installed')
rmSync(release.work, { recursive: true })
writeSums()

function writeSums(): void {
  const names = readdirSync(String(out)).filter(
    (name) => name !== 'SHA256SUMS' && statSync(join(String(out), name)).isFile(),
  )
  const lines = names.sort().map((name) => {
    const sum = createHash('sha256').update(readFileSync(join(String(out), name)))
    return `${sum.digest('hex')}  ${name}\n`
  })
  writeFileSync(join(String(out), 'SHA256SUMS'), lines.join(''))
}

// Creates the test fixture of a release: `node tools/release-fixture.ts TAG OUT.tgz [DATA.tgz
// LISTING.json]`.
//
// It checks out the release in a temporary folder, builds it with the release's own
// tools/build-program.ts and packs it with npm, which adds no timestamp: the same tag with the same
// packages gives the same bytes. The build uses the packages that are installed in this checkout.
// The archive contains no dependencies: tests link those of this checkout. With DATA.tgz and
// LISTING.json, test/releases/record-data.ts then runs three controllers of that release and stores
// their data folders, with a listing of their content. Both contain random values and differ each
// time.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')

const [tag, out, data, listing] = process.argv.slice(2)
if (tag === undefined || out === undefined || (data === undefined) !== (listing === undefined)) {
  console.error('usage: node tools/release-fixture.ts TAG OUT.tgz [DATA.tgz LISTING.json]')
  process.exit(2)
}

const folder = mkdtempSync(join(tmpdir(), 'flotilla-release-'))
try {
  const sources = join(folder, 'sources')
  run(folder, 'git', 'clone', '--quiet', '--shared', '--no-checkout', root, sources)
  run(sources, 'git', 'checkout', '--quiet', '--detach', tag)
  symlinkSync(join(root, 'node_modules'), join(sources, 'node_modules'))
  run(sources, 'node', 'tools/build-program.ts', join(folder, 'package'))
  withoutDependencies(join(folder, 'package'))
  run(join(folder, 'package'), 'npm', 'pack', '--silent', '--pack-destination', folder)
  const [name = ''] = readdirSync(folder).filter((one) => one.endsWith('.tgz'))
  copyFileSync(join(folder, name), out)
  if (data !== undefined && listing !== undefined) record(sources, resolve(data), resolve(listing))
  console.log(`${createHash('sha256').update(readFileSync(out)).digest('hex')}  ${out}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Removes the dependencies that the package contains. */
function withoutDependencies(folder: string): void {
  rmSync(join(folder, 'node_modules'), { recursive: true, force: true })
  const file = join(folder, 'package.json')
  const { bundleDependencies: _, ...manifest } = JSON.parse(readFileSync(file, 'utf8')) as Readonly<
    Record<string, unknown>
  >
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
}

/** Records data folders with the sources and tests of the release itself. */
function record(sources: string, data: string, listing: string): void {
  const program = join(folder, 'package')
  symlinkSync(join(root, 'node_modules'), join(program, 'node_modules'))
  process.env['FLOTILLA_PROGRAM'] = join(program, 'bin/flotilla')
  const script = 'test/releases/record-data.ts'
  mkdirSync(join(sources, 'test/releases'), { recursive: true })
  copyFileSync(join(root, script), join(sources, script))
  run(sources, 'node', script, data, listing)
}

function run(cwd: string, program: string, ...args: readonly string[]): void {
  const done = spawnSync(program, args, { cwd, encoding: 'utf8' })
  if (done.status === 0) return
  console.error(`${program} ${args.join(' ')} failed: ${done.error?.message ?? done.stderr}`)
  rmSync(folder, { recursive: true, force: true })
  process.exit(1)
}

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')

/**
 * The packages of one version, as `make package` writes them for the architecture of this machine.
 */
export interface Packages {
  readonly version: string
  readonly folder: string
  /** Names of the Debian packages; empty without dpkg-deb. */
  readonly debian: readonly string[]
  /** Name of the archive that contains Node. */
  readonly archive: string
}

/**
 * Builds the program once, and packages it under each version, with fast instead of strong
 * compression. With FLOTILLA_PACKAGES, uses the packages of an earlier run in that folder.
 */
export async function buildPackages(
  folder: string,
  versions: readonly string[],
): Promise<Packages[]> {
  const former = process.env['FLOTILLA_PACKAGES']
  if (former !== undefined) return versions.map((version) => packagesIn(former, version))
  const program = join(folder, 'program')
  await run('node', [join(root, 'tools/build-program.ts'), program])
  const manifest = join(program, 'package.json')
  const written = JSON.parse(readFileSync(manifest, 'utf8')) as object
  for (const version of versions) {
    writeFileSync(manifest, JSON.stringify({ ...written, version }))
    const options = ['--arch', process.arch, '--level', '0']
    await run('node', [
      join(root, 'tools/package/main.ts'),
      program,
      join(folder, version),
      ...options,
    ])
  }
  return versions.map((version) => packagesIn(folder, version))
}

function packagesIn(parent: string, version: string): Packages {
  const folder = join(parent, version)
  const names = readdirSync(folder)
  return {
    version,
    folder,
    debian: names.filter((name) => name.endsWith('.deb')),
    archive: names.find((name) => name.endsWith('.tar.xz')) ?? '',
  }
}

export const programVersion = (): string =>
  (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version

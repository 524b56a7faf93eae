import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

/**
 * Unpacks the kept package of a release into a folder in `folder`, and adds the packages installed
 * here. @returns its launcher.
 */
export function unpackRelease(version: string, folder: string): string {
  const package_ = join(root, `test/releases/flotilla-${version}.tgz`)
  const target = join(folder, version)
  mkdirSync(target, { recursive: true })
  const args = ['--extract', '--gzip', `--file=${package_}`, '--directory', target]
  const done = spawnSync('tar', args, { encoding: 'utf8' })
  if (done.status !== 0) throw new Error(`${package_} cannot be unpacked: ${done.stderr}`)
  const program = join(target, 'package')
  symlinkSync(join(root, 'node_modules'), join(program, 'node_modules'))
  return join(program, 'bin/flotilla')
}

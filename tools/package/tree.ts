import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

import type { Architecture } from './architectures.ts'
import { type Release, runTool } from './release.ts'

const root = resolve(import.meta.dirname, '../..')
/** Files of Node.js that a release contains; its headers and manuals are omitted. */
const keptOfNode = ['bin/node', 'LICENSE', 'package.json']

/**
 * Creates the folder flotilla-VERSION with the files that a host of this architecture gets.
 * @returns its path.
 */
export function makeTree({ program, version, work }: Release, architecture: Architecture): string {
  const tree = join(work, architecture, `flotilla-${version}`)
  rmSync(tree, { recursive: true, force: true })
  const isKept = (path: string): boolean => {
    const isPrebuilt = basename(dirname(path)) === 'prebuilds'
    return !isPrebuilt || basename(path) === `linux-${architecture}`
  }
  cpSync(program, tree, { recursive: true, filter: isKept })
  const node = `node-linux-${architecture}`
  const from = nodePackage(node, work)
  for (const name of keptOfNode) {
    const to = join(tree, 'node_modules', node, name)
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(from, name), to)
  }
  return tree
}

/**
 * The folder of the package with Node.js for one architecture. npm has installed only that of this
 * machine; another one is fetched from the registry and verified.
 */
function nodePackage(name: string, work: string): string {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<
      Record<string, { readonly version: string; readonly integrity: string }>
    >
  }
  const { version = '', integrity = '' } = lock.packages[`node_modules/${name}`] ?? {}
  const installed = join(root, 'node_modules', name)
  if (existsSync(installed)) return installed
  const folder = join(work, name)
  mkdirSync(folder, { recursive: true })
  runTool('npm', ['pack', '--silent', '--pack-destination', folder, `${name}@${version}`])
  const [archive = ''] = readdirSync(folder)
  const sum = createHash('sha512').update(readFileSync(join(folder, archive)))
  if (`sha512-${sum.digest('base64')}` !== integrity) {
    throw new Error(`${name}@${version} differs from package-lock.json`)
  }
  runTool('tar', ['--extract', '--gzip', '--file', join(folder, archive), '--directory', folder])
  return join(folder, 'package')
}

import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

import type { Architecture } from './architectures.ts'
import { type Release, runTool } from './release.ts'

const root = resolve(import.meta.dirname, '../..')
/** The Node of a package also has its headers and manuals. */
const keptOfNode = ['bin/node', 'LICENSE', 'package.json']

/** Makes the folder flotilla-VERSION as it is on a host of that architecture. @returns its path. */
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

/** npm installs only the Node of this machine; the other one comes from the registry. */
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

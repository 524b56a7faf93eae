import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import satisfies from 'semver/functions/satisfies.js'

import { PACKAGE_ROOT } from './package-root.ts'

/**
 * Why the program should not run on a version of Node, with what to do; null: `engines` of
 * `package.json` allows it. `bin/flotilla` refuses such versions; a program that is started without
 * it gets here.
 *
 * @param version like `v24.21.0`.
 */
export function unsupportedNode(version: string = process.version): string | null {
  const manifest = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    readonly engines: { readonly node: string }
  }
  const { node } = manifest.engines
  if (satisfies(version, node)) return null
  return `Node ${version} keeps the certificates of every client in memory, so that anyone who reaches a port can fill it; use Node ${node.replace(' || ', ' or ')}, which bin/flotilla chooses by itself`
}

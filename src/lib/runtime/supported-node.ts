import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import satisfies from 'semver/functions/satisfies.js'

import { PACKAGE_ROOT } from './package-root.ts'

/**
 * The reason why the program should not run on a Node version, with a remedy; null when `engines`
 * of `package.json` allows it. `bin/flotilla` refuses other versions; a program started in another
 * way checks it here.
 *
 * @param version for example `v24.21.0`.
 */
export function unsupportedNode(version: string = process.version): string | null {
  const manifest = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    readonly engines: { readonly node: string }
  }
  const { node } = manifest.engines
  if (satisfies(version, node)) return null
  return `Node ${version} keeps the certificates of every client in memory, so that anyone who reaches a port can fill it; use Node ${node.replace(' || ', ' or ')}, which bin/flotilla chooses by itself`
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import satisfies from 'semver/functions/satisfies.js'

import { PACKAGE_ROOT } from './package-root.ts'

/**
 * The reason why the program should not run on a Node version, with a remedy; null when
 * `package.json` allows the version. `bin/flotilla` refuses other versions. A program that starts
 * without `bin/flotilla` calls this function.
 * @param version for example `v24.21.0`.
 */
export function unsupportedNodeReason(version: string = process.version): string | null {
  const manifest = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as {
    readonly engines?: { readonly node: string }
    readonly supportedNode?: string
  }
  // A built package has no `engines`, because npm compares that field with the Node version on
  // which npm itself runs.
  const node = manifest.supportedNode ?? manifest.engines?.node ?? ''
  if (satisfies(version, node)) return null
  return `Node ${version} keeps the certificates of every client in memory, so that anyone who reaches a port can fill it; use Node ${node.replace(' || ', ' or ')}, which bin/flotilla chooses by itself`
}

import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

import { PACKAGE_ROOT } from '../lib/package-root.ts'

const manifest = join(PACKAGE_ROOT, 'package.json')

interface Manifest {
  readonly version: string
}

/**
 * What the version operation answers, and the `server` header: clients of the API family read it as semver and switch
 * features on by it (service edge routers from 1.0, config types in lists from 1.1), so it names the family's level that
 * is served, not this program's own version.
 */
export const API_FAMILY_VERSION = 'v2.0.0'

/** Of the package, without a leading v. */
export function programVersion(): string {
  return (JSON.parse(readFileSync(manifest, 'utf8')) as Manifest).version
}

/** When this copy of the program was laid down, RFC 3339: sources run as they are, there is no build. */
export function programDate(): string {
  return statSync(manifest).mtime.toISOString()
}

/** 12 hex digits of the commit that is checked out; `unknown` outside a clone. */
export function programRevision(): string {
  try {
    const head = readFileSync(join(PACKAGE_ROOT, '.git/HEAD'), 'utf8').trim()
    const commit = head.startsWith('ref: ') ? commitOf(head.slice('ref: '.length)) : head
    return /^[0-9a-f]{40}$/.test(commit) ? commit.slice(0, 12) : 'unknown'
  } catch {
    return 'unknown'
  }
}

function commitOf(ref: string): string {
  try {
    return readFileSync(join(PACKAGE_ROOT, `.git/${ref}`), 'utf8').trim()
  } catch {
    const packed = readFileSync(join(PACKAGE_ROOT, '.git/packed-refs'), 'utf8')
    return (
      packed
        .split('\n')
        .find((line) => line.endsWith(` ${ref}`))
        ?.slice(0, 40) ?? ''
    )
  }
}

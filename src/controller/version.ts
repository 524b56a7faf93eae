import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

import { PACKAGE_ROOT } from '../lib/runtime/package-root.ts'

const manifest = join(PACKAGE_ROOT, 'package.json')

interface Manifest {
  readonly version: string
  /** Commit from which an installed program was built; absent in a clone. */
  readonly built?: { readonly revision: string; readonly date: string }
}

/**
 * Version in the response of the version operation and in the `server` header. OpenZiti clients
 * parse it as semver to enable features (service edge routers from 1.0, config types in lists from
 * 1.1). It is therefore the OpenZiti version whose API Flotilla serves, not the version of this
 * program.
 */
export const OPENZITI_API_VERSION = 'v2.0.0'

/** Version of the package, without a leading `v`. */
export function programVersion(): string {
  return readManifest().version
}

/**
 * For an installed program, the date of its commit; in a clone, the time at which package.json was
 * last written. RFC 3339.
 */
export function programBuildDate(): string {
  const { built } = readManifest()
  const date = new Date(built === undefined || built.date === '' ? NaN : built.date)
  return Number.isNaN(date.getTime()) ? statSync(manifest).mtime.toISOString() : date.toISOString()
}

/**
 * First 12 hex digits of the commit from which this program was built, or that is checked out;
 * `unknown` if neither is known.
 */
export function programRevision(): string {
  const { built } = readManifest()
  if (built !== undefined) return built.revision === '' ? 'unknown' : built.revision.slice(0, 12)
  try {
    const head = readFileSync(join(PACKAGE_ROOT, '.git/HEAD'), 'utf8').trim()
    const commit = head.startsWith('ref: ') ? commitOf(head.slice('ref: '.length)) : head
    return /^[0-9a-f]{40}$/.test(commit) ? commit.slice(0, 12) : 'unknown'
  } catch {
    return 'unknown'
  }
}

function readManifest(): Manifest {
  return JSON.parse(readFileSync(manifest, 'utf8')) as Manifest
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

/**
 * Version data that routers and tunnels send in their hello. `version` is the OpenZiti version
 * whose API Flotilla serves.
 */
export function programVersionLine(): {
  readonly version: string
  readonly revision: string
  readonly buildDate: string
  readonly os: string
  readonly arch: string
} {
  return {
    version: OPENZITI_API_VERSION,
    revision: programRevision(),
    buildDate: programBuildDate(),
    os: process.platform,
    arch: process.arch,
  }
}

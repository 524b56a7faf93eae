import { randomBytes } from 'node:crypto'

export const CLUSTER_KEY_BYTES = 32
/** Old versions verify what they signed until it expires; more than these are not kept. */
export const CLUSTER_KEY_VERSIONS_MAX = 8

export interface ClusterKeyVersion {
  readonly version: number
  /** 32 random bytes. */
  readonly secret: Uint8Array
}

/** The secret the controllers of one cluster share. Versions ascend; the last one signs, all verify. Never empty. */
export type ClusterKey = readonly [ClusterKeyVersion, ...ClusterKeyVersion[]]

/** The sentence never holds a part of the key. */
export class ClusterKeyError extends Error {
  override readonly name = 'ClusterKeyError'
}

const TITLE = 'flotilla-cluster-key 1'
const LINE = /^([1-9][0-9]{0,8}) ([A-Za-z0-9_-]{43})$/

export function newClusterKey(): ClusterKey {
  return [{ version: 1, secret: Uint8Array.from(randomBytes(CLUSTER_KEY_BYTES)) }]
}

/** The version that signs. */
export function signingVersion(key: ClusterKey): ClusterKeyVersion {
  return key.at(-1) ?? key[0]
}

/** Adds a version; the oldest falls out when there are more than `CLUSTER_KEY_VERSIONS_MAX`. */
export function rotateClusterKey(key: ClusterKey): ClusterKey {
  const added = {
    version: signingVersion(key).version + 1,
    secret: Uint8Array.from(randomBytes(CLUSTER_KEY_BYTES)),
  }
  const [first, ...rest] = [...key, added].slice(-CLUSTER_KEY_VERSIONS_MAX)
  return [first ?? added, ...rest]
}

/** Text of a cluster key file, version 1: a title, then a line `<version> <base64url of 32 bytes>` for each version. */
export function formatClusterKey(key: ClusterKey): string {
  const lines = key.map(
    ({ version, secret }) => `${version} ${Buffer.from(secret).toString('base64url')}`,
  )
  return `${TITLE}\n${lines.join('\n')}\n`
}

/** @throws {ClusterKeyError} naming the line. */
export function parseClusterKey(text: string): ClusterKey {
  const [title, ...lines] = text.trimEnd().split('\n', CLUSTER_KEY_VERSIONS_MAX + 2)
  if (title !== TITLE) throw new ClusterKeyError(`line 1: expected ${JSON.stringify(TITLE)}`)
  if (lines.length > CLUSTER_KEY_VERSIONS_MAX) {
    throw new ClusterKeyError(`more than ${CLUSTER_KEY_VERSIONS_MAX} versions`)
  }
  const versions: ClusterKeyVersion[] = []
  for (const [at, line] of lines.entries()) {
    const match = LINE.exec(line)
    const secret = Buffer.from(match?.[2] ?? '', 'base64url')
    const version = Number(match?.[1])
    if (match === null || secret.length !== CLUSTER_KEY_BYTES) {
      throw new ClusterKeyError(`line ${at + 2}: expected '<version> <32 bytes as base64url>'`)
    }
    if (version <= (versions.at(-1)?.version ?? 0)) {
      throw new ClusterKeyError(`line ${at + 2}: versions must ascend`)
    }
    versions.push({ version, secret: Uint8Array.from(secret) })
  }
  const [first, ...rest] = versions
  if (first === undefined) throw new ClusterKeyError('there is no key in it')
  return [first, ...rest]
}

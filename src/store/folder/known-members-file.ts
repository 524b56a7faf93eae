import { readFileSync, statSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'

const FILE_NAME = 'known-members.json'
const FILE_BYTES_MAX = 4 * 1024 * 1024

/** A member's last report about itself; src/cluster defines the fields of this object. */
interface SavedMember {
  readonly version: string
  readonly startedAtMs: number
  readonly apiAddresses: readonly {
    readonly api: string
    readonly url: string
    readonly version: string
  }[]
  readonly certificatePem: string
  readonly removedAtMs?: number
}

/**
 * The file `known-members.json` of a data folder: last known details of unreachable members, for
 * display, and certificates of former members. The file is not synced, and an unreadable file is
 * treated as missing: without it, only those details are missing and refresh tokens that former
 * members signed are refused.
 */
export class KnownMembersFile {
  readonly #path: string

  constructor(dataFolder: string) {
    this.#path = `${dataFolder}/${FILE_NAME}`
  }

  load(): ReadonlyMap<string, SavedMember> {
    try {
      if (statSync(this.#path).size > FILE_BYTES_MAX) return new Map()
      const saved: unknown = JSON.parse(readFileSync(this.#path, 'utf8'))
      if (typeof saved !== 'object' || saved === null) return new Map()
      return new Map(Object.entries(saved).filter(isMember))
    } catch {
      return new Map()
    }
  }

  /**
   * Writes the file.
   * @throws the error of the file system.
   */
  async save(members: ReadonlyMap<string, SavedMember>): Promise<void> {
    const text = `${JSON.stringify(Object.fromEntries(members), null, 2)}\n`
    await writeFile(`${this.#path}.new`, text, { mode: 0o600 })
    await rename(`${this.#path}.new`, this.#path)
  }
}

function isMember(entry: [string, unknown]): entry is [string, SavedMember] {
  const { version, startedAtMs, apiAddresses, certificatePem, removedAtMs } = {
    ...(entry[1] as SavedMember | null),
  }
  const isText = (value: unknown): boolean => typeof value === 'string'
  return (
    isText(version) &&
    isText(certificatePem) &&
    Number.isSafeInteger(startedAtMs) &&
    (removedAtMs === undefined || Number.isSafeInteger(removedAtMs)) &&
    Array.isArray(apiAddresses) &&
    apiAddresses.every(
      (address) => isText(address?.api) && isText(address?.url) && isText(address?.version),
    )
  )
}

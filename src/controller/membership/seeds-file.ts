import { rmSync } from 'node:fs'

import type { AlarmRaiser } from '../../cluster/alarm-table.ts'
import type { CurrentConfiguration } from '../../cluster/cluster-node-deps.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import { writePublicFile } from '../../pki/secret-file.ts'
import { type SeedsConfig, SEEDS_MAX, seedsPath } from '../start/known-seeds.ts'

const HEAD = `# Addresses of the other controllers, written by this one. If its data folder is lost, it asks them for
# re-admission. A file of the cluster, like key and certificate: do not edit it.
`

interface SeedsFileDeps {
  readonly config: SeedsConfig
  readonly configuration: () => CurrentConfiguration
  /** Current mesh address of a connected member; null: the address in the member record applies. */
  readonly addressOf: (id: string) => string | null
  readonly alarms: AlarmRaiser
}

/**
 * Stores the addresses of the other members in a file outside the data folder, so that this
 * controller finds them after the loss of its data. The configuration's seeds are not enough: the
 * first controller has none, and those of other controllers become outdated.
 */
export class SeedsFile {
  readonly #deps: SeedsFileDeps
  readonly #path: string
  #written: string | null = null

  constructor(deps: SeedsFileDeps) {
    this.#deps = deps
    this.#path = seedsPath(deps.config)
  }

  /** Called periodically; writes the file only if the addresses have changed. */
  look(): void {
    const { config, configuration, addressOf } = this.#deps
    const { record, isCommitted } = configuration()
    const ids = record.members.map(({ id }) => id)
    if (!isCommitted || !ids.includes(config.id)) return
    const others = record.members
      .filter(({ id }) => id !== config.id)
      .map(({ id, address }) => addressOf(id) ?? address)
      .filter((address) => parseHostPort(address) !== null)
    const text = others.sort().slice(0, SEEDS_MAX).join('\n')
    if (text !== this.#written) this.#write(text)
  }

  #write(text: string): void {
    const { alarms, config } = this.#deps
    try {
      // Without other members, the file is removed: if this controller then starts without data, no
      // peer can admit it, so the start must fail.
      if (text === '') rmSync(this.#path, { force: true })
      else writePublicFile(this.#path, `${HEAD}${text}\n`)
      this.#written = text
      alarms.clear('NO_SEEDS')
    } catch (error) {
      if (config.cluster.seeds.length > 0) return
      alarms.raise('NO_SEEDS', { path: this.#path, fault: errorMessage(error) })
    }
  }
}

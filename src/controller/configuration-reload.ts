import type {
  ReloadControl,
  ChangedFile,
  OptionChange,
  ReloadResult,
} from '../api/host/reload-control.ts'
import type { Logger } from '../cluster/logger.ts'
import { type ChangedOption, compareConfigs } from '../config/controller/changed-options.ts'
import { loadControllerConfig } from '../config/controller/load.ts'
import type { ControllerConfig } from '../config/controller/options.ts'
import type { Environment } from '../config/engine/environment.ts'
import { checkOptionRelations } from '../config/controller/option-relations.ts'
import { formatConfigFault } from '../config/engine/fault.ts'
import { errorMessage } from '../lib/error-code.ts'
import { Problem } from '../lib/problems.ts'
import { fileFaultFields } from '../pki/file-fault.ts'
import type { Actor } from '../ports/actor.ts'
import type { ActionRecorder } from '../ports/membership.ts'
import { ConfiguredFiles } from './configured-files.ts'
import type { RunningOptions } from './running-options.ts'
import type { RejectedFiles } from './service/server-certificates.ts'

interface ReloadDeps {
  /** Absolute path of the configuration file. */
  readonly path: string
  readonly environment: Environment
  readonly running: RunningOptions
  /** Reads certificate, key and CA files again. @returns the files that were rejected. */
  readonly certificates: () => Promise<readonly RejectedFiles[]>
  readonly actions: ActionRecorder
  readonly log: Logger
}

/**
 * Options whose values the controller's certificate or data folder contains, so that a reload
 * cannot change them.
 */
const fixedOptions: ReadonlySet<string> = new Set(['id', 'trustDomain'])

/** Reads the configuration again, and applies the options that can change without a restart. */
export class ConfigurationReload implements ReloadControl {
  readonly #deps: ReloadDeps
  readonly #files: ConfiguredFiles
  /** The reload that a caller requested last; reloads run one after another. */
  #latest: Promise<unknown> = Promise.resolve()

  constructor(deps: ReloadDeps) {
    this.#deps = deps
    this.#files = new ConfiguredFiles(deps.running.config)
  }

  /** @throws {Problem} CONFIGURATION_REFUSED; this and any other error is logged before. */
  async reload(by: Actor): Promise<ReloadResult> {
    const { actions, running, log } = this.#deps
    const reloaded = this.#latest.then(() => this.#reload())
    this.#latest = reloaded.catch(() => undefined)
    const result = await reloaded.catch((err: unknown) => {
      if (!(err instanceof Problem)) {
        const remedy = 'some options may be in force; correct the cause and reload again'
        log.error({ err }, `configuration reload failed: ${errorMessage(err)}; ${remedy}`)
      }
      throw err
    })
    const files = (result.changedFiles ?? []).filter(({ isInForce }) => isInForce)
    const options = result.changed.filter(({ isInForce }) => isInForce)
    const keys = [...options, ...files].map(({ key }) => key)
    const reason = keys.length === 0 ? {} : { reason: keys.join(', ') }
    const target = running.config.id
    // This promise is not awaited, so that a reload works without a quorum.
    void actions.note({ action: 'configuration-reload', target, outcome: 'done', ...reason }, by)
    return result
  }

  async #reload(): Promise<ReloadResult> {
    const { path, running, log } = this.#deps
    const { changes, merged } = compareConfigs(running.config, this.#read())
    this.#refuseFixedOptions(changes)
    this.#judge(merged)
    await running.replace(merged)
    for (const change of changes) log.info({ key: change.key }, changeSentence(change))
    const rejected = await this.#rereadCertificates()
    const paths = new Set(rejected.flatMap((one) => one.paths))
    const changedFiles = this.#files.noteReload(merged, paths)
    for (const file of changedFiles) log.info({ path: file.path }, fileSentence(file))
    return {
      path,
      changed: changes.map(reloadedOption),
      changedFiles,
      refusedCertificates:
        rejected.length === 0 ? null : rejected.map(({ error }) => errorMessage(error)).join('; '),
    }
  }

  #read(): ControllerConfig {
    const { path, environment } = this.#deps
    const loaded = loadControllerConfig(path, environment)
    if (loaded.ok) return loaded.config
    throw this.#refused(loaded.faults.map(formatConfigFault).join('\n'))
  }

  /** A restart with another value of these options fails, so the operator learns it now. */
  #refuseFixedOptions(changes: readonly ChangedOption[]): void {
    const faults = changes
      .filter(({ key }) => fixedOptions.has(key))
      .map(({ key, from, to }) => `${key}: cannot change from ${from} to ${to}; undo this change`)
    if (faults.length > 0) throw this.#refused(faults.join('\n'))
  }

  /**
   * Checks the rules between options, because a new value may contradict an option that only a
   * restart can change.
   */
  #judge(merged: ControllerConfig): void {
    const faults: string[] = []
    checkOptionRelations(merged, (key, problem) => faults.push(`${key}: ${problem}`))
    if (faults.length > 0) throw this.#refused(`${faults.join('\n')}; restart the controller`)
  }

  #refused(detail: string): Problem {
    const { path, log } = this.#deps
    log.error({ path }, `configuration rejected: ${detail}; nothing was changed`)
    return new Problem('CONFIGURATION_REFUSED', { detail })
  }

  async #rereadCertificates(): Promise<readonly RejectedFiles[]> {
    const { certificates, log } = this.#deps
    const rejected = await certificates()
    for (const { error } of rejected) {
      const message = `certificate files rejected: ${errorMessage(error)}; keeping the current ones`
      log.error(fileFaultFields(error), message)
    }
    return rejected
  }
}

function reloadedOption({ isReloaded, ...change }: ChangedOption): OptionChange {
  return { ...change, isInForce: isReloaded }
}

function changeSentence({ key, from, to, isReloaded }: ChangedOption): string {
  const values = from === null || to === null ? '' : ` from ${from} to ${to}`
  return `option ${key} changed${values}; ${isReloaded ? 'it is in force' : 'a restart applies it'}`
}

function fileSentence({ key, isInForce, isRejected }: ChangedFile): string {
  const what = `the file of ${key} changed`
  if (isRejected) return `${what}; it was rejected`
  return `${what}; ${isInForce ? 'it is in force' : 'a restart applies it'}`
}

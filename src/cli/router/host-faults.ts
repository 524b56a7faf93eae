import { existsSync } from 'node:fs'

import { openListeningProbe, type ListeningProbe } from '../../controller/start/check-listeners.ts'
import type { ConfigFault } from '../../config/engine/fault.ts'
import type { LoadedRouterConfig } from '../../config/router/load.ts'
import { configuredEndpoints } from '../../config/router/router-relations.ts'
import { listenerProtocols } from '../../config/router/shared-options.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { formatHostPort, type HostPort } from '../../lib/text/names.ts'
import { systemClock } from '../../lib/clock.ts'
import { ProgramFailure } from '../../overlay/failure.ts'
import { noControllerReason } from '../../router/controllers/endpoints-file.ts'
import {
  readRouterIdentity,
  readServerIdentity,
} from '../../router/identity/reloadable-identity.ts'
import { findPidByCommandLine } from '../../controller/admin/pid-file.ts'
import { isRouterRunning } from './running-router.ts'

export type CheckedRouterConfig = Extract<LoadedRouterConfig, { ok: true }>

/** Faults on this host that would prevent the start of a router with a valid configuration. */
export interface HostStartFaults {
  readonly faults: readonly ConfigFault[]
  /** Notes for the user, each a sentence. */
  readonly notes: readonly string[]
}

/**
 * Checks the keys, certificates, controller addresses and ports that a router needs on this host to
 * start. Opens its ports and closes them again, unless the router runs.
 */
export async function findHostStartFaults(checked: CheckedRouterConfig): Promise<HostStartFaults> {
  const found = [
    identityFindings(checked),
    controllerFindings(checked),
    await portFindings(checked),
  ]
  return {
    faults: found.flatMap(({ faults }) => faults),
    notes: found.flatMap(({ notes }) => notes),
  }
}

/** Reads keys and certificates as a start does. A router that has not enrolled has none yet. */
function identityFindings(checked: CheckedRouterConfig): HostStartFaults {
  const { identity, web } = checked.config
  if (!isEnrolled(identity)) {
    const note = "the router has no certificates yet: 'flotilla router enroll' writes them"
    return { faults: [], notes: [note] }
  }
  try {
    readRouterIdentity(identity, systemClock.nowMs())
    for (const [at, { identity: own }] of web.entries()) {
      if (own !== null) readServerIdentity(own, `web[${at}].identity`)
    }
  } catch (error) {
    if (error instanceof ProgramFailure) {
      return { faults: [startFailureFault(checked, error.message)], notes: [] }
    }
    throw error
  }
  return { faults: [], notes: [] }
}

function isEnrolled({ cert, server_cert: serverCert }: RouterConfig['identity']): boolean {
  return [cert, serverCert].some(
    (source) => source !== null && (source.path === null || existsSync(source.path)),
  )
}

/** The fault for a start failure, whose message begins with an option such as `identity.key:`. */
function startFailureFault(checked: CheckedRouterConfig, message: string): ConfigFault {
  const [, key = '', problem = message] = /^([a-z_[\]0-9.]+): (.*)$/s.exec(message) ?? []
  return { source: checked.path, line: lineOf(checked, key), key, problem }
}

function lineOf({ effective }: CheckedRouterConfig, key: string): number | null {
  const source = effective.find((one) => one.key === key)?.source
  return source !== undefined && 'line' in source ? source.line : null
}

function controllerFindings({ config, path }: CheckedRouterConfig): HostStartFaults {
  const configured = configuredEndpoints(config).map(({ text }) => text)
  const problem = noControllerReason(configured, config.ctrl.endpointsFile)
  if (problem === null) return { faults: [], notes: [] }
  const { path: certificate } = config.identity.cert
  if (certificate !== null && !existsSync(certificate)) {
    const note = `ctrl names no controller: 'flotilla router enroll' writes the addresses of the enrollment token into ${config.ctrl.endpointsFile}`
    return { faults: [], notes: [note] }
  }
  return { faults: [{ source: path, line: null, key: 'ctrl', problem }], notes: [] }
}

/** An address on which a router listens. */
interface ListenedAddress extends HostPort {
  readonly key: string
  readonly transport: 'tcp' | 'udp'
}

/** Listens on all addresses at the same time, because two of them may conflict with each other. */
async function portFindings(checked: CheckedRouterConfig): Promise<HostStartFaults> {
  const { config, path } = checked
  const running = await findRunningRouter(path)
  if (running !== null) {
    const note = `a router with this configuration is running${running}, so its ports were not tested`
    return { faults: [], notes: [note] }
  }
  const held: ListeningProbe[] = []
  const faults: ConfigFault[] = []
  try {
    for (const { key, transport, host, port } of addressesOf(config)) {
      const one = await openListeningProbe({ host, port }, transport)
      held.push(one)
      if (one.fault === null) continue
      const problem = `${formatHostPort({ host, port })} ${one.fault}`
      faults.push({ source: path, line: lineOf(checked, key), key, problem })
    }
  } finally {
    await Promise.all(held.map(({ release }) => release()))
  }
  return { faults, notes: [] }
}

/**
 * The process that runs a router with this configuration, as text for a note: root may check the
 * configuration of a router that another user runs.
 * @returns null when no process runs it.
 */
async function findRunningRouter(path: string): Promise<string | null> {
  const pid = findPidByCommandLine(path)
  if (pid !== null) return ` (process ${pid})`
  return (await isRouterRunning(path)) ? '' : null
}

/** Each address once, because links and clients may share a port. */
function addressesOf({ edge, link, listeners, web }: RouterConfig): ListenedAddress[] {
  const all: ListenedAddress[] = []
  const add = (key: string, transport: 'tcp' | 'udp', { host, port }: HostPort): void => {
    const isKnown = all.some(
      (one) => one.host === host && one.port === port && one.transport === transport,
    )
    if (port !== 0 && !isKnown) all.push({ key, transport, host, port })
  }
  for (const [at, { bind }] of (link?.listeners ?? []).entries()) {
    if (bind.protocol === 'tls') add(`link.listeners[${at}].bind`, 'tcp', bind)
  }
  for (const [at, { binding, bind }] of listeners.entries()) {
    const isOpened = binding in listenerProtocols && (binding !== 'edge' || edge !== null)
    if (bind === null || !isOpened) continue
    add(`listeners[${at}].bind`, bind.protocol === 'udp' ? 'udp' : 'tcp', bind)
  }
  for (const [at, { bindPoints }] of web.entries()) {
    for (const [point, one] of bindPoints.entries()) {
      add(`web[${at}].bindPoints[${point}].interface`, 'tcp', one.interface)
    }
  }
  return all
}

import { existsSync } from 'node:fs'

import { openListeningProbe, type ListeningProbe } from '../../controller/start/check-listeners.ts'
import type { ConfigFault } from '../../config/engine/fault.ts'
import type { LoadedRouterConfig } from '../../config/router/load.ts'
import { configuredEndpoints } from '../../config/router/router-relations.ts'
import { listenerProtocols } from '../../config/router/shared-options.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { formatHostPort, type HostPort } from '../../lib/text/names.ts'
import { noControllerReason } from '../../router/controllers/endpoints-file.ts'
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
 * Finds everything that would prevent the start of a router on this host. Opens its ports and
 * closes them again.
 */
export async function findHostStartFaults(checked: CheckedRouterConfig): Promise<HostStartFaults> {
  const [controllers, ports] = [controllerFindings(checked), await portFindings(checked)]
  return {
    faults: [...controllers.faults, ...ports.faults],
    notes: [...controllers.notes, ...ports.notes],
  }
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
async function portFindings({
  config,
  path,
  effective,
}: CheckedRouterConfig): Promise<HostStartFaults> {
  const running = await findRunningRouter(path)
  if (running !== null) {
    const note = `a router with this configuration is running${running}, so its ports were not tested`
    return { faults: [], notes: [note] }
  }
  const lines = new Map(
    effective.map(({ key, source }) => [key, 'line' in source ? source.line : null]),
  )
  const held: ListeningProbe[] = []
  const faults: ConfigFault[] = []
  try {
    for (const { key, transport, host, port } of addressesOf(config)) {
      const one = await openListeningProbe({ host, port }, transport)
      held.push(one)
      if (one.fault === null) continue
      const problem = `${formatHostPort({ host, port })} ${one.fault}`
      faults.push({ source: path, line: lines.get(key) ?? null, key, problem })
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

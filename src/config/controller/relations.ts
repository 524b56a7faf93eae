import { parseHostPort } from '../../lib/text/names.ts'
import type { ControllerConfig } from './options.ts'

/** A rule between options that each are fine alone; told at the line of `key`. */
export interface RelationFault {
  readonly key: string
  readonly problem: string
}

/** Every rule that does not hold; judged only when each value alone is acceptable. */
export function relationFaults(config: ControllerConfig): RelationFault[] {
  return [
    ...timingFaults(config),
    ...timeoutFaults(config),
    ...portFaults(config),
    ...openFaults(config),
    ...signerFaults(config),
    ...certificateFaults(config),
    ...logFileFaults(config),
    ...eventFileFaults(config),
    ...backupFaults(config),
  ]
}

function timingFaults({ raft }: ControllerConfig): RelationFault[] {
  const faults: RelationFault[] = []
  for (const key of ['heartbeatMs', 'electionTimeoutMs', 'electionTimeoutMaxMs'] as const) {
    if (raft[key] % raft.tickMs !== 0) {
      faults.push({
        key: `raft.${key}`,
        problem: `must be a multiple of raft.tickMs (${raft.tickMs})`,
      })
    }
  }
  // If a timeout has fewer than four heartbeats, one lost frame and one slow disk write cost a
  // leader its office.
  if (raft.electionTimeoutMs < 4 * raft.heartbeatMs) {
    faults.push({
      key: 'raft.electionTimeoutMs',
      problem: `must be at least 4 times raft.heartbeatMs (${raft.heartbeatMs})`,
    })
  }
  if (raft.electionTimeoutMaxMs < raft.electionTimeoutMs + 2 * raft.tickMs) {
    faults.push({
      key: 'raft.electionTimeoutMaxMs',
      problem: `must exceed raft.electionTimeoutMs (${raft.electionTimeoutMs}) by 2 ticks or more, or elections tie`,
    })
  }
  return faults
}

function timeoutFaults({ api, limits }: ControllerConfig): RelationFault[] {
  if (limits.writeTimeoutMs < api.requestTimeoutMs) return []
  return [
    {
      key: 'limits.writeTimeoutMs',
      problem: `must be below api.requestTimeoutMs (${api.requestTimeoutMs}), or callers never learn the outcome of a write`,
    },
  ]
}

/** The data folder is set aside, filled and judged as a whole. */
function logFileFaults({ data, logFile: { path } }: ControllerConfig): RelationFault[] {
  if (path === null || !`${path}/`.startsWith(`${data}/`)) return []
  return [{ key: 'logFile.path', problem: `must be outside of data (${data})` }]
}

/** Two writers would rename the files of each other. */
function eventFileFaults({ data, events, logFile }: ControllerConfig): RelationFault[] {
  const { path } = events.file
  if (path === null) return []
  const key = 'events.file.path'
  if (`${path}/`.startsWith(`${data}/`)) {
    return [{ key, problem: `must be outside of data (${data})` }]
  }
  if (path !== logFile.path) return []
  return [{ key, problem: `is also the log file (${path}); choose another file for events` }]
}

/**
 * Files with the secrets of the cluster are never written for everybody; the data folder is lost
 * with what is in it.
 */
function backupFaults({ data, backup: { folder, recipient } }: ControllerConfig): RelationFault[] {
  if (folder === null) return []
  const faults: RelationFault[] = []
  if (recipient === null) {
    const problem = 'requires backup.recipient, the public key that backups are encrypted for'
    faults.push({ key: 'backup.folder', problem })
  }
  if (`${folder}/`.startsWith(`${data}/`)) {
    faults.push({ key: 'backup.folder', problem: `must be outside of data (${data})` })
  }
  return faults
}

function signerFaults({ identity: { signer } }: ControllerConfig): RelationFault[] {
  if ((signer.cert === null) === (signer.key === null)) return []
  const [given, missing] = signer.cert === null ? ['key', 'cert'] : ['cert', 'key']
  return [
    {
      key: `identity.signer.${given}`,
      problem: `requires identity.signer.${missing}; set both or neither`,
    },
  ]
}

/** Each is renewed by itself: two that share a file would undo each other. */
function certificateFaults({ identity, serverCertificates }: ControllerConfig): RelationFault[] {
  const certs = [identity.cert, ...serverCertificates.map(({ cert }) => cert)]
  return serverCertificates.flatMap(({ cert }, at): RelationFault[] => {
    if (certs.indexOf(cert) === at + 1) return []
    const problem = `is named more than once (${cert}); give each certificate a file of its own`
    return [{ key: `serverCertificates[${at}].cert`, problem }]
  })
}

function portFaults(config: ControllerConfig): RelationFault[] {
  const binds = [
    { key: 'cluster.bind', bind: config.cluster.bind },
    ...(config.routers.bind === null ? [] : [{ key: 'routers.bind', bind: config.routers.bind }]),
    ...config.web.map(({ bind }, at) => ({ key: `web[${at}].bind`, bind })),
  ]
  const faults: RelationFault[] = []
  for (const [at, { key, bind }] of binds.entries()) {
    const other = binds.slice(0, at).find((earlier) => isSameListener(earlier.bind, bind))
    if (other !== undefined) {
      faults.push({ key, problem: `takes the same address as ${other.key} (${other.bind})` })
    }
  }
  return faults
}

/**
 * An API that is open to anyone who reaches it stands alone, where somebody has chosen who does.
 */
function openFaults({ web }: ControllerConfig): RelationFault[] {
  return web.flatMap(({ bind, apis }, at): RelationFault[] => {
    if (!apis.includes('metrics')) return []
    if (apis.length > 1) {
      const problem =
        'metrics needs no log-in; move it to a listener of its own, on a private address'
      return [{ key: `web[${at}].apis`, problem }]
    }
    if (!EVERY_HOST.has(parseHostPort(bind)?.host ?? '')) return []
    const problem = `exposes the metrics on every address of this host (${bind}); bind a private address`
    return [{ key: `web[${at}].bind`, problem }]
  })
}

const EVERY_HOST = new Set(['0.0.0.0', '::'])

function isSameListener(a: string, b: string): boolean {
  const first = parseHostPort(a)
  const second = parseHostPort(b)
  if (first === null || second === null || first.port !== second.port) return false
  return first.host === second.host || EVERY_HOST.has(first.host) || EVERY_HOST.has(second.host)
}

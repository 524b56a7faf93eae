import { createSocket } from 'node:dgram'
import { createServer, isIPv6, Server } from 'node:net'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { formatHostPort, type HostPort, parseHostPort } from '../../lib/text/names.ts'
import type { StartCheckReport } from './check-report.ts'
import { errorCode, errorMessage } from '../../lib/error-code.ts'

export async function checkListeners(
  config: ControllerConfig,
  report: StartCheckReport,
): Promise<void> {
  const binds = [
    { key: 'cluster.bind', bind: config.cluster.bind },
    ...(config.routers.bind === null ? [] : [{ key: 'routers.bind', bind: config.routers.bind }]),
    ...config.web.map(({ bind }, at) => ({ key: `web[${at}].bind`, bind })),
  ]
  for (const [at, { key, bind }] of binds.entries()) {
    // Each address is tested once: an address that routers and clients share needs only one port.
    if (binds.slice(0, at).some((earlier) => earlier.bind === bind)) continue
    const fault = await findListenFault(bind)
    if (fault !== null) report.faults.push(`${key}: ${bind} ${fault}`)
  }
}

/**
 * Tests an address by listening on it for a moment.
 * @returns null, or the fault and its remedy.
 */
export async function findListenFault(bind: string): Promise<string | null> {
  const { fault, release } = await openListeningProbe(parseHostPort(bind) ?? { host: '', port: 0 })
  await release()
  return fault
}

export interface ListeningProbe {
  /**
   * Reason why the controller cannot listen on the address, with a remedy; null if this object
   * listens on it.
   */
  readonly fault: string | null
  readonly release: () => Promise<void>
}

/** Listens on an address until the caller calls `release`. */
export async function openListeningProbe(
  { host, port }: HostPort,
  transport: 'tcp' | 'udp' = 'tcp',
): Promise<ListeningProbe> {
  const { promise, resolve } = Promise.withResolvers<unknown>()
  const listened = (): void => resolve(null)
  const socket =
    transport === 'udp'
      ? createSocket(isIPv6(host) ? 'udp6' : 'udp4').once('error', resolve)
      : createServer().once('error', resolve)
  if (socket instanceof Server) socket.listen({ host, port, exclusive: true }, listened)
  else socket.bind({ address: host, port, exclusive: true }, listened)
  const error = await promise
  return {
    fault: error === null ? null : faultOf(error, { host, port }, transport),
    release: async () => {
      if (error === null) await new Promise<void>((done) => socket.close(() => done()))
    },
  }
}

function faultOf(error: unknown, { port }: HostPort, transport: 'tcp' | 'udp'): string {
  switch (errorCode(error)) {
    case 'EADDRINUSE': {
      const list = transport === 'udp' ? 'ss -lunp' : 'ss -ltnp'
      return `is in use by another process; stop that process ('${list} sport = :${port}' names it), or choose another port`
    }
    case 'EACCES':
      return 'needs a privileged user or the capability CAP_NET_BIND_SERVICE; choose a port above 1023'
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `is not an address of this host; bind one that is, or ${formatHostPort({ host: '0.0.0.0', port })}`
    default:
      return `cannot be listened on (${errorMessage(error)}); choose another address`
  }
}

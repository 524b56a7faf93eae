import { createServer } from 'node:net'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { formatHostPort, parseHostPort } from '../../lib/text/names.ts'
import type { Report } from './check-report.ts'
import { errorCode, errorMessage } from '../../lib/error-code.ts'

export async function checkListeners(config: ControllerConfig, report: Report): Promise<void> {
  const binds = [
    { key: 'cluster.bind', bind: config.cluster.bind },
    ...(config.routers.bind === null ? [] : [{ key: 'routers.bind', bind: config.routers.bind }]),
    ...config.web.map(({ bind }, at) => ({ key: `web[${at}].bind`, bind })),
  ]
  for (const { key, bind } of binds) {
    const fault = await listenFault(bind)
    if (fault !== null) report.faults.push(`${key}: ${bind} ${fault}`)
  }
}

/**
 * Tests an address by listening on it briefly.
 * @returns null, or the fault and its remedy.
 */
export async function listenFault(bind: string): Promise<string | null> {
  const { host, port } = parseHostPort(bind) ?? { host: '', port: 0 }
  const server = createServer()
  const error = await new Promise<unknown>((resolve) => {
    server.once('error', resolve)
    server.listen({ host, port, exclusive: true }, () => resolve(null))
  })
  if (error === null) {
    await new Promise((resolve) => server.close(resolve))
    return null
  }
  switch (errorCode(error)) {
    case 'EADDRINUSE':
      return `is in use by another process; stop that process ('ss -ltnp sport = :${port}' names it), or choose another port`
    case 'EACCES':
      return 'needs a privileged user; choose a port above 1023'
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `is not an address of this host; bind one that is, or ${formatHostPort({ host: '0.0.0.0', port })}`
    default:
      return `cannot be listened on (${errorMessage(error)}); choose another address`
  }
}

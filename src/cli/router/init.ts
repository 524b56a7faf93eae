import { existsSync } from 'node:fs'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { dirname, resolve } from 'node:path'

import {
  composeCommentedRouterConfig,
  type RouterType,
} from '../../config/router/commented-config.ts'
import { runAsFileOwner } from '../../controller/run-as-file-owner.ts'
import { CommandFailure, EXIT_FAILED, usageFailure } from '../../controller/command-failure.ts'
import { writeNewFile } from '../../pki/secret-file.ts'
import { printJson, printLine, quoteShellWord } from '../terminal/output.ts'
import { printWarning, shortHostNameWarning } from '../terminal/short-host-name.ts'
import { firstStartCommand } from '../terminal/start-command.ts'

export interface InitRouterOptions {
  readonly name?: string
  readonly advertise?: string
  readonly controller: readonly string[]
  readonly edgePort: number
  readonly linkPort: number
  readonly mode: 'host' | 'proxy' | 'tproxy'
  readonly json?: boolean
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/
const HOST_NAME = /^(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*$/
const ENDPOINT = /^(?:tls:)?((?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})$/

/**
 * Writes a complete configuration for a router of the given type.
 * @throws {CommandFailure} exit 2 for an option; exit 1 when the file exists.
 */
export async function initRouter(
  type: RouterType,
  path: string,
  options: InitRouterOptions,
): Promise<void> {
  const advertise = advertisedHost(options.advertise ?? hostname())
  const first = isIP(advertise) === 0 ? (advertise.split('.')[0] ?? '') : 'router'
  const name = identityName(options.name ?? first)
  const { edgePort, linkPort, mode } = options
  const endpoints = options.controller.map(endpointOf)
  const router = { type, name, advertise, endpoints, edgePort, linkPort, mode }
  if (existsSync(path)) {
    const sentence = `${path} already exists and stays unchanged; name another file`
    throw new CommandFailure(EXIT_FAILED, sentence)
  }
  const text = composeCommentedRouterConfig(router)
  await runAsFileOwner(dirname(resolve(path)), () => writeNewFile(path, text, 0o644))
  // No other host dials a router of the type tunnel.
  const isDialed = type !== 'tunnel'
  if (isDialed && options.advertise === undefined) printWarning(shortHostNameWarning(advertise))
  if (options.json === true) {
    printJson({ file: path, type, name, advertise })
    return
  }
  const file = quoteShellWord(path)
  printLine(`wrote ${path}, for the ${type} router ${name} at ${advertise}
next: flotilla router check ${file}
      flotilla router enroll ${file} --jwt TOKEN
      ${firstStartCommand('router', path)}`)
}

function advertisedHost(host: string): string {
  if (isIP(host) !== 0 || HOST_NAME.test(host)) return host
  throw usageFailure(
    `--advertise: expected a host name or an IP address without a port, found ${JSON.stringify(host)}`,
  )
}

function identityName(name: string): string {
  if (NAME.test(name)) return name
  throw usageFailure(
    `--name: expected up to 64 letters, digits and . _ -, found ${JSON.stringify(name)}`,
  )
}

function endpointOf(text: string): string {
  const address = ENDPOINT.exec(text)?.[1]
  if (address !== undefined) return `tls:${address}`
  throw usageFailure(
    `--controller: expected the router port of a controller, HOST:PORT, found ${JSON.stringify(text)}`,
  )
}

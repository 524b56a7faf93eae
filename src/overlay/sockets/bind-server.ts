import type { Server } from 'node:net'

import { errorMessage } from '../../lib/error-code.ts'
import { startListening } from '../../lib/runtime/listening.ts'
import { formatHostPort, type HostPort } from '../../lib/text/names.ts'
import { ProgramFailure } from '../failure.ts'

/** An address on which to listen; `text` is its form in the configuration. */
interface BindPlace extends HostPort {
  readonly text?: string
  readonly ipv6Only?: boolean
}

/**
 * Resolves when the server listens. The caller must handle later errors.
 * @param key key of the address in the configuration.
 * @throws {ProgramFailure} when the server cannot listen.
 */
export async function bindServer(server: Server, bind: BindPlace, key: string): Promise<void> {
  const { host, port, ipv6Only = false } = bind
  try {
    await startListening(server, { host, port, ipv6Only })
  } catch (error) {
    throw listenFailure(key, bind, error)
  }
}

export function listenFailure(key: string, bind: BindPlace, error: unknown): ProgramFailure {
  const text = bind.text ?? formatHostPort(bind)
  return new ProgramFailure(`${key}: cannot listen on ${text}: ${errorMessage(error)}`, {
    cause: error,
  })
}

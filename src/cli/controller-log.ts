import { destination, pino, stdTimeFunctions } from 'pino'
import type { Logger } from 'pino'

import type { ControllerConfig } from '../config/options.ts'

/**
 * JSON lines on stdout. Written at once: the line that tells why a process ends is the one that must not be lost, and
 * nothing is logged for a request that goes well.
 */
export function createLog({ id, logLevel }: Pick<ControllerConfig, 'id' | 'logLevel'>): Logger {
  const options = { level: logLevel, base: { id }, timestamp: stdTimeFunctions.isoTime }
  return pino(options, destination({ dest: 1, sync: true }))
}

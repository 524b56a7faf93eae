import { pino, stdTimeFunctions } from 'pino'
import type { Logger } from 'pino'

import type { ControllerConfig } from '../config/options.ts'
import { auditLimits } from '../fsm/audit-log.ts'
import type { AuditTrail } from '../ports/audit.ts'
import { LineWriter, openOutput } from './line-writer.ts'

/** What a controller tells of itself: JSON lines, all to one output and in their order. */
export interface ControllerLog {
  readonly log: Logger
  /** null: the configuration wants none. */
  readonly audit: AuditTrail | null
}

type LogConfig = Pick<ControllerConfig, 'id' | 'logLevel' | 'audit'>

/** To stdout; what waits when the process ends is written then. Once in a process. */
export function createLog(config: LogConfig): ControllerLog {
  const writer = new LineWriter(openOutput())
  process.on('exit', () => writer.flushSync())
  return logOver(writer, config)
}

export function logOver(writer: LineWriter, { id, logLevel, audit }: LogConfig): ControllerLog {
  const common = { base: { id }, timestamp: stdTimeFunctions.isoTime }
  const log = pino({ ...common, level: logLevel }, writer)
  writer.onDropped = (dropped) =>
    log.warn({ dropped }, `${dropped} lines were dropped, as this log is not written fast enough`)
  if (!audit.log) return { log, audit: null }
  return { log, audit: new AuditLines(pino({ ...common, level: 'info' }, writer), writer) }
}

/** A line a write. Costs the making of one short text, and under pressure not even that. */
class AuditLines implements AuditTrail {
  readonly #log: Logger
  readonly #writer: LineWriter

  constructor(log: Logger, writer: LineWriter) {
    this.#log = log
    this.#writer = writer
  }

  applied: AuditTrail['applied'] = (record) => {
    if (this.#givesWay()) return
    const { session, address, action, entity, outcome, index } = record
    const actor = bounded(record.actor)
    const who = { actor, actorName: bounded(record.actorName), session, address }
    const why = record.reason === '' ? {} : { reason: bounded(record.reason) }
    const what = { action, entity, entityId: bounded(record.entityId) }
    const [fields, also] = [boundedList(record.fields), boundedList(record.also)]
    const at = new Date(record.atMs).toISOString()
    this.#log.info(
      { audit: 'write', ...who, ...what, fields, also, outcome, ...why, index, at },
      'audit',
    )
  }

  refused: AuditTrail['refused'] = (write) => {
    if (!this.#givesWay())
      this.#log.info({ audit: 'refusal', ...write, actorName: bounded(write.actorName) }, 'audit')
  }

  #givesWay(): boolean {
    if (!this.#writer.isCrowded) return false
    this.#writer.drop()
    return true
  }
}

/** As long as what is remembered. */
function bounded(text: string): string {
  return text.slice(0, auditLimits.textCharactersMax)
}

function boundedList(names: readonly string[]): readonly string[] {
  return names.slice(0, auditLimits.namesMax).map(bounded)
}

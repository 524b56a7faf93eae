import type { Logger } from 'pino'

import type { ControllerConfig } from '../../config/controller/options.ts'
import { auditLimits } from '../../fsm/records/audit-line.ts'
import type { AuditTrail } from '../../ports/audit.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { LineWriter, openLineOutput } from '../terminal/line-writer.ts'
import { createStdoutSink, createJsonLogger, type LineSink } from '../terminal/log-lines.ts'
import { RotatingFile, type RotatingFileOptions } from '../../lib/runtime/rotating-file.ts'
import { errorMessage } from '../../lib/error-code.ts'

/**
 * Writers for the log lines, audit lines and events of a controller. They share one output, which
 * keeps the order of the lines, unless log and audit lines go to a file.
 */
export interface ControllerLogWriters {
  readonly log: Logger
  /** null if the configuration disables audit lines. */
  readonly audit: AuditTrail | null
  /** Writer for events on standard output. */
  readonly lines: LineWriter
}

type LogConfig = Pick<ControllerConfig, 'id' | 'logLevel' | 'audit'>

/**
 * Opens the log: writes JSON lines to the configured file; without a file to stdout, as readable
 * lines if stdout is a terminal. Writes buffered lines when the process ends. May be called once
 * per process.
 * @throws {CommandFailure} when the file cannot be written.
 */
export function createControllerLog(
  config: LogConfig & Pick<ControllerConfig, 'logFile'>,
): ControllerLogWriters {
  const { path, ...bounds } = config.logFile
  const writer = new LineWriter(path === null ? openLineOutput() : openLogFile({ path, ...bounds }))
  // On standard output, log lines and events share one writer, because two writers would mix parts
  // of lines.
  const lines = path === null ? writer : new LineWriter(openLineOutput())
  process.on('exit', () => {
    writer.flushSync()
    if (lines !== writer) lines.flushSync()
  })
  const sink = path === null ? createStdoutSink(writer) : writer
  return { ...createControllerLogWithSink(writer, config, sink), lines }
}

function openLogFile(options: RotatingFileOptions): RotatingFile {
  try {
    return new RotatingFile(options)
  } catch (error) {
    const message = `logFile.path: ${options.path} cannot be written (${errorMessage(error)}); name a file in a folder that this user can write`
    throw new CommandFailure(EXIT_FAILED, message, error)
  }
}

export function createControllerLogWithSink(
  writer: LineWriter,
  { id, logLevel, audit }: LogConfig,
  sink: LineSink = writer,
): Omit<ControllerLogWriters, 'lines'> {
  const base = { id }
  const log = createJsonLogger(sink, { base, level: logLevel })
  writer.onDropped = (dropped) =>
    log.warn({ dropped }, `dropped ${dropped} log lines: output too slow, or not writable`)
  if (!audit.log) return { log, audit: null }
  const lines = createJsonLogger(sink, { base, level: 'info' })
  return { log, audit: new AuditLines(lines, writer, () => log.isLevelEnabled('debug')) }
}

/**
 * Writes one audit line for each write request, and one line for each traced request, or for every
 * request at the log level debug. Formatting a line is cheap; under overload, lines are dropped.
 */
class AuditLines implements AuditTrail {
  readonly #log: Logger
  readonly #writer: LineWriter
  readonly #isVerbose: () => boolean

  /**
   * @param isVerbose returns true if a line is written for every request, not only for traced ones;
   * called for each request, because the log level can change.
   */
  constructor(log: Logger, writer: LineWriter, isVerbose: () => boolean) {
    this.#log = log
    this.#writer = writer
    this.#isVerbose = isVerbose
  }

  applied: AuditTrail['applied'] = (record, traceId) => {
    if (this.#givesWay()) return
    const { session, address, action, entity, outcome, index } = record
    const actor = bounded(record.actor)
    const who = { actor, actorName: bounded(record.actorName), session, address }
    const why = record.reason === '' ? {} : { reason: bounded(record.reason) }
    const what = { action, entity, entityId: bounded(record.entityId) }
    const [fields, also] = [boundedList(record.fields), boundedList(record.also)]
    const at = new Date(record.atMs).toISOString()
    const trace = traceId === undefined ? {} : { traceId }
    this.#log.info(
      { audit: 'write', ...who, ...what, fields, also, outcome, ...why, index, at, ...trace },
      'audit',
    )
  }

  refused: AuditTrail['refused'] = (write) => {
    if (this.#givesWay()) return
    const { refusal, actorName, ...rest } = write
    const { reason, signerId, claim } = refusal ?? {}
    this.#log.info(
      {
        audit: 'refusal',
        ...rest,
        actorName: bounded(actorName),
        ...(reason === undefined ? {} : { reason }),
        ...(signerId === undefined ? {} : { signerId }),
        ...(claim === undefined ? {} : { claim: bounded(claim) }),
      },
      'audit',
    )
  }

  answered: AuditTrail['answered'] = ({ isTraced, trace, tookMs, ...request }) => {
    if (!(isTraced || this.#isVerbose()) || this.#givesWay()) return
    const { traceId, spanId, parentSpanId } = trace()
    const ids = { traceId, spanId, ...(parentSpanId === '' ? {} : { parentSpanId }) }
    this.#log.info({ access: request, ms: Math.round(tookMs), ...ids }, 'request')
  }

  #givesWay(): boolean {
    if (!this.#writer.isCrowded) return false
    this.#writer.drop()
    return true
  }
}

/** Truncates the text to the maximum length in an audit line. */
function bounded(text: string): string {
  return text.slice(0, auditLimits.textCharactersMax)
}

function boundedList(names: readonly string[]): readonly string[] {
  return names.slice(0, auditLimits.namesMax).map(bounded)
}

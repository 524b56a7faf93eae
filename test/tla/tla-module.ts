import type { Trace } from './trace-event.ts'

/** Converts a recorded run into a TLA+ module, so that TLC needs no additional JSON reader. */
export function traceModule(trace: Trace): string {
  return [
    '---- MODULE TraceData ----',
    'EXTENDS Sequences',
    `TraceServers == ${tlaOf(trace.servers)}`,
    `TraceFormed == ${tlaOf(trace.formed)}`,
    'Trace == <<',
    trace.events.map(tlaOf).join(',\n'),
    '>>',
    '====',
    '',
  ].join('\n')
}

/** Objects become records, arrays become sequences. */
function tlaOf(value: unknown): string {
  if (Array.isArray(value)) return `<<${value.map(tlaOf).join(', ')}>>`
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).map(([key, field]) => `${key} |-> ${tlaOf(field)}`)
    return `[${fields.join(', ')}]`
  }
  if (typeof value === 'boolean') return value ? 'TRUE' : 'FALSE'
  return JSON.stringify(value)
}

import { readFileSync, writeFileSync } from 'node:fs'
import { assert } from '../../src/lib/assert.ts'
import type { Recording } from './record.ts'
import type { Trace, TraceEvent } from './trace-event.ts'

/** One JSON object per line: the header of the run, then its events. */
export function writeTrace(path: string, { trace, failure }: Recording): void {
  const { servers, formed, events } = trace
  const header = { servers, formed, failure: failure?.message ?? null }
  writeFileSync(path, [header, ...events].map((line) => `${JSON.stringify(line)}\n`).join(''))
}

export function readTrace(path: string): Recording {
  const [first, ...rest] = readFileSync(path, 'utf8').trimEnd().split('\n')
  assert(first !== undefined, `${path} is not empty`)
  const { servers, formed, failure } = JSON.parse(first) as Omit<Trace, 'events'> & {
    readonly failure: string | null
  }
  const events = rest.map((line) => JSON.parse(line) as TraceEvent)
  return {
    trace: { servers, formed, events },
    failure: failure === null ? null : new Error(failure),
  }
}

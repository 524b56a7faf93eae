import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import {
  type EventField,
  type EventSubject,
  commonEventFields,
} from '../../src/events/event-field.ts'
import { eventSubjects } from '../../src/events/namespaces.ts'
import { EVENT_NAMESPACES } from '../../src/lib/event-namespaces.ts'
import { RECORD_NAMESPACES } from '../../src/ports/events.ts'

const page = join(import.meta.dirname, '../../docs/integrate/events.md')
const BEGIN = '<!-- Printed from src/events/subjects; FLOTILLA_RECORD=1 records it. -->'

const emitters = {
  every: 'every controller, with the same id',
  observer: 'the controller that observed the event',
  leader: 'the leader',
  receiver: 'the controller that received the report of the router',
  itself: 'every controller, with the figures that it has counted or received',
} as const

function tableOf(fields: readonly EventField[]): string {
  const rows = fields.map(
    ({ name, type, meaning, isOptional }) =>
      `| \`${name}\` | ${type}${isOptional === true ? ', may be absent' : ''} | ${meaning} |`,
  )
  return ['| field | type | meaning |', '|---|---|---|', ...rows].join('\n')
}

function sectionOf({ namespace, aliases, about, types, fields }: EventSubject): string {
  const known = aliases.map((name) => `\`${name}\``).join(', ')
  const rows = types.map(
    ({ name, emitter, when }) => `| \`${name}\` | ${when} | ${emitters[emitter]} |`,
  )
  return [
    `### ${namespace}`,
    `${about}${RECORD_NAMESPACES.has(namespace) ? ' Only administrators can read these events.' : ''}${known === '' ? '' : ` Alternative name in subscriptions: ${known}.`}`,
    ['| type | when | emitted by |', '|---|---|---|', ...rows].join('\n'),
    tableOf(fields),
  ].join('\n\n')
}

function printed(): string {
  const sections = EVENT_NAMESPACES.map((namespace) => sectionOf(eventSubjects[namespace]))
  return [BEGIN, '### In every event', tableOf(commonEventFields), ...sections, ''].join('\n\n')
}

test('docs/integrate/events.md has every namespace with its types and fields', () => {
  const text = readFileSync(page, 'utf8')
  const at = text.indexOf(BEGIN)
  expect(at, 'the page contains the marker of the recorded part').toBeGreaterThan(0)
  if (process.env['FLOTILLA_RECORD'] === '1') writeFileSync(page, text.slice(0, at) + printed())
  expect(readFileSync(page, 'utf8').slice(at), 'FLOTILLA_RECORD=1 records it').toBe(printed())
})

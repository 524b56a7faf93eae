import { expect, test } from 'vitest'

import { newestChanges } from '../../src/console/pages/activity/newest-changes.ts'
import { auditEntry } from '../../src/entities/kinds/audit-entry.ts'
import { noQueryLinks, QueryCompiler } from '../../src/fsm/query/evaluate.ts'
import { parseQuery } from '../../src/fsm/query/parser.ts'
import { QueryCostCounter } from '../../src/fsm/query/query-cost.ts'

// Goal: the list of recent changes shows what people changed.

interface Entry {
  readonly actor: string
  readonly action: string
  readonly entity: string
}

const { where } = parseQuery(newestChanges.filter)
if (where === null) throw new Error('the query of recent changes has no filter')
const isShown = new QueryCompiler(noQueryLinks, new QueryCostCounter()).predicate(auditEntry, where)
const shows = (entry: Entry): boolean => isShown({ id: '1', ...entry } as never)

test('recent changes omit terminators that a router creates or removes, whether or not the audit record names the changed record', () => {
  expect(shows({ actor: 'router:r1', action: 'create', entity: 'terminator' })).toBe(false)
  for (const action of ['hosted-terminator-create', 'hosted-terminators-remove']) {
    expect(shows({ actor: 'router:r1', action, entity: '' })).toBe(false)
  }
})

test('recent changes contain terminators that a person creates and other changes that routers make, but no created sessions', () => {
  expect(shows({ actor: 'admin', action: 'create', entity: 'terminator' })).toBe(true)
  expect(shows({ actor: 'router:r1', action: 'enroll', entity: 'edgeRouter' })).toBe(true)
  expect(shows({ actor: 'admin', action: 'session-create', entity: 'session' })).toBe(false)
})

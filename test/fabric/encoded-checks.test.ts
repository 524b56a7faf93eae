import { expect, test } from 'vitest'

import { encodeModelEvent } from '../../src/fabric/model/encode.ts'
import type { ModelEvent } from '../../src/ports/router-model.ts'

function versionsOf(versions: readonly string[]): unknown {
  const terms = { case: 'os', systems: [{ osType: 'Linux', versions }] } as const
  const value = { id: 'c1', name: 'linux', typeId: 'OS', terms }
  const event: ModelEvent = { kind: 'postureCheck', action: 'create', value }
  return JSON.parse(
    JSON.stringify(encodeModelEvent(event, 0), (_, each: unknown) =>
      typeof each === 'bigint' ? String(each) : each,
    ),
  )
}

test('a check that accepts any version of an operating system is sent to routers with a version range, because OpenZiti routers need one', () => {
  expect(JSON.stringify(versionsOf([]))).toContain('"osVersions":[">=0.0.0"]')
  expect(JSON.stringify(versionsOf(['>=5.4.0']))).toContain('"osVersions":[">=5.4.0"]')
})

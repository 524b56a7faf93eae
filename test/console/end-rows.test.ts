import { expect, test } from 'vitest'

import { ApiRefusalError } from '../../src/client/client-errors.ts'
import { markOffline, pathRouters } from '../../src/console/pages/live/circuit-path.ts'
import { endRows } from '../../src/console/pages/live/end-rows.ts'

// Goal: a person ends all circuits of a group at once, and sees which circuits have lost a router.

const rows = ['a', 'b', 'c'].map((id) => ({ id }))

/** Ends rows; some fail with an error. */
async function ended(errors: Readonly<Record<string, Error>>) {
  const ids: string[] = []
  const end = (id: string): Promise<void> => {
    ids.push(id)
    return errors[id] === undefined ? Promise.resolve() : Promise.reject(errors[id])
  }
  const failure = await endRows(rows, end).then(
    () => null,
    (error: unknown) => error,
  )
  return { ids, failure }
}

const refusal = (status: number): ApiRefusalError => new ApiRefusalError(status, null)

test('ending a row succeeds if the row no longer exists', async () => {
  expect(await ended({ b: refusal(404) })).toEqual({ ids: ['a', 'b', 'c'], failure: null })
})

test('if a row cannot be ended, the console nevertheless ends the remaining rows, and reports the first failure', async () => {
  const first = refusal(403)
  expect(await ended({ a: first, b: new Error('away') })).toEqual({
    ids: ['a', 'b', 'c'],
    failure: first,
  })
})

test('a router of a path is marked while it is offline', () => {
  const path = { nodes: [{ id: 'r1', name: 'router1' }, { id: 'r3' }], links: [] }
  expect(pathRouters(markOffline(path, new Set(['r3'])))).toEqual([
    { id: 'r1', name: 'router1' },
    { id: 'r3', name: '', isOffline: true },
  ])
})

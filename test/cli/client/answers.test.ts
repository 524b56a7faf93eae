import { describe, expect, test } from 'vitest'
import { managementOrigins } from '../../../src/cli/log-in/login.ts'
import { readSessionResponse } from '../../../src/cli/log-in/rest-session.ts'

describe('the response to a log-in', () => {
  const session = { token: 't', identity: { name: 'anna' }, authQueries: [] }

  test('is accepted as a session, with or without a list of second factors', () => {
    expect(readSessionResponse(session)).toEqual(session)
    expect(readSessionResponse({ ...session, authQueries: null })).toEqual(session)
  })

  test.each([
    [null],
    ['text'],
    [7],
    [[]],
    [{}],
    [{ ...session, token: 7 }],
    [{ ...session, identity: null }],
    [{ ...session, identity: 'anna' }],
    [{ ...session, authQueries: {} }],
    [{ ...session, authQueries: [null] }],
  ])('is refused with an error of one sentence if it is %j', (data) => {
    expect(() => readSessionResponse(data)).toThrow(
      /^the answer to the log-in is no session; [^\n]+$/,
    )
  })
})

test('only valid API addresses are read from a list of controllers', () => {
  const good = { apiAddresses: { 'edge-management': [{ url: 'https://a.test:1280/x' }, null, 7] } }
  const odd = [null, 7, {}, { apiAddresses: null }, { apiAddresses: { 'edge-management': 'x' } }]
  expect(managementOrigins([...odd, good])).toEqual(['https://a.test:1280'])
  for (const listed of [null, 'x', {}, 7]) expect(managementOrigins(listed)).toEqual([])
})

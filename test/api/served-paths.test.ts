import { describe, expect, test } from 'vitest'
import { ServedPaths } from '../../src/api/http/served-paths.ts'

// Goal: the response distinguishes a path with other methods from a path that does not exist, for
// any request of an unauthenticated caller.

const served = new ServedPaths()
for (const path of ['/a', '/a/{id}', '/a/{id}/b', '/a/summary', '/a/summary/c']) served.add(path)

describe('a request path', () => {
  test.each(['/a', '/a/7', '/a/7/b', '/a/summary', '/a/summary/c', '/a/summary/b', '/a/7?x=1/2'])(
    'that is "%s" is served',
    (path) => {
      expect(served.has(path)).toBe(true)
    },
  )

  test.each(['/', '', '/b', '/a/', '/a//b', '/a/7/c', '/a/7/b/', '/a/7/b/8', 'a', '/A'])(
    'that is "%s" is not served',
    (path) => {
      expect(served.has(path)).toBe(false)
    },
  )

  test('is percent-decoded, and used unchanged if its escapes are invalid', () => {
    expect(served.has('/%61/7')).toBe(true)
    expect(served.has('/%zz/7')).toBe(false)
    expect(served.has('/a/%zz')).toBe(true)
    expect(served.has('/a%2f7')).toBe(false)
  })

  test('with 100,000 segments is not served, and causes no error', () => {
    expect(served.has('/a'.repeat(100_000))).toBe(false)
  })
})

import { describe, expect, test } from 'vitest'

import { unsupportedNodeReason } from '../../src/lib/runtime/unsupported-node.ts'

describe('The check for supported Node versions', () => {
  test('accepts the version that runs the tests', () => {
    expect(unsupportedNodeReason()).toBeNull()
  })

  test('returns for an unsupported version the risk and the supported versions', () => {
    expect(unsupportedNodeReason('v24.21.0')).toBe(
      'Node v24.21.0 keeps the certificates of every client in memory, so that anyone who reaches a port can fill it; use Node ^24.22.0 or >=26.9.0, which bin/flotilla chooses by itself',
    )
  })
})

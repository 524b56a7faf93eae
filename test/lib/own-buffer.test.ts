import { describe, expect, test } from 'vitest'

import { withOwnBuffer } from '../../src/lib/runtime/own-buffer.ts'

describe('bytes in their own buffer', () => {
  test('are the same object if they fill the buffer', () => {
    const bytes = new Uint8Array([1, 2, 3])
    expect(withOwnBuffer(bytes)).toBe(bytes)
  })

  test('are a copy if they are a view of a larger buffer', () => {
    const large = new Uint8Array([0, 1, 2, 3, 4])
    const owned = withOwnBuffer(large.subarray(1, 4))
    expect([...owned]).toEqual([1, 2, 3])
    expect(owned.buffer.byteLength).toBe(3)
    structuredClone(owned, { transfer: [owned.buffer] })
    expect([...large]).toEqual([0, 1, 2, 3, 4])
  })
})

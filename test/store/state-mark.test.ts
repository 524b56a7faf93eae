import { expect, test } from 'vitest'
import { unsupportedFormatError } from '../../src/store/errors.ts'
import {
  STATE_FORMAT,
  decodeStorePosition,
  encodeStorePosition,
} from '../../src/store/state/store-position.ts'

const mark = {
  position: { term: 2, index: 9 },
  timeMs: 7,
  configuration: '',
  featureLevel: 3,
  digest: 'd',
  entitiesDigest: 'e',
}

test('a state mark (the log position in a state store) is read as it was written, and is invalid without a feature level', () => {
  expect(decodeStorePosition(encodeStorePosition(mark))).toEqual(mark)
  const { featureLevel, ...rest } = JSON.parse(encodeStorePosition(mark)) as Record<string, unknown>
  expect(featureLevel).toBe(3)
  expect(decodeStorePosition(JSON.stringify(rest))).toBeNull()
})

test.each([
  [STATE_FORMAT - 1, 'of a version before the first release'],
  [STATE_FORMAT + 1, 'run the version that wrote it, or a later one'],
])(
  'a state mark of format %s is reported differently from damage, with advice on what to do',
  (format, remedy) => {
    const other = JSON.stringify({ ...(JSON.parse(encodeStorePosition(mark)) as object), format })
    const found = decodeStorePosition(other)
    expect(found).toBe(format)
    expect(unsupportedFormatError('data/state', Number(found), STATE_FORMAT).message).toContain(
      remedy,
    )
  },
)

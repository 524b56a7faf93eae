import { expect, test } from 'vitest'
import { isVersionRange } from '../../src/lib/version-range.ts'

test.each([
  '1.2.3',
  '>=10.0.0 <11.0.0',
  '>= 10.0.0  < 11.0.0',
  '>1.0.0 || <=2.0.0 !=3.0.0',
  '!1.2.3',
  '==1.0.0-rc.1+build.5',
  '1.x',
  '1.2.x || 2.x.x',
])('%s is a range of versions', (text) => {
  expect(isVersionRange(text)).toBe(true)
})

test.each([
  '',
  ' ',
  'eleven',
  '10',
  '10.1',
  'x',
  '01.2.3',
  '>=1.0.0 ||',
  '|| 1.0.0',
  '=>1.0.0',
  '~1.0.0',
  '1.0.0,2.0.0',
  `${'9'.repeat(16)}.0.0`,
])('%j is none', (text) => {
  expect(isVersionRange(text)).toBe(false)
})

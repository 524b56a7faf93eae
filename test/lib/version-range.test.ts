import { expect, test } from 'vitest'
import { isInVersionRange } from '../../src/lib/text/version-match.ts'
import { isVersionRange } from '../../src/lib/text/version-range.ts'

test.each([
  '1.2.3',
  '>=10.0.0 <11.0.0',
  '>= 10.0.0  < 11.0.0',
  '>1.0.0 || <=2.0.0 !=3.0.0',
  '!1.2.3',
  '==1.0.0-rc.1+build.5',
  '1.x',
  '1.2.x || 2.x.x',
])('%s is a version range', (text) => {
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
])('%j is not a version range', (text) => {
  expect(isVersionRange(text)).toBe(false)
})

test.each([
  ['10.0.19045', '>=10.0.0 <11.0.0', true],
  ['11.0.0', '>=10.0.0 <11.0.0', false],
  ['9.9.9', '<5.0.0 || >=9.0.0', true],
  ['6.0.0', '<5.0.0 || >=9.0.0', false],
  ['1.2.3', '1.2.3', true],
  ['1.2.3', '=1.2.3', true],
  ['1.2.3', '==1.2.4', false],
  ['1.2.3', '!1.2.3', false],
  ['1.2.4', '!=1.2.3', true],
  ['12.9.9', '12.x', true],
  ['13.0.0', '12.x', false],
  ['12.4.7', '12.4.x', true],
  ['12.5.0', '12.4.x', false],
  ['12.5.0', '12.x.x', true],
  ['12.5.0', '>12.x', false],
  ['13.0.0', '>12.x', true],
  ['12.0.0', '>=12.x', true],
  ['11.9.9', '<12.x', true],
  ['12.0.0', '<12.x', false],
  ['12.9.9', '<=12.x', true],
  ['13.0.0', '<=12.x', false],
  ['12.3.0', '!=12.x', false],
  ['13.0.0', '!=12.x', true],
  ['10.0.10', '> 10.0.9', true],
  ['1.0.0-rc.1', '<1.0.0', true],
  ['1.0.0-rc.1', '>=1.0.0', false],
  ['1.0.0-rc.2', '>1.0.0-rc.1', true],
  ['1.0.0-rc.10', '>1.0.0-rc.9', true],
  ['1.0.0-1', '<1.0.0-alpha', true],
  ['1.0.0-alpha', '<1.0.0-alpha.1', true],
  ['1.0.0-x', '1.0.0-x', true],
  ['1.0.0+build', '1.0.0', true],
  ['5.15.0-91-generic', '>=5.4.0', true],
  ['5.15.0-091', '>5.15.0-9', true],
  [`1.0.0-${'9'.repeat(60)}`, '<1.0.0', true],
  ['999999999999999.0.0', '>1.x', true],
])('whether the version %s lies in the range %s: %s', (version, range, isIn) => {
  expect(isInVersionRange(version, range)).toBe(isIn)
})

test.each([
  '',
  '10',
  '10.0',
  '10.0.19045.3930',
  'v10.0.0',
  '01.0.0',
  '10.0.0 ',
  '1.0.0-a..b',
  '1.0.0-.',
  '1.0.0+.',
  `1.0.0-${'a'.repeat(65)}`,
])('the version %j is invalid and lies in no version range', (version) => {
  expect(isInVersionRange(version, '>=0.0.0')).toBe(false)
})

test('no version lies in an invalid version range', () => {
  expect(isInVersionRange('1.0.0', '1')).toBe(false)
  expect(isInVersionRange('1.0.0', '')).toBe(false)
})

import { expect, test } from 'vitest'

import { generatePassword } from '../../src/console/controls/generate-password.ts'

test('a generated password has 20 characters, and meets each rule of an authentication policy', () => {
  const made = Array.from({ length: 200 }, generatePassword)
  for (const password of made) {
    expect(password).toMatch(/^[\w-]{20}$/)
    for (const rule of [/[a-z]/, /[A-Z]/, /\d/, /[-_]/]) expect(password).toMatch(rule)
  }
  expect(new Set(made).size).toBe(made.length)
})

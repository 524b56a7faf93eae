import { expect, test } from 'vitest'
import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'

// The attack: a member named __proto__ changes the type of an object that is copied by assignment.
// Escape sequences hide the name in the text.
const { root } = await controllerForFile()

const spellings = [
  '__proto__',
  '\\u005f_proto__',
  '_\\u005Fproto__',
  '__\\u0070roto__',
  '__pr\\u006fto__',
  '__proto_\\u005f',
  '\\u005f\\u005f\\u0070\\u0072\\u006f\\u0074\\u006f\\u005f\\u005f',
]

test.each(spellings)(
  'a prototype member written as %s is refused, at the top level and in nested objects',
  async (name) => {
    const bodies = [
      `{"name": "a", "encryptionRequired": true, "${name}": {"isAdmin": true}}`,
      `{"name": "b", "encryptionRequired": true, "tags": {"${name}": "x"}}`,
      `{"name": "c", "encryptionRequired": true, "configs": [{"${name}": []}]}`,
    ]
    for (const body of bodies) {
      const reply = await root.call('POST', `${management}/services`, body)
      expect(reply.status, body).toBe(400)
      expect(reply.body.error?.code).toBe('COULD_NOT_PARSE_BODY')
    }
  },
)

test('the name of a prototype member is accepted as a value, and other escapes are accepted', async () => {
  const body = `{"name": "\\u005f_proto__", "encryptionRequired": true, "tags": {"\\u0061": "\\u00e4"}}`
  const reply = await root.call('POST', `${management}/services`, body)
  expect(reply.status, reply.text).toBe(201)
})
